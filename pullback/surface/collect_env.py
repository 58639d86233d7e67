"""What a bug report should say of the machine: `python -m torch.utils.collect_env`."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

from .version import TORCH


def get_env_info() -> dict[str, str]:
    """Versions of what matters, by name."""
    found = {
        "pullback": metadata.version("pullback"),
        "PyTorch interface": TORCH,
        "Python": f"{platform.python_version()} ({sys.platform}-bit {platform.architecture()[0]})",
        "OS": platform.platform(),
        "CPU": platform.processor() or platform.machine(),
    }
    for name in ("numpy", "scipy", "ml_dtypes", "cupy-cuda13x", "mpi4py"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def get_pretty_env_info() -> str:
    return "\n".join(f"{name}: {value}" for name, value in get_env_info().items())


def main() -> None:
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
