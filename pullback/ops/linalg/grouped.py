"""`grouped_mm`: several matrix products at once, of groups that follow one another in one matrix.

`offs` (int32) says where each group ends. Two matrices of which one is 2-D need it: rows of `mat_a`, columns of `mat_b`,
or, if both are 2-D, the contracted dimension is cut into groups. Written in other operators.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ..family.base import composite
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import public

_TAKEN = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


def _check(mat_a: Tensor, mat_b: Tensor, offs, bias, out_dtype) -> None:
    for name, m in (("mat_a", mat_a), ("mat_b", mat_b)):
        if m.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
        if m.dtype not in _TAKEN:
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {m.dtype.scalar_name}")
    if mat_a.size(-1) != mat_b.size(-2):
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (offs is None) != (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is not None and offs.dtype is not dtypes.int32:
        raise RuntimeError("Offsets have to be int32")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")


@front("nn.functional.grouped_mm")
def grouped_mm(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype=None):
    """The products of the groups: (rows, columns), or (groups, rows, columns) where groups have all rows and columns."""
    return dispatch(grouped, (mat_a, mat_b, offs, bias, out_dtype))


@composite(
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor"
)
def grouped(mat_a, mat_b, offs, bias, out_dtype):
    """The products of the groups: (rows, columns), or (groups, rows, columns) where groups have all rows and columns."""
    _check(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return mat_a.bmm(mat_b)
    ends = offs.tolist()
    groups = list(zip([0, *ends], ends, strict=False))
    if mat_a.dim() == 2 and mat_b.dim() == 3:
        return public("torch", "cat")([mat_a[i:j].mm(mat_b[g]) for g, (i, j) in enumerate(groups)])
    if mat_a.dim() == 3:
        return public("torch", "cat")([mat_a[g].mm(mat_b[:, i:j]) for g, (i, j) in enumerate(groups)], 1)
    return public("torch", "stack")([mat_a[:, i:j].mm(mat_b[i:j]) for i, j in groups])
