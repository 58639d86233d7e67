"""`pullback doctor`: what this machine offers to pullback.

In: nothing. Out: a table of versions, BLAS, compiler and GPU, with a hint where something useful is absent. Nothing is
changed, and nothing absent is an error: pullback runs on NumPy alone.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .tried_packages import TRIED

__all__ = ["doctor", "findings"]

PACKAGES = ("numpy", "scipy", "ml_dtypes", "optree", "safetensors", "rich")
OPTIONAL = {"cupy": "pip install 'pullback[cuda]'", "mpi4py": "pip install 'pullback[mpi]'"}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _versions() -> str:
    return ", ".join(f"{name} {_version(name) or 'absent'}" for name in PACKAGES)


def _optional() -> str:
    said = []
    for name, how in OPTIONAL.items():
        said.append(f"{name} {'present' if importlib.util.find_spec(name) else f'absent ({how})'}")
    return ", ".join(said)


def _machine() -> str:
    threads = os.environ.get("OMP_NUM_THREADS")
    limit = f", OMP_NUM_THREADS={threads}" if threads else ""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors{limit}"


def _blas() -> str:
    import numpy as np

    built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{built.get('name', 'unknown')} {built.get('version', '')}".strip()


def _first_line(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    return (done.stdout or done.stderr).strip().split("\n")[0]


def _compiler() -> str:
    for name in filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")):
        if path := shutil.which(name.split()[0]):
            return f"{path}: {_first_line(path, '--version')}"
    return "none found: compiled graphs will run on NumPy (set CC, or install gcc or clang)"


def _gpu() -> str:
    driver = _first_line("nvidia-smi", "--list-gpus") if shutil.which("nvidia-smi") else "no NVIDIA driver found"
    if importlib.util.find_spec("cupy") is None:
        return f"{driver}; CuPy absent"
    import cupy

    try:
        return f"{driver}; CuPy sees {cupy.cuda.runtime.getDeviceCount()}"
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"{driver}; CuPy: {error}"


def _asks_for_torch(distribution: importlib.metadata.Distribution) -> bool:
    """Whether a distribution needs torch without further ado (not only for an extra of it)."""
    return any(re.match(r"torch(?![\w.-])", need) and "extra ==" not in need for need in distribution.requires or ())


def _for_torch() -> str:
    """The installed packages that ask for torch: those that were tried, with what went wrong, and the others."""
    tried, others = [], []
    for distribution in importlib.metadata.distributions():
        name = distribution.metadata["Name"]
        known = TRIED.get(re.sub(r"[-_.]+", "-", name).lower())
        if known is not None:
            version, error = known
            at = "" if version == distribution.version else f" (tried: {version})"
            tried.append(f"{name} {distribution.version}{at}" + (f": {error}" if error else ""))
        elif _asks_for_torch(distribution):
            others.append(name)
    said = [f"run as on PyTorch: {', '.join(sorted(tried))}"] if tried else []
    if others:
        said.append(f"not tried: {', '.join(sorted(others))} (`pullback scan NAME` lists what they would miss)")
    return "; ".join(said) or "none installed"


QUESTIONS: dict[str, Callable[[], str]] = {
    "pullback": lambda: _version("pullback") or "not installed (running from its source)",
    "Python": lambda: f"{platform.python_version()} ({platform.python_implementation()})",
    "packages": _versions,
    "optional": _optional,
    "machine": _machine,
    "BLAS": _blas,
    "C compiler": _compiler,
    "GPU": _gpu,
    "for torch": _for_torch,
}


def findings() -> dict[str, str]:
    """Each question's answer; a question that cannot be answered says why."""
    found = {}
    for name, ask in QUESTIONS.items():
        try:
            found[name] = ask()
        except Exception as error:  # a broken tool is a finding, not an end
            found[name] = f"could not be read: {type(error).__name__}: {error}"
    return found


def doctor() -> int:
    """Print the findings."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, answer in findings().items():
        table.add_row(Text(name, style="bold"), Text(answer))  # Text: an answer may hold brackets
    Console(highlight=False).print(table)
    return 0
