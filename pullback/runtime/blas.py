"""Matrix products for generated code: the address of a `gemm`, which chooses between our own and the BLAS that NumPy or SciPy brought.

Out: `Blas`: addresses of `sgemm` and `dgemm` as CBLAS has them, whether their integers have 64 bits, and how BLAS's threads are counted and set.
Where neither is found, addresses are 0, and generated code uses loops of its own.
"""

from __future__ import annotations

import ctypes
import functools
import os
from dataclasses import dataclass

from ..core.extension import extension

# (prefix, suffix, 64-bit integers) of names in the libraries that wheels carry, and in the system's.
_SPELLINGS = (("scipy_", "64_", True), ("", "64_", True), ("scipy_", "", False), ("", "", False))


@dataclass(frozen=True, repr=False)
class Blas:
    """See the module's docstring."""

    single: int = 0
    double: int = 0
    wide: bool = False
    count: int = 0  # of its threads: the functions that say it, and that set it
    use: int = 0


@functools.cache
def find() -> Blas:
    """The BLAS of this process."""
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for prefix, suffix, wide in _SPELLINGS:
            single = getattr(library, f"{prefix}cblas_sgemm{suffix}", None)
            double = getattr(library, f"{prefix}cblas_dgemm{suffix}", None)
            if single is not None and double is not None:
                names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
                count, use = (_address(getattr(library, name, None)) for name in names)
                return _choosing(Blas(_address(single), _address(double), wide, count, use))
    return _choosing(Blas())


def _choosing(found: Blas) -> Blas:
    """The same with functions of our own in front, where these are built: they compute, or call those that were found."""
    own = extension("_products")
    if own is None:
        return found
    single, double = own.gemms(found.single, found.double, found.wide)
    return Blas(single, double, True, found.count, found.use)


def _address(function) -> int:
    return 0 if function is None else ctypes.cast(function, ctypes.c_void_p).value or 0


def _candidates() -> list[str]:
    """Libraries of NumPy's wheel, SciPy's, then the system's."""
    import numpy

    home = os.path.dirname(numpy.__file__)
    found = [
        os.path.join(folder, name)
        for folder in (f"{home}.libs", os.path.join(home, ".dylibs"), os.path.join(os.path.dirname(home), "scipy.libs"))
        if os.path.isdir(folder)
        for name in sorted(os.listdir(folder))
        if "openblas" in name
    ]
    return [*found, "libopenblas.so.0", "libcblas.so.3"]
