"""Reductions of the elements that take part: see the package's docstring."""

from __future__ import annotations

from math import inf

from ..core import dtype as dtypes
from ..core.dtype import dtype as dtype_type
from ..core.modes import ambient
from ..core.tensor import Tensor
from ..ops.system.operator import public
from .filling import Dims, cast, count, every, filled, highest, inexact, lowest


def sum(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The sum; 0 where no element takes part."""
    t = filled(cast(input, dtype), mask, 0)
    return t.sum(every(dim, input.ndim), keepdim)


def prod(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The product; 1 where no element takes part."""
    t = filled(cast(input, dtype), mask, 1)
    t = t.to(dtypes.int64) if dtype is None and t.dtype.category < 2 else t
    for d in sorted(every(dim, input.ndim), reverse=True):
        t = t.prod(d, keepdim)
    return t


def amax(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The largest element; the lowest number of the dtype where none takes part."""
    t = cast(input, dtype)
    return filled(t, mask, lowest(t.dtype)).amax(every(dim, input.ndim), keepdim)


def amin(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The smallest element; the highest number of the dtype where none takes part."""
    t = cast(input, dtype)
    return filled(t, mask, highest(t.dtype)).amin(every(dim, input.ndim), keepdim)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Where the largest element stands, in the dtype of the input or in `dtype`."""
    t = cast(input, dtype)
    return filled(t, mask, lowest(t.dtype)).argmax(dim, keepdim).to(t.dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Where the smallest element stands, in the dtype of the input or in `dtype`."""
    t = cast(input, dtype)
    return filled(t, mask, highest(t.dtype)).argmin(dim, keepdim).to(t.dtype)


def mean(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The mean; NaN where no element takes part."""
    t, dims = inexact(mean, input, dtype), every(dim, input.ndim)
    return filled(t, mask, 0).sum(dims, keepdim) / count(t, mask, dims, keepdim)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The lower median; NaN where no element takes part (which integers cannot say)."""
    t = cast(input, dtype)
    if t.dtype.is_floating_point:
        return filled(t, mask, float("nan")).nanmedian(dim, keepdim).values
    if mask is not None and bool((count(t, mask, every(dim, t.ndim), False) == 0).any()):
        raise ValueError("median expects no fully masked out rows if dtype is not floating point")
    return filled(t.to(dtypes.float64), mask, float("nan")).nanmedian(dim, keepdim).values.to(t.dtype)


def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of exponentials; -inf where no element takes part."""
    t = cast(input, dtype)
    return filled(t, mask, lowest(t.dtype)).logsumexp(every(dim, input.ndim), keepdim)


def norm(
    input: Tensor, ord: float = 2.0, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """The vector norm; what is left out counts as 0, as infinity for the smallest magnitude."""
    t = inexact(norm, input, dtype)
    value = inf if ord == -inf else 0
    return public("linalg", "vector_norm")(filled(t, mask, value), ord, every(dim, input.ndim), keepdim)


def _spread(input: Tensor, dim: Dims, unbiased, correction, keepdim: bool, dtype: dtype_type | None, mask) -> Tensor:
    """The variance of the elements that take part; of how many fewer the mean is taken says one of two arguments."""
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    fewer = correction if correction is not None else int(unbiased is None or unbiased)
    t = cast(input, dtype)
    t = t if t.dtype.category >= 2 else t.to(ambient.default_dtype)
    dims = every(dim, input.ndim)
    n = count(t, mask, dims, True)
    middle = filled(t, mask, 0).sum(dims, True) / n
    apart = filled(t - middle, mask, 0)
    squares = (apart * apart.conj()).real if t.dtype.is_complex else apart * apart
    left = public("torch", "where")(n > 0, (n - fewer).clamp_min(0), n)
    result = squares.sum(dims, True) / left
    return result if keepdim else result.reshape([s for d, s in enumerate(result.shape) if d not in dims])


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: int | float | None = None,
    keepdim: bool = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance; NaN where no element takes part, or one where it is unbiased."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: int | float | None = None,
    keepdim: bool = False,
    dtype=None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation: the root of `var`."""
    return _spread(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()
