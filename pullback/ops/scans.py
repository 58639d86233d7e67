"""Scans: running sums, products and extremes along a dimension; differences and integrals of samples.

A scan's result has the shape of its input. Integer sums and products are int64. The gradient of `cumprod` is exact where
factors are zero: it is an affine recurrence, an operator of its own whose gradient is the same recurrence backwards.
"""

from __future__ import annotations

from ..core import dtype as dtypes
from ..core.geometry import wrap_dim, wrap_dims
from ..core.tensor import Tensor
from . import scan_kernels as kernels
from .arithmetic import conj
from .calls import front
from .concrete import may_have_zeros
from .family.along import along
from .family.base import composite, operator
from .family.reduction import INT_TO_LONG
from .operator import LINEAR, Spec
from .overloads import overloaded
from .precision import widened
from .reductions import HIDDEN, not_implemented


def _reverse_cumsum(g: Tensor, dim: int) -> Tensor:
    return g if g.ndim == 0 or g.shape[dim] <= 1 else g.flip(dim).cumsum(dim).flip(dim)


cumsum = along(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    kernel=kernels.running_sum,
    result=INT_TO_LONG,
    cast=True,
    split=True,
    inplace=True,
    vjp=lambda g, self_dtype, dim: _reverse_cumsum(g.to(self_dtype), dim),
    jvp=LINEAR,
)


# ---- products
def _check_affine(rate, value, dim):
    wrap_dim(dim, value.array.ndim)
    if rate.array.shape != value.array.shape:
        raise RuntimeError(f"affine scan: rates of shape {list(rate.array.shape)} for values of shape {list(value.array.shape)}")


def _affine_vjp(g, rate, out, dim, mask):
    """The recurrence backwards: each sum's gradient is its own and, by the next rate, that of the next."""
    n = g.shape[dim]
    shifted = _shift(conj(rate), dim, -1)
    back = affine_scan(shifted.flip(dim), g.flip(dim), dim).flip(dim) if n > 1 else g
    return back * conj(_shift(out, dim, 1)) if mask[0] else None, back


def _shift(x: Tensor, dim: int, by: int) -> Tensor:
    """`x` moved one place along `dim`, a zero moved in."""
    from .joining import cat

    n = x.shape[dim]
    gap = x.narrow(dim, 0, min(n, 1)).zeros_like() if False else x.new_zeros((*x.shape[:dim], min(n, 1), *x.shape[dim + 1 :]))
    kept = x.narrow(dim, 0 if by > 0 else 1, n - 1) if n else x
    return cat((gap, kept) if by > 0 else (kept, gap), dim) if n else x


affine_scan = operator(
    "_affine_scan(Tensor rate, Tensor value, int dim) -> Tensor",
    kernel=widened(kernels.affine),
    check=_check_affine,
    meta=lambda rate, value, dim: Spec(value.array.shape, value.dtype),
    vjp={("rate", "value"): _affine_vjp},
    **HIDDEN,
)
