"""SGLang with our grammar backend: the plugin is found where this package is installed."""

from __future__ import annotations

import healfsa

try:
    import sglang
    import torch
except ImportError as missing:
    print(f"{missing}: pip install sglang")
    raise SystemExit(0) from None

from healfsa.integrations.sglang import Generator

# Without an accelerator SGLang has to be told which kernels there are.
ON_CPU = {
    "device": "cpu", "attention_backend": "torch_native", "sampling_backend": "pytorch", "disable_cuda_graph": True,
    "disable_overlap_schedule": True, "skip_server_warmup": True, "dtype": "float32", "max_total_tokens": 4096,
    "mem_fraction_static": 0.5, "watchdog_timeout": 3600,
}  # fmt: skip


def main() -> None:
    options = {} if torch.cuda.is_available() else ON_CPU
    engine = sglang.Engine(model_path=str(healfsa.models.embedded_folder()), grammar_backend="healfsa", **options)
    try:
        generator = Generator(engine)
        print(generator.generate(["The capital of Fra", "x.re"], healfsa.choice("nce", "lls", "duce(")))
        print("".join(generator.stream("The capital of Fra", max_new_tokens=8)))
    finally:
        engine.shutdown()


if __name__ == "__main__":  # SGLang starts processes of its own
    main()
