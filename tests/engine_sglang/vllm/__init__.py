"""What SGLang asks of vLLM on a machine without an accelerator, and no more: put the folder above on PYTHONPATH."""
