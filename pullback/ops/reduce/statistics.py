"""Means, variances and what is built on them: mean, var, std, nansum, nanmean, logsumexp, cov, corrcoef.

Variances are of two passes: deviations from the mean are squared and summed, with the accuracy of sums. The variance of
complex numbers is real. Where a divisor (count less correction) is not positive the result is infinite or NaN.
"""

from __future__ import annotations

import math
import warnings

from ...core import dtype as dtypes
from ...core import native
from ...core.geometry import wrap_dims
from ...core.promotion import to_float
from ...core.tensor import Tensor
from ..eager.rows import export_reduction
from ..elementwise.arithmetic import conj
from ..elementwise.array_kernels import outgrown
from ..elementwise.complex_numbers import complex_
from ..family.base import composite, operator
from ..family.reduction import INT_TO_LONG, batch_reduction, reduced_shape, reduction, restore_dims
from ..system.concrete import concrete, numbers_of
from ..system.dispatch import dispatch
from ..system.operator import LINEAR, Spec, export
from ..system.overloads import overloaded
from ..system.pieces import by_pieces
from ..system.precision import wide
from .reduction_kernels import add_reduce, max_reduce
from .reduction_lowering import lower_logsumexp, lower_mean, lower_var, lower_var_mean
from .reductions import HIDDEN, whole


def count_of(shape, dim) -> int:
    """How many elements are reduced into one."""
    return math.prod(shape[d] for d in wrap_dims(dim if dim != () else None, len(shape)))


# ---- means
def _check_mean(self, *rest):
    wanted = rest[-1]
    d = wanted or self.dtype
    if d.category < 2:
        which = "Input" if wanted is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {d.scalar_name}"
        )


def mean_kernel(xp, a, axis: tuple, keepdims: bool):
    if (result := native.reduce(native.MEAN, a, axis, keepdims)) is not None:
        return result
    return add_reduce(xp, a, axis, keepdims) / (math.prod(a.shape[d] for d in axis) or xp.nan)


mean_dim = reduction(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    lower=lower_mean,
    kernel=mean_kernel,
    check=_check_mean,
    number=1,
    vjp=lambda g, self_shape, dim, keepdim: (
        restore_dims(g, self_shape, dim, keepdim).expand(self_shape) / max(count_of(self_shape, dim), 1)
    ),
    jvp=LINEAR,
    **HIDDEN,
)

mean_all = reduction(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    lower=lower_mean,
    kernel=mean_kernel,
    check=_check_mean,
    vjp=lambda g, self_shape: g.expand(self_shape) / max(math.prod(self_shape), 1),
    jvp=LINEAR,
    vmap=whole(lambda t, dtype: mean_dim(t, (1,), False, dtype=dtype)),
    **HIDDEN,
)
export_reduction("mean", native.MEAN, mean_all, mean_dim, defaults=(None,))


def _check_nansum(self, dim, keepdim, dtype):
    if self.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")


nansum = reduction(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    kernel=lambda xp, a, axis, keepdims: add_reduce(
        xp, a if a.dtype.kind != "f" else xp.where(a == a, a, a.dtype.type(0)), axis, keepdims
    ),
    combine="add",
    result=INT_TO_LONG,
    check=_check_nansum,
    vjp=lambda g, self, dim, keepdim: (
        restore_dims(g.to(self.dtype), self.shape, dim, keepdim).expand(self.shape).masked_fill(self.isnan(), 0)
    ),
    jvp={
        "self": lambda t, self, dim, keepdim, dtype: t.masked_fill(self.isnan(), 0).sum(dim, keepdim, dtype=dtype),
    },
)


@composite("nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor")
def nanmean(self, dim, keepdim, dtype):
    if self.dtype.category < 2:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {self.dtype.scalar_name}"
        )
    count = self.detach().isnan().logical_not().sum(dim, keepdim)
    return nansum(self, dim, keepdim, dtype=dtype) / count


# ---- variances
def _divisor(count: int, correction) -> float:
    return max(count - (1 if correction is None else correction), 0)


def _variance(xp, a, axis: tuple, keepdims: bool, correction):
    """(variance, mean), the mean with its axes kept."""
    count = math.prod(a.shape[d] for d in axis)
    if (result := native.moments(a, axis)) is not None:
        mean, variance = result
        variance = variance if keepdims else variance.reshape(reduced_shape(a.shape, axis, False))
        divisor = _divisor(count, correction)
        return variance * variance.dtype.type(count / divisor if divisor else xp.inf), mean

    def work(a):
        mean = mean_kernel(xp, a, axis, True)
        deviation = xp.abs(a - mean) if a.dtype.kind == "c" else a - mean
        return add_reduce(xp, deviation * deviation, axis, True), mean

    total, mean = by_pieces(work, (a,), axis)
    total = xp.asarray(total) if keepdims else xp.asarray(total).reshape(reduced_shape(a.shape, axis, False))
    return xp.divide(total, xp.asarray(_divisor(count, correction), total.dtype)), mean


def var_kernel(xp, a, axis, keepdims, correction):
    return _variance(xp, a, axis, keepdims, correction)[0]


def _deviation(xp, a, axis, keepdims, correction):
    """(standard deviation, mean), the mean with its axes kept."""
    variance, mean = _variance(xp, a, axis, keepdims, correction)
    if outgrown(xp, variance):
        wide = a.astype(xp.complex128 if a.dtype.kind == "c" else xp.float64)
        variance = _variance(xp, wide, axis, keepdims, correction)[0]
    return xp.sqrt(variance).astype(mean.real.dtype, copy=False), mean


def _check_spread(name: str, refusal: str = "std and var"):
    def check(self, dim, correction, keepdim):
        if self.dtype.category < 2:
            raise RuntimeError(f"{refusal} only support floating point and complex dtypes")
        _warn_degrees(name, self, dim, correction)

    return check


def _warn_degrees(name: str, t, dim, correction) -> None:
    if count_of(t._array.shape, dim) - (1 if correction is None else correction) > 0:
        return
    axes = wrap_dims(dim if dim != () else None, t._array.ndim)
    if math.prod(s for d, s in enumerate(t._array.shape) if d not in axes):
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided "
            "by output numel).",
            stacklevel=6,
        )


def var_backward(g: Tensor, self: Tensor, dim, correction, keepdim: bool) -> Tensor:
    """The gradient of a variance."""
    count = count_of(self.shape, dim)
    divisor = count - (1 if correction is None else correction)
    deviation = self - self.mean(dim or None, True)
    return restore_dims(g, self.shape, dim, keepdim) * deviation * (2.0 / divisor if divisor else math.inf)


def std_backward(g: Tensor, self: Tensor, out: Tensor, dim, correction, keepdim: bool) -> Tensor:
    """The gradient of a standard deviation; zero where that is zero, and so is what is pushed through it."""
    return var_backward(g / (out * 2).masked_fill(out == 0, math.inf), self, dim, correction, keepdim)


_CORRECTED = "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)"

var = reduction(
    f"var.correction{_CORRECTED} -> Tensor",
    lower=lower_var,
    kernel=var_kernel,
    check=_check_spread("var"),
    cast=False,
    result=lambda d: d.to_real(),
    vjp=lambda g, self, dim, correction, keepdim: var_backward(g, self, dim, correction, keepdim),
    **HIDDEN,
)

std = reduction(
    f"std.correction{_CORRECTED} -> Tensor",
    lower=lower_var,
    kernel=lambda xp, *args: _deviation(xp, *args)[0],
    check=_check_spread("std"),
    cast=False,
    result=lambda d: d.to_real(),
    vjp=lambda g, self, out, dim, correction, keepdim: std_backward(g, self, out, dim, correction, keepdim),
    **HIDDEN,
)


# ---- variances with their means
def _with_mean(root: bool):
    def kernel(xp, a, dim, correction, keepdim):
        axis = wrap_dims(dim if dim != () else None, a.ndim)
        spread, mean = (_deviation if root else _variance)(xp, wide(xp, a), axis, keepdim, correction)
        real = spread.dtype if a.dtype.kind == "c" else a.dtype
        return xp.asarray(spread, real), xp.asarray(mean, a.dtype).reshape(reduced_shape(a.shape, axis, keepdim))

    return kernel


def _with_mean_meta(self, dim, correction, keepdim):
    shape = reduced_shape(self._array.shape, wrap_dims(dim if dim != () else None, self._array.ndim), keepdim)
    return Spec(shape, self.dtype.to_real()), Spec(shape, self.dtype)


def _mean_part(g, self, dim, keepdim):
    return restore_dims(g, self.shape, dim, keepdim).expand(self.shape) / max(count_of(self.shape, dim), 1)


def _sum_of(parts: list):
    parts = [p for p in parts if p is not None]
    return None if not parts else parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _var_mean_vjp(gs, self, dim, correction, keepdim):
    spread = None if gs[0] is None else var_backward(gs[0], self, dim, correction, keepdim)
    return _sum_of([spread, None if gs[1] is None else _mean_part(gs[1], self, dim, keepdim)])


def _std_mean_vjp(gs, self, out0, dim, correction, keepdim):
    spread = None if gs[0] is None else std_backward(gs[0], self, out0, dim, correction, keepdim)
    return _sum_of([spread, None if gs[1] is None else _mean_part(gs[1], self, dim, keepdim)])


var_mean = operator(
    f"var_mean.correction{_CORRECTED} -> (Tensor, Tensor)",
    lower=lower_var_mean,
    kernel=_with_mean(root=False),
    check=_check_spread("var_mean", "var_mean"),
    meta=_with_mean_meta,
    vjp={"self": _var_mean_vjp},
    vmap=lambda args, dims, size: batch_reduction(var_mean, args, dims),
    **HIDDEN,
    cost="cheap",
)

std_mean = operator(
    f"std_mean.correction{_CORRECTED} -> (Tensor, Tensor)",
    kernel=_with_mean(root=True),
    check=_check_spread("std_mean", "std_mean"),
    meta=_with_mean_meta,
    vjp={"self": _std_mean_vjp},
    vmap=lambda args, dims, size: batch_reduction(std_mean, args, dims),
    **HIDDEN,
    cost="cheap",
)


def _spreads(name: str, corrected, homes=("torch", "Tensor")):
    """The public function of a spread: by `unbiased`, by dims and `unbiased`, by `correction`."""
    returns = "(Tensor, Tensor)" if name.endswith("mean") else "Tensor"
    by_dim = composite(
        f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> {returns}", **HIDDEN
    )(lambda self, dim, unbiased, keepdim: dispatch(corrected, (self, dim, int(unbiased), keepdim)))
    of_all = composite(f"{name}(Tensor self, bool unbiased=True) -> {returns}", **HIDDEN)(
        lambda self, unbiased: dispatch(corrected, (self, None, int(unbiased), False))
    )
    return overloaded(name, by_dim, corrected, of_all, homes=homes)


_spreads("var", var)
_spreads("std", std)
_spreads("var_mean", var_mean, homes=("torch",))
_spreads("std_mean", std_mean, homes=("torch",))


# ---- logarithms of sums of exponentials
def _logsumexp(xp, a, axis: tuple, keepdims: bool):
    if not a.size:
        return xp.log(add_reduce(xp, a, axis, keepdims))

    def work(a):
        top = max_reduce(xp, a.real if a.dtype.kind == "c" else a, axis, True)
        top = xp.where(xp.isinf(top), top.dtype.type(0), top)
        return xp.log(add_reduce(xp, xp.exp(a - top), axis, True)) + top

    result = by_pieces(work, (a,), axis)
    return result if keepdims else result.reshape(reduced_shape(a.shape, axis, False))


logsumexp = reduction(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    lower=lower_logsumexp,
    kernel=_logsumexp,
    result=to_float,
    vjp=lambda g, self, out, dim, keepdim: (
        restore_dims(g, self.shape, dim, keepdim) * conj((self - restore_dims(out, self.shape, dim, keepdim)).exp())
    ),
    autocast_cuda="float32",
)
export("special", "logsumexp", logsumexp.function)


# ---- covariances
def _check_cov_weights(name: str, weights: Tensor, observations: int, integral: bool) -> None:
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
        )
    if integral and weights.dtype.category != 1:
        raise RuntimeError(
            f"cov(): expected {name} to have integral dtype but got {name} with {weights.dtype.scalar_name} dtype"
        )
    if not integral and not weights.dtype.is_floating_point:
        raise RuntimeError(
            f"cov(): expected {name} to have floating point dtype but got {name} with {weights.dtype.scalar_name} dtype"
        )
    if weights.numel() != observations:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {observations}"
        )
    if concrete(weights) and weights.numel() and numbers_of(weights).min() < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")


def _cov_norm(weights, aweights, total, correction: int):
    """What the sums of products are divided by."""
    if weights is not None and aweights is not None and correction:
        norm = total - correction * (weights * aweights).sum() / total
    else:
        norm = total - correction
    low = bool(norm <= 0) if not isinstance(norm, Tensor) or concrete(norm) else False
    if low:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            stacklevel=5,
        )
    return abs(norm * 0) if low else norm  # zero is positive: what is divided by it keeps its sign


@composite("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor")
def cov(self, correction, fweights, aweights):
    if self.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions"
        )
    if self.dtype is dtypes.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = self.reshape(1, -1) if self.ndim < 2 else self
    weights: Tensor | None = None
    if fweights is not None:
        _check_cov_weights("fweights", fweights, x.shape[1], integral=True)
        weights = fweights
    if aweights is not None:
        _check_cov_weights("aweights", aweights, x.shape[1], integral=False)
        weights = aweights if weights is None else weights * aweights
    total = x.shape[1] if weights is None else weights.sum()
    if weights is not None and concrete(total) and not total._array.any():
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    average = (x if weights is None else x * weights).sum(1)
    average = average / (total if weights is not None else x.new_full((), total, dtype=to_float(x.dtype)))
    norm = _cov_norm(weights, aweights, total, correction)
    x = x - average.unsqueeze(1)
    products = x @ conj((x if weights is None else x * weights).t())
    return (products / (norm if isinstance(norm, Tensor) else products.new_full((), norm))).squeeze()


@composite("corrcoef(Tensor self) -> Tensor")
def corrcoef(self):
    if self.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self.ndim} dimensions"
        )
    c = cov(self)
    if not c.ndim:
        return c / c
    spread = c.diagonal().real.sqrt() if c.dtype.is_complex else c.diagonal().sqrt()
    c = c / spread.unsqueeze(1) / spread.unsqueeze(0)
    if not c.dtype.is_complex:
        return c.clamp(-1, 1)

    return complex_(c.real.clamp(-1, 1), c.imag.clamp(-1, 1))
