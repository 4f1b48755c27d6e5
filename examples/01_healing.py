"""Token healing: a prompt that ends inside a token continues as if it had not been cut there.

The model never saw the tokens of `https` and `:` followed by `//`: in its training text `://` is one token. Cutting the
prompt there asks it for something that it does not know. Healing gives the last bytes back (they are *owed*), and the
next tokens must begin with them.
"""

from __future__ import annotations

import healfsa
from healfsa.integrations.transformers import Generator

model, tokenizer = healfsa.models.load()
generator = Generator(model, tokenizer)

for prompt in ("The capital of Fra", "def f(x):\n    ret", "The link is https:"):
    healed = generator.engine.heal(prompt)
    print(f"{prompt!r}: the model is given {len(healed.keep)} tokens and owes {healed.owed!r}")
    for policy in ("off", "auto"):
        text = generator.generate(prompt, heal=policy, max_new_tokens=8, do_sample=False)
        print(f"    heal={policy!r:7} {text!r}")

# Only what follows the prompt is streamed; nothing is shown twice.
print("streamed:", end=" ")
for piece in generator.stream("The capital of Fra", max_new_tokens=8, do_sample=False):
    print(piece, end="|", flush=True)
print()
