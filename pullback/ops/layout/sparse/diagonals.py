"""Sparse matrices by their diagonals: `sparse.spdiags`.

In: rows of numbers, and for each the offset of its diagonal. Out: a matrix in coordinates or compressed, in which element j
of a row stands in column j; what falls outside is left out. Gradients reach the numbers that are in the matrix.
"""

from __future__ import annotations

from ....core import device as layouts
from ....core import dtype as dtypes
from ....core.tensor import Tensor
from ...make.construct import tensor
from ...system.calls import front
from ...system.operator import public

_LAYOUTS = {layouts.sparse_coo: None, layouts.sparse_csr: "to_sparse_csr", layouts.sparse_csc: "to_sparse_csc"}


def _check(diagonals: Tensor, offsets: Tensor, shape, layout) -> None:
    if diagonals.ndim not in (1, 2):
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError(f"Output shape must be 2d, got {tuple(shape)}")
    if offsets.dtype is not dtypes.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {offsets.dtype.scalar_name}")
    count = diagonals.shape[0] if diagonals.ndim == 2 else 1
    if offsets.numel() != count:
        raise RuntimeError(f"Number of diagonals ({count}) does not match the number of offsets ({offsets.numel()})")
    if len(set(offsets.flatten().tolist())) != count:
        raise RuntimeError("Offset tensor contains duplicate values")
    if layout is not None and layout not in _LAYOUTS:
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout}")


@front("sparse.spdiags")
def spdiags(diagonals: Tensor, offsets: Tensor, shape, layout=None) -> Tensor:
    """A sparse matrix by its diagonals; an offset above 0 is above the main one."""
    _check(diagonals, offsets, shape, layout)
    rows = diagonals if diagonals.ndim == 2 else diagonals.unsqueeze(0)
    height, width = shape
    places = [
        (d, column - offset, column)
        for d, offset in enumerate(offsets.flatten().tolist())
        for column in range(max(offset, 0), min(rows.shape[1], width, height + offset))
    ]
    at, row, column = (tensor([p[i] for p in places], dtype=dtypes.int64, device=diagonals.device) for i in range(3))
    indices = public("torch", "stack")([row, column])
    result = public("torch", "sparse_coo_tensor")(indices, rows[at, column], tuple(shape))
    convert = _LAYOUTS.get(layout)
    return result if convert is None else getattr(result.coalesce(), convert)()
