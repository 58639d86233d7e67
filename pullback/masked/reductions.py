"""Reductions of the elements that take part: see the package's docstring."""

from __future__ import annotations

from ..core import dtype as dtypes
from ..core.dtype import dtype as dtype_type
from ..core.tensor import Tensor
from ..ops.system.operator import public
from .filling import Dims, cast, count, every, filled, inexact, neutral
from .sparse import SPARSE, check_layout, of_layouts


@of_layouts(*SPARSE, unmasked=True)
def sum(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The sum; 0 where no element takes part."""
    return neutral("sum", input, mask).sum(every(dim, input.ndim), keepdim, dtype=dtype)


@of_layouts(*SPARSE)
def prod(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The product; 1 where no element takes part."""
    t = cast(neutral("prod", input, mask), dtype)
    t = t.to(dtypes.int64) if dtype is None and t.dtype.category < 2 else t
    for d in sorted(every(dim, input.ndim), reverse=True):
        t = t.prod(d, keepdim)
    return t


@of_layouts(*SPARSE)
def amax(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The largest element; the lowest number of the dtype where none takes part."""
    return cast(neutral("amax", input, mask).amax(every(dim, input.ndim), keepdim), dtype)


@of_layouts(*SPARSE)
def amin(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The smallest element; the highest number of the dtype where none takes part."""
    return cast(neutral("amin", input, mask).amin(every(dim, input.ndim), keepdim), dtype)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Where the largest element stands, in the dtype of the input or in `dtype`."""
    check_layout("argmax", input)
    return neutral("argmax", input, mask).argmax(dim, keepdim).to(input.dtype if dtype is None else dtype)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Where the smallest element stands, in the dtype of the input or in `dtype`."""
    check_layout("argmin", input)
    return neutral("argmin", input, mask).argmin(dim, keepdim).to(input.dtype if dtype is None else dtype)


@of_layouts(SPARSE[1])
def mean(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The mean; NaN where no element takes part."""
    t, dims = inexact(mean, input, dtype), every(dim, input.ndim)
    return filled(t, mask, 0).sum(dims, keepdim) / count(t, mask, dims, keepdim)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The lower median; NaN where no element takes part (which integers cannot say)."""
    check_layout("median", input)
    if input.dtype.is_floating_point:
        return neutral("median", input, mask).nanmedian(dim, keepdim).values
    result = neutral("median", input.to(dtypes.float32), mask).nanmedian(dim, keepdim).values
    if bool(result.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(input.dtype if dtype is None else dtype)


def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of exponentials; -inf where no element takes part."""
    check_layout("logsumexp", input)
    result = neutral("logsumexp", input, mask).logsumexp(every(dim, input.ndim), keepdim)
    return result.to(input.dtype if dtype is None else dtype)


def norm(
    input: Tensor, ord: float = 2.0, dim: Dims = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """The vector norm; what is left out counts as 0, as infinity for the smallest magnitude."""
    check_layout("norm", input)
    t = inexact(norm, input, dtype)
    return public("linalg", "vector_norm")(neutral("norm", t, mask, ord), ord, every(dim, input.ndim), keepdim)


def _spread(input: Tensor, dim: Dims, unbiased, correction, keepdim: bool, dtype: dtype_type | None, mask) -> Tensor:
    """The variance of the elements that take part; of how many fewer the mean is taken says one of two arguments. That of
    complex numbers is real, in a complex dtype."""
    check_layout("std/var", input)
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    fewer = correction if correction is not None else int(unbiased is None or unbiased)
    given = input.dtype if dtype is None else dtype
    inner = given if given.is_floating_point or given.is_complex else dtypes.float32
    t, dims = input.to(inner), every(dim, input.ndim)
    n = count(t, mask, dims, True)
    apart = t - filled(t, mask, 0).sum(dims, True) / n
    total = filled(apart * apart.conj(), mask, 0).sum(dims, keepdim)
    n = n.to(total.real.dtype if inner.is_complex else inner).reshape(total.shape)
    return (total / (n - fewer).clamp_min(0)).to(inner if dtype is None else dtype)


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
