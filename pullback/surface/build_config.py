"""How this build was made (`torch.__config__`): text for people and for bug reports."""

from __future__ import annotations

import platform

import numpy

from .settings import get_num_threads
from .version import TORCH


def show() -> str:
    """The libraries that do the work, a line each."""
    blas = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return "\n".join([
        "pullback built with:",
        f"  - PyTorch interface {TORCH}",
        f"  - Python {platform.python_version()}, NumPy {numpy.__version__}",
        f"  - BLAS {blas.get('name')} {blas.get('version')}",
        "",
    ])  # fmt: skip


def parallel_info() -> str:
    """How many threads work."""
    return f"pullback threads:\n\tget_num_threads() : {get_num_threads()}\n"


def _cxx_flags() -> str:
    return ""
