"""Sparse tensors: coordinates (COO) and compressed rows, columns and blocks (CSR, CSC, BSR, BSC).

Importing this package declares the sparse operators and hooks them into dispatch; its public functions (`sparse.mm`,
`sparse.sum`, ...) are filled in from the operators' exports. `layouts` says what a sparse tensor holds.
"""

from __future__ import annotations

from ....core.tensor import SPARSE
from . import (
    arithmetic,
    construct,
    conversion,
    diagonals,
    gradients,
    masks,
    parts,
    products,
    reductions,
    resizing,
    shapes,
    softmaxes,
    typed,
)
from .invariants import check_sparse_tensor_invariants
from .resizing import resize_sparse_
from .semi_structured import (
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUSPARSELT,
    SparseSemiStructuredTensorCUTLASS,
    to_sparse_semi_structured,
)
from .table import execute_sparse
from .testing import as_sparse_gradcheck
from .writes import write_sparse

globals().update(typed.TYPED)  # FloatTensor, LongTensor, ...

__all__ = [
    "SPARSE",
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "arithmetic",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "construct",
    "conversion",
    "diagonals",
    "execute_sparse",
    "gradients",
    "masks",
    "parts",
    "products",
    "reductions",
    "resize_sparse_",
    "resizing",
    "shapes",
    "softmaxes",
    "to_sparse_semi_structured",
    "typed",
    "write_sparse",
]
