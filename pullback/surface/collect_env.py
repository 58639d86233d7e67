"""What a bug report should say of the machine: `python -m torch.utils.collect_env`."""

from __future__ import annotations

import platform

from ..core.release import TORCH, version_of


def get_env_info() -> dict[str, str]:
    """Versions of what matters, by name."""
    packages = ("numpy", "scipy", "ml_dtypes", "cupy-cuda13x", "mpi4py")
    return {
        "pullback": version_of("pullback"),
        "PyTorch interface": TORCH,
        "Python": f"{platform.python_version()} ({platform.architecture()[0]})",
        "OS": platform.platform(),
        "CPU": platform.processor() or platform.machine(),
        **{name: version_of(name) for name in packages},
    }


def get_pretty_env_info() -> str:
    return "\n".join(f"{name}: {value}" for name, value in get_env_info().items())


def main() -> None:
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
