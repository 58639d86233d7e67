"""Linear algebra: factorizations, solving, spectra, determinants, norms and products of stacks of matrices.

The array kernels are in the modules named `*_kernels`, on LAPACK through `lapack`; the others declare the operators.
"""

from __future__ import annotations

from ..operator import export
from . import (  # noqa: F401 - importing declares the operators
    cholesky,
    determinant,
    ldl,
    lowrank,
    lu,
    norms,
    products,
    pseudoinverse,
    qr,
    removed,
    solve,
    spectral,
)
from .errors import LinAlgError

export("linalg", "LinAlgError", LinAlgError)
export("linalg", "common_notes", {})
