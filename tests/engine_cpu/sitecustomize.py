"""vLLM's V2 model runner on a machine without an accelerator: its Triton kernels are run by Triton's interpreter.

Put this folder on PYTHONPATH and set TRITON_INTERPRET=1 and VLLM_USE_V2_MODEL_RUNNER=1: every process of vLLM loads it.
For tests only.
"""

import os


def add_backend():
    """Triton asks for an active driver before it looks whether it interprets."""
    import torch
    from triton import backends
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase

    class Driver(DriverBase):
        is_active = classmethod(lambda cls: True)

        def __init__(self):
            pass

        def map_python_to_cpp_type(self, ty):
            return "int"

        def get_current_target(self):
            return GPUTarget("cpu", 0, 1)

        def get_active_torch_device(self):
            return torch.device("cpu")

        def get_current_device(self):
            return 0

        def get_device_interface(self):
            return torch.cpu

        def get_benchmarker(self):
            raise NotImplementedError

    backends.backends["cpu"] = type("Backend", (), {"compiler": None, "driver": Driver})


def read_masks_as_booleans():
    """The interpreter indexes with masks, which vLLM's kernels make as integers."""
    import numpy as np
    from triton.runtime.interpreter import InterpreterBuilder

    def wrapped(method, place):
        def call(self, *args, **options):
            mask = args[place] if len(args) > place else None
            if isinstance(getattr(mask, "data", None), np.ndarray):
                mask.data = mask.data.astype(np.bool_)
            return method(self, *args, **options)

        return call

    for name, place in (("create_masked_load", 1), ("create_masked_store", 2)):
        setattr(InterpreterBuilder, name, wrapped(getattr(InterpreterBuilder, name), place))


if os.environ.get("TRITON_INTERPRET") == "1":
    try:
        add_backend()
        read_masks_as_booleans()
    except ImportError:
        pass  # this process has no Triton
