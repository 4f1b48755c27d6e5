"""llama-cpp-python with healed prompts, and with the bytes of its tokens read right."""

from __future__ import annotations

import healfsa

try:
    import llama_cpp

    from healfsa.integrations.llama_cpp import Generator
except ImportError as missing:
    print(f"{missing}: pip install llama-cpp-python")
    raise SystemExit(0) from None

from healfsa.integrations import embedded

llama = llama_cpp.Llama(str(embedded.find_gguf()), n_ctx=512, verbose=False)
generator = Generator(llama)

print("unhealed:", repr(generator.generate("The capital of Fra", heal="off", max_new_tokens=8)))
print("healed:  ", repr(generator.generate("The capital of Fra", max_new_tokens=8)))
print(generator.generate("x.re", healfsa.regex(r"(duce|turn|place)\(")))

lost = [i for i in range(llama.n_vocab()) if generator.engine.vocabulary.bytes_of(i) and not llama.detokenize([i])]
print(f"tokens that the package's own detokenize drops: {len(lost)}")

for piece in generator.stream("The capital of Fra", max_new_tokens=8):
    print(piece, end="|", flush=True)
print()
