"""`sparse.mm(csr, dense, reduce)`: a matrix product whose terms are combined by sum, mean, amax or amin.

Written in differentiable operators on the values and the dense matrix, so gradients follow.
Rows without elements are 0.
"""

from __future__ import annotations

from ....core import device as devices
from ....core.arrays import library
from ....core.tensor import Tensor
from . import kernels
from .convert import as_tensor
from .layouts import is_sparse
from .table import refuse_dense

_REDUCTIONS = ("sum", "mean", "amax", "amin")


def mm_reduce(sparse: Tensor, dense: Tensor, reduce: str) -> Tensor:
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    if sparse.layout is not devices.sparse_csr or is_sparse(dense):
        raise refuse_dense("_sparse_mm_reduce_impl", sparse)
    if sparse.shape[1] != dense.shape[0]:
        raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {sparse.shape[1]}, got {dense.shape[0]}")
    a = sparse._array
    rows = as_tensor(kernels.rows_of(library(sparse.device), a.compressed._array), sparse)
    terms = sparse.values().unsqueeze(1) * dense.index_select(0, a.plain)
    out = dense.new_zeros((sparse.shape[0], dense.shape[1]))
    if reduce == "sum":
        return out.index_add(0, rows, terms)
    at = rows.unsqueeze(1).expand(terms.shape)
    return out.scatter_reduce(0, at, terms, reduce, include_self=False)
