"""SGLang with our grammar backend: the plugin is found where this package is installed."""

from __future__ import annotations

import healfsa

try:
    import sglang
except ImportError as missing:
    print(f"{missing}: pip install sglang")
    raise SystemExit(0) from None

from healfsa.integrations.sglang import Generator


def main() -> None:
    engine = sglang.Engine(model_path=str(healfsa.models.embedded_folder()), grammar_backend="healfsa")
    try:
        generator = Generator(engine)
        print(generator.generate(["The capital of Fra", "x.re"], healfsa.choice("nce", "lls", "duce(")))
        print("".join(generator.stream("The capital of Fra", max_new_tokens=8)))
    finally:
        engine.shutdown()


if __name__ == "__main__":  # SGLang starts processes of its own
    main()
