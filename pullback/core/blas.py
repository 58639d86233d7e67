"""How many threads the BLAS under NumPy and SciPy uses.

In: a number of threads. Out: whether a library took it. The libraries are those already loaded into this process, found
by their files' names; one that is not an OpenBLAS keeps its own count. SciPy's is loaded when it is first needed: `scipy_linalg`
brings it, and passes on what the others were told before.
"""

from __future__ import annotations

import ctypes
import functools
from types import ModuleType

__all__ = ["scipy_linalg", "set_blas_threads"]

# The wheels of NumPy and SciPy carry an OpenBLAS whose names have a prefix, a suffix (64-bit integers), or both.
_SETTERS = (
    "openblas_set_num_threads", "openblas_set_num_threads64_",
    "scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_",
)  # fmt: skip


class _Count:
    """What was last said; None while every library goes by its environment, as `get_num_threads` does."""

    said: int | None = None


def set_blas_threads(n: int) -> bool:
    """Tell every loaded OpenBLAS to use `n` threads, and those that `scipy_linalg` loads later."""
    _Count.said = n
    told = False
    for path in _loaded_libraries():
        library = ctypes.CDLL(path)
        for name in _SETTERS:
            setter = getattr(library, name, None)
            if setter is not None:
                setter.argtypes, setter.restype = [ctypes.c_int], None
                setter(n)
                told = True
    return told


@functools.cache
def scipy_linalg() -> ModuleType:
    """`scipy.linalg`, whose BLAS has the same number of threads as NumPy's."""
    import scipy.linalg

    if _Count.said is not None:
        set_blas_threads(_Count.said)
    return scipy.linalg


def _loaded_libraries() -> set[str]:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            paths = {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "openblas" in line}
    except OSError:  # not Linux: the library's own environment variables remain
        return set()
    return {path for path in paths if not path.endswith("(deleted)")}
