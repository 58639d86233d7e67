"""Sorting and what follows from order: top elements, k-th values, medians, modes, quantiles.

Orders are stable; NaN counts as the largest. Operators that return values and indices let gradients flow to the
elements that were picked.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.geometry import wrap_dim
from ...core.symbolic import holds
from ...core.tensor import Tensor
from ..family.along import along
from ..family.base import composite
from ..family.reduction import reduction
from ..system.concrete import concrete, numbers_of
from ..system.operator import NONDIFFERENTIABLE
from ..system.overloads import overloaded
from ..system.scalars import exact_out
from . import sort_kernels as kernels
from .reductions import (
    HIDDEN,
    check_not_empty,
    not_implemented,
    select_backward,
    selection_vjp,
    share_among_all_equals,
    shared,
    whole,
)
from .sort_lowering import (
    lower_argsort,
    lower_kthvalue,
    lower_median,
    lower_median_dim,
    lower_mode,
    lower_sort,
    lower_topk,
)


def _check_sort(self, *rest):
    if self.dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")


def _moved_vjp(g, dim, indices, self_shape):
    return select_backward(g, dim, indices, self_shape, True)


# ---- sort
sort_stable = along(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    check_out=exact_out,
    lower=lambda b, x, stable, dim, descending: lower_sort(b, x, dim, descending),
    kernel=lambda xp, a, axis, stable, descending: kernels.sorted_with_places(xp, a, axis, descending),
    check=_check_sort,
    split=True,
    keeps_strides=True,
    number=1,
    vjp=_moved_vjp,
    **HIDDEN,
)

sort_plain = along(
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    check_out=exact_out,
    lower=lower_sort,
    kernel=kernels.sorted_with_places,
    check=_check_sort,
    split=True,
    keeps_strides=True,
    vjp=_moved_vjp,
    **HIDDEN,
)
overloaded("sort", sort_plain, sort_stable)

argsort_stable = along(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    lower=lambda b, x, stable, dim, descending: lower_argsort(b, x, dim, descending),
    kernel=lambda xp, a, axis, stable, descending: kernels.order(xp, a, axis, descending),
    check=_check_sort,
    result=lambda d: dtypes.int64,
    split=True,
    keeps_strides=True,
    vjp=NONDIFFERENTIABLE,
    **HIDDEN,
)

argsort_plain = along(
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    lower=lower_argsort,
    kernel=kernels.order,
    check=_check_sort,
    result=lambda d: dtypes.int64,
    split=True,
    keeps_strides=True,
    vjp=NONDIFFERENTIABLE,
    **HIDDEN,
)
overloaded("argsort", argsort_plain, argsort_stable)


@composite("msort(Tensor self) -> Tensor")
def msort(self):
    return sort_plain(self, 0)[0]


# ---- selections
def _check_topk(self, k, dim, largest, sorted):
    dim = wrap_dim(dim, self._array.ndim)
    if not 0 <= k <= (self._array.shape[dim] if self._array.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if self.dtype.is_complex or self.dtype is dtypes.bool:
        raise RuntimeError(f"topk does not support {'bool' if self.dtype is dtypes.bool else 'complex'} dtypes on CPU")


topk = along(
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    check_out=exact_out,
    lower=lower_topk,
    kernel=lambda xp, a, axis, k, largest, sorted: kernels.top(xp, a, axis, k, largest),
    length=lambda n, k, largest, sorted: k,
    check=_check_topk,
    split=True,
    vjp=_moved_vjp,
)


def _check_kth(self, k, dim, keepdim):
    dim = wrap_dim(dim, self._array.ndim)
    check_not_empty("kthvalue", self, dim)
    if not (holds(k >= 1) and holds(k <= (self._array.shape[dim] if self._array.ndim else 1))):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    if self.dtype.is_complex or self.dtype is dtypes.bool:
        raise not_implemented("kthvalue_cpu", self.dtype)


kthvalue = along(
    "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    check_out=exact_out,
    lower=lower_kthvalue,
    kernel=kernels.kth,
    reduces=True,
    check=_check_kth,
    split=True,
    vjp=selection_vjp,
)


# ---- medians
def _check_median_dtype(self):
    if self.dtype.is_complex or self.dtype is dtypes.bool:
        raise not_implemented("median_cpu", self.dtype)


def _medians(name: str, ignore_nan: bool):
    """`median` or `nanmedian`: of everything, and along a dimension with indices."""

    def along_dim(xp, a, axis):
        return kernels.median(xp, a, axis, ignore_nan)

    def of_all(xp, a, axis, keepdims):
        if not a.size:
            none = xp.nan if a.dtype.kind == "f" else xp.iinfo(a.dtype).min if a.dtype.itemsize > 2 else 0
            return xp.asarray(none, a.dtype)  # what casts make of NaN
        return along_dim(xp, a.reshape(-1), 0)[0].reshape(())

    def check(self, dim, keepdim):
        check_not_empty(name, self, dim)
        _check_median_dtype(self)

    one = along(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        check_out=exact_out,
        lower=lower_median_dim, kernel=along_dim, reduces=True, check=check, split=True, vjp=selection_vjp, number=1, **HIDDEN,
    )  # fmt: skip
    everything = reduction(
        f"{name}(Tensor self) -> Tensor",
        lower=lower_median, kernel=of_all, check=_check_median_dtype, vjp=share_among_all_equals,
        vmap=whole(shared(lambda t: one(t, 1)[0])), cost="passes", **HIDDEN,
    )  # fmt: skip
    return overloaded(name, everything, one)


_medians("median", False)
_medians("nanmedian", True)


def _check_mode(self, dim, keepdim):
    check_not_empty("mode", self, dim)
    if self.dtype.is_complex:
        raise not_implemented("mode_cpu", self.dtype)


def _mode_out(role: str):
    """`exact_out`, in the words of mode."""

    def check(result: Tensor, out: Tensor) -> None:
        if out.dtype is not result.dtype:
            raise RuntimeError(
                f"expected scalar type '{result.dtype.scalar_name}' but got '{out.dtype.scalar_name}' for {role} output"
            )

    return check


mode = along(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    check_out=(_mode_out("values"), _mode_out("indices")),
    lower=lower_mode,
    kernel=kernels.mode,
    reduces=True,
    check=_check_mode,
    split=True,
    vjp=selection_vjp,
)


# ---- quantiles
_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name: str, self: Tensor, q: Tensor, interpolation: str) -> None:
    if not self.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if self.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if self.dtype is not q.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )


def _quantile(name: str, self: Tensor, q: Tensor, dim, keepdim: bool, interpolation: str, ignore_nan: bool) -> Tensor:
    """Sort, find the ranks that q asks for, and read between the elements there."""
    _check_quantile(name, self, q, interpolation)
    if dim is not None:
        dim = wrap_dim(dim, self.ndim)
    rows = self.flatten() if dim is None or not self.ndim else self.movedim(dim, -1)
    ordered = rows.sort(-1)[0]
    wanted = q.reshape(-1)
    last = ordered.shape[-1] - 1
    if ignore_nan:
        ranks = wanted * (ordered.isnan().logical_not().sum(-1, True) - 1)
        ranks = ranks.masked_fill(ranks < 0, 0)
    else:
        ranks = (wanted * last).masked_fill(ordered.isnan().any(-1, True), last)
    out = _read(ordered, ranks.to(self.dtype), interpolation)  # (..., number of q)
    shape = out.shape[:-1]
    if keepdim:
        shape = (1,) * self.ndim if dim is None or not self.ndim else (*self.shape[:dim], 1, *self.shape[dim + 1 :])
    out = out.movedim(-1, 0).reshape((wanted.shape[0], *shape))
    return out if q.ndim else out.squeeze(0)


def _read(ordered: Tensor, ranks: Tensor, interpolation: str) -> Tensor:
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": ranks.floor, "higher": ranks.ceil, "nearest": ranks.round}[interpolation]()
    below = ranks.to(dtypes.int64)
    low = ordered.gather(-1, below)
    if interpolation not in ("linear", "midpoint"):
        return low
    high = ordered.gather(-1, ranks.ceil().to(dtypes.int64))
    return low.lerp(high, ranks - below if interpolation == "linear" else ranks.new_full(ranks.shape, 0.5))


def _check_q(name: str, q: Tensor) -> None:
    if concrete(q) and not (((ranks := numbers_of(q)) >= 0) & (ranks <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def _quantiles(name: str, ignore_nan: bool):
    tail = 'int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor'

    def by_tensor(self, q, dim, keepdim, interpolation):
        _check_quantile(name, self, q, interpolation)
        _check_q(name, q)
        return _quantile(name, self, q, dim, keepdim, interpolation, ignore_nan)

    def by_number(self, q, dim, keepdim, interpolation):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        return _quantile(name, self, self.new_full((), q), dim, keepdim, interpolation, ignore_nan)

    def check_out(result, out):
        if out.dtype is not result.dtype:
            raise RuntimeError(
                f"{name}() out tensor must be same dtype as the input tensor, {result.dtype}, but has {out.dtype}"
            )

    options = {"autocast_cpu": "float32", "check_out": check_out, **HIDDEN}
    tensor = composite(f"{name}(Tensor self, Tensor q, {tail}", **options)(by_tensor)
    number = composite(f"{name}.scalar(Tensor self, float q, {tail}", **options)(by_number)
    return overloaded(name, tensor, number)


_quantiles("quantile", False)
_quantiles("nanquantile", True)
