"""mlx-lm with healed prompts and our grammars."""

from __future__ import annotations

import healfsa

try:
    import mlx_lm

    from healfsa.integrations.mlx import Generator
except ImportError as missing:
    print(f"{missing}: pip install 'mlx[cpu]' mlx-lm")
    raise SystemExit(0) from None

generator = Generator(*mlx_lm.load(str(healfsa.models.embedded_folder())))
print("unhealed:", repr(generator.generate("The capital of Fra", heal="off", max_new_tokens=8)))
print("healed:  ", repr(generator.generate("The capital of Fra", max_new_tokens=8)))
print(generator.generate(["The capital of Fra", "x.re"], healfsa.regex("[a-z ]{3,9}[.(]")))
for piece in generator.stream("The capital of Fra", max_new_tokens=8):
    print(piece, end="|", flush=True)
print()
