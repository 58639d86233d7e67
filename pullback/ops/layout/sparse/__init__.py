"""Sparse tensors: coordinates (COO) and compressed rows, columns and blocks (CSR, CSC, BSR, BSC).

Importing this package declares the sparse operators and hooks them into dispatch; its public functions (`sparse.mm`,
`sparse.sum`, ...) are filled in from the operators' exports. `layouts` says what a sparse tensor holds.
"""

from __future__ import annotations

from ....core.tensor import SPARSE, Tensor
from ...system import inplace
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
    shapes,
    softmaxes,
    typed,
)
from .invariants import check_sparse_tensor_invariants
from .layouts import is_sparse, wrap_sparse
from .semi_structured import (
    SparseSemiStructuredTensor,
    SparseSemiStructuredTensorCUSPARSELT,
    SparseSemiStructuredTensorCUTLASS,
    to_sparse_semi_structured,
)
from .table import execute_sparse
from .testing import as_sparse_gradcheck


def write_sparse(target: Tensor, result: Tensor) -> None:
    """Put a result into a tensor where either is sparse: a sparse target takes over the parts, cast to its dtype."""
    if not is_sparse(target):
        inplace.write(target, conversion.to_dense(result.detach()))
        return
    if not is_sparse(result):
        raise RuntimeError(f"a dense result cannot be written into a tensor of layout {target.layout}")
    output = result._array
    if result.dtype is not target.dtype:
        output = wrap_sparse(output.with_values(output.values.to(target.dtype)))._array
    target._array = output
    inplace.bump(target)


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
    "shapes",
    "softmaxes",
    "to_sparse_semi_structured",
    "typed",
    "write_sparse",
]
