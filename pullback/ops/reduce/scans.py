"""Scans: running sums, products and extremes along a dimension; differences and integrals of samples.

A scan's result has the shape of its input. Integer sums and products are int64. The gradient of `cumprod` is exact
where factors are zero: it is an affine recurrence, an operator of its own whose gradient is the same recurrence
backwards.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core import native
from ...core.geometry import wrap_dim, wrap_dims
from ...core.tensor import Tensor, wrap_dim_of_scalar
from ..eager.functions import ANY
from ..elementwise.arithmetic import conj
from ..family.along import along
from ..family.base import composite, operator
from ..family.reduction import INT_TO_LONG
from ..shape.joining import cat
from ..system.calls import front
from ..system.concrete import may_have_zeros
from ..system.operator import LINEAR, Spec
from ..system.overloads import mismatch, overloaded
from ..system.precision import widened
from . import scan_kernels as kernels
from .reductions import HIDDEN, not_implemented
from .scan_lowering import lower_cumprod, lower_cumsum, lower_logcumsumexp, running_extreme


def _cat(*parts: Tensor, dim: int) -> Tensor:
    return cat(parts, dim)


# ---- sums and products
def _reverse_cumsum(g: Tensor, dim: int) -> Tensor:
    return g if g.ndim == 0 or g.shape[dim] <= 1 else g.flip(dim).cumsum(dim).flip(dim)


cumsum = along(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    lower=lower_cumsum,
    kernel=kernels.running_sum,
    result=INT_TO_LONG,
    cast=True,
    split=not native.available,
    inplace=True,
    vjp=lambda g, self_dtype, dim: _reverse_cumsum(g.to(self_dtype), dim),
    jvp=LINEAR,
    autocast_cuda="float32",
)


def _shifted(x: Tensor, dim: int, by: int, filler: float = 0) -> Tensor:
    """`x` moved one place along `dim`, up (1) or down (-1), with `filler` moved in."""
    n = x.shape[dim]
    if not n:
        return x
    gap = x.new_full((*x.shape[:dim], 1, *x.shape[dim + 1 :]), filler)
    return _cat(gap, x.narrow(dim, 0, n - 1), dim=dim) if by > 0 else _cat(x.narrow(dim, 1, n - 1), gap, dim=dim)


def _reverse_scan(rate: Tensor, value: Tensor, dim: int) -> Tensor:
    """s[k] = value[k] + rate[k + 1] * s[k + 1]."""
    return affine_scan(_shifted(rate, dim, -1).flip(dim), value.flip(dim), dim).flip(dim)


def _affine_vjp(g, rate, out, dim, mask):
    back = _reverse_scan(conj(rate), g, dim)
    return back * conj(_shifted(out, dim, 1)) if mask[0] else None, back


affine_scan = operator(
    "_affine_scan(Tensor rate, Tensor value, int dim) -> Tensor",
    kernel=widened(kernels.affine),
    meta=lambda rate, value, dim: Spec(value._array.shape, value.dtype),
    vjp={("rate", "value"): _affine_vjp},
    vmap=lambda args, dims, size: _affine_vmap(args, dims, size),
    **HIDDEN,
    cost="compute",
)


def _affine_vmap(args, dims, size):
    rate, value = (
        t.movedim(d, 0) if d is not None else t.unsqueeze(0) for t, d in zip(args[:2], dims[:2], strict=True)
    )
    shape = (size, *value.shape[1:])
    return affine_scan(rate.expand(shape), value.expand(shape), args[2] + 1), 0


def _cumprod_vjp(g, self, out, dim):
    """Of `self` alone, as for `prod`: `out` is kept so that a write to the result is noticed."""
    return _cumprod_rule(g, self, cumprod(self, dim), dim)


def _cumprod_rule(g, self, out, dim):
    g = g.to(self.dtype)
    if not self.ndim or not self.shape[dim]:
        return g
    dim = wrap_dim(dim, self.ndim)
    out = out.to(self.dtype)
    if may_have_zeros(self):
        return conj(_shifted(out, dim, 1, filler=1)) * _reverse_scan(conj(self), g, dim)
    return _reverse_cumsum(g * conj(out), dim) / conj(self)


cumprod = along(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    lower=lower_cumprod,
    kernel=kernels.running_product,
    result=INT_TO_LONG,
    cast=True,
    split=True,
    inplace=True,
    vjp=_cumprod_vjp,
    autocast_cuda="float32",
)


@composite("cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor", **HIDDEN)
def cumprod_backward(grad, input, dim, output):
    return _cumprod_rule(grad, input, output, dim)


# ---- extremes
def _scatter_add(g: Tensor, shape, indices: Tensor, dim: int) -> Tensor:
    return g.new_zeros(shape).scatter_add(dim, indices, g)


def _real_only(kernel: str):
    def check(self, dim):
        if self.dtype.is_complex:
            raise not_implemented(kernel, self.dtype)

    return check


def _same_dtype(result, out) -> None:
    if out.dtype is not result.dtype:
        raise RuntimeError(f"expected scalar_type {result.dtype.scalar_name} but found {out.dtype.scalar_name}")


def _check_running(name: str):
    check_dtype = _real_only(name)

    def check(self, dim):
        if not self._array.ndim and dim not in (-1, 0):
            raise IndexError(f"Expected reduction dim -1 or 0 for scalar but got {dim}")
        check_dtype(self, dim)

    return check


def _running(name: str, kernel):
    return along(
        f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        lower=running_extreme(name.removeprefix("cum")),
        kernel=kernel,
        check=_check_running(f"{name}_cpu"),
        check_out=_same_dtype,
        split=True,
        vjp=lambda g, self_shape, indices, dim: _scatter_add(g, self_shape, indices, dim),
    )


cummax = _running("cummax", kernels.running_max)
cummin = _running("cummin", kernels.running_min)


@composite("cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor", **HIDDEN)
def cummaxmin_backward(grad, input, indices, dim):
    return _scatter_add(grad, input.shape, indices, dim)


# ---- log of sums of exponentials
def _logcumsumexp_vjp(g, self, out, dim):
    """Sums of g * exp(self - out) from each place on, by a scan over exp(out[k - 1] - out[k]), which is at most 1.

    The rule is linear in `g` as it stands, so that it differentiates again; sums of nothing (-inf) carry no gradient.
    """
    nothing = out == float("-inf")
    weight = conj((self - out).masked_fill(nothing, float("-inf")).exp())
    if not self.ndim:
        return g * weight
    dim = wrap_dim(dim, self.ndim)
    before = _shifted(out, dim, 1, filler=float("-inf"))
    change = (before - out).masked_fill(
        (before == out) & out.isinf(), 0
    )  # from infinity on, what comes does not matter
    rate = change.masked_fill(nothing, float("-inf")).exp()
    return weight * _reverse_scan(conj(rate), g, dim)


def _check_float(self, dim):
    if self.dtype.category < 2:
        raise not_implemented("logcumsumexp_out_cpu", self.dtype)


logcumsumexp = along(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    lower=lower_logcumsumexp,
    kernel=kernels.running_logsumexp,
    check=_check_float,
    check_out=_same_dtype,
    split=True,
    vjp=_logcumsumexp_vjp,
)


# ---- differences
def _check_diff(self, n, dim, prepend, append):
    if not self.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = wrap_dim(dim, self.ndim)
    for other in (prepend, append):
        if other is None:
            continue
        if other.ndim != self.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for i in range(self.ndim):
            if i != dim and other.shape[i] != self.shape[i]:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    "differencing "
                    f"dimension; input.size({i}) = {self.shape[i]}, but got tensor.size({i}) = {other.shape[i]}"
                )


@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
)
def diff(self, n, dim, prepend, append):
    _check_diff(self, n, dim, prepend, append)
    if n == 0:
        return self.clone()
    x = (
        self
        if prepend is None and append is None
        else _cat(*(t for t in (prepend, self, append) if t is not None), dim=dim)
    )
    for _ in range(min(n, x.shape[dim])):
        m = x.shape[dim] - 1
        right, left = x.narrow(dim, 1, m), x.narrow(dim, 0, m)
        x = right.logical_xor(left) if x.dtype is dtypes.bool else right - left
    return x


# ---- integrals
def _check_samples(name: str, y: Tensor, dim: int, x: Tensor | None = None) -> int:
    if y.dtype is dtypes.bool or x is not None and x.dtype is dtypes.bool:
        raise RuntimeError(
            f"{name}: received a bool input for {'`y`' if x is None else '`x` or `y`'}, but bool is not supported"
        )
    if not y.ndim:
        if name == "cumulative_trapezoid":
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        wrap_dim_of_scalar(dim)
    return wrap_dim(dim, y.ndim)


def _spacings(name: str, y: Tensor, x: Tensor, dim: int) -> Tensor:
    """Differences of sample points, with as many dimensions as the samples."""
    if x.ndim == 1 and x.ndim < y.ndim:
        if x.shape[0] != y.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = x.reshape([x.shape[0] if d == dim else 1 for d in range(y.ndim)])
    elif x.ndim < y.ndim:
        x = x.reshape((1,) * (y.ndim - x.ndim) + tuple(x.shape))
    n = max(x.shape[dim] - 1, 0)
    return x.narrow(dim, min(1, x.shape[dim]), n) - x.narrow(dim, 0, n)


def _pairs(y: Tensor, dim: int) -> Tensor:
    """Sums of neighbours."""
    n = max(y.shape[dim] - 1, 0)
    return y.narrow(dim, 0, n) + y.narrow(dim, min(1, y.shape[dim]), n)


def _empty_integral(y: Tensor, dim: int) -> Tensor:
    return y.new_zeros((*y.shape[:dim], *y.shape[dim + 1 :]))


def _trapezoid_x(y, x, dim):
    dim = _check_samples("trapezoid", y, dim, x)
    if not y.shape[dim]:
        return _empty_integral(y, dim)
    return (_pairs(y, dim) * _spacings("trapezoid", y, x, dim)).sum(dim) / 2.0


def _trapezoid_dx(y, dx, dim):
    dim = _check_samples("trapezoid", y, dim)
    if isinstance(dx, complex):
        raise RuntimeError("trapezoid: Currently, we only support dx as a real number.")
    if not y.shape[dim]:
        return _empty_integral(y, dim)
    return (y.sum(dim) - (y.select(dim, 0) + y.select(dim, -1)) * 0.5) * dx


def _integrals(name: str, with_x, with_dx):
    by_x = composite(f"{name}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", **HIDDEN)(with_x)
    by_dx = composite(f"{name}.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", **HIDDEN)(with_dx)
    return overloaded(name, by_x, by_dx, homes=("torch",))


def _cumulative_x(y, x, dim):
    dim = _check_samples("cumulative_trapezoid", y, dim, x)
    return (_pairs(y, dim) * _spacings("cumulative_trapezoid", y, x, dim)).cumsum(dim) / 2.0


def _cumulative_dx(y, dx, dim):
    dim = _check_samples("cumulative_trapezoid", y, dim)
    if isinstance(dx, complex):
        raise RuntimeError("cumulative_trapezoid: Currently, we only support dx as a real number.")
    return (dx / 2.0 * _pairs(y, dim)).cumsum(dim)


trapezoid = _integrals("trapezoid", _trapezoid_x, _trapezoid_dx)
trapz = _integrals("trapz", _trapezoid_x, _trapezoid_dx)
cumulative_trapezoid = _integrals("cumulative_trapezoid", _cumulative_x, _cumulative_dx)


# ---- numerical gradients
def _edges(f, step, order: int, dim: int, low: bool):
    """The one-sided estimate at an end; `step` gives the distances between the samples next to it."""
    n = f.shape[dim]
    at = (lambda k: f.narrow(dim, k, 1)) if low else (lambda k: f.narrow(dim, n - 1 - k, 1))
    sign = 1 if low else -1
    h1 = step(0 if low else n - 2)
    if order == 1:
        return (at(1) - at(0) if low else at(0) - at(1)) / h1
    h2 = step(1 if low else n - 3)
    a = -(2 * h1 + h2) / (h1 * (h1 + h2))
    b = (h1 + h2) / (h1 * h2)
    c = -h1 / (h2 * (h1 + h2))
    return sign * (a * at(0) + b * at(1) + c * at(2))


def _even(f: Tensor, spacing, dim: int, order: int) -> Tensor:
    n = f.shape[dim]
    center = (f.narrow(dim, 2, n - 2) - f.narrow(dim, 0, n - 2)) / (2 * spacing)
    ends = (_edges(f, lambda k: spacing, order, dim, low) for low in (True, False))
    return _cat(next(ends), center, next(ends), dim=dim)


def _uneven(f: Tensor, points: Tensor, dim: int, order: int) -> Tensor:
    n = f.shape[dim]
    shape = [-1 if d == dim else 1 for d in range(f.ndim)]
    step = points.diff().reshape(shape)
    m = step.shape[dim] - 1
    h1, h2 = step.narrow(dim, 0, m), step.narrow(dim, 1, m)
    a, b, c = -h2 / (h1 * (h1 + h2)), (h2 - h1) / (h1 * h2), h1 / (h2 * (h1 + h2))
    center = a * f.narrow(dim, 0, n - 2) + b * f.narrow(dim, 1, n - 2) + c * f.narrow(dim, 2, n - 2)
    last = step.shape[dim] - (n - 1)  # distances are counted from the end of the points at the upper edge
    ends = (
        _edges(f, lambda k, low=low: step.narrow(dim, k if low else k + last, 1), order, dim, low)
        for low in (True, False)
    )
    return _cat(next(ends), center, next(ends), dim=dim)


def _gradient_dims(input: Tensor, spacing, dim) -> tuple:
    dims = wrap_dims(None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim), input.ndim)
    if isinstance(spacing, (tuple, list)):
        if dim is None and len(spacing) != input.ndim:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                f"'self.dim() = {input.ndim}', since dim argument was not given, but got a list of length "
                f"{len(spacing)}"
            )
        if len(spacing) != len(dims):
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to "
                "have the same length, "
                f"but got a spacing argument of length {len(spacing)} and a dim argument of length {len(dims)}."
            )
    return dims


def _check_gradient(input: Tensor, spacing, dims: tuple, edge_order: int) -> None:
    if input.dtype is dtypes.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    for s in spacing if isinstance(spacing, (tuple, list)) else ():
        if isinstance(s, Tensor) and s.ndim != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{s.ndim} dimensions!"
            )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if any(input.shape[d] < edge_order + 1 for d in dims):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")


@front("torch.gradient", past=(ANY,))
def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """Estimates of the derivative of samples along dimensions, by central differences."""
    if not isinstance(spacing, (int, float, complex, tuple, list)) and spacing is not None:
        given = {} if dim is None else {"dim": dim}
        raise mismatch("gradient", (diff,), (input,), given | {"spacing": spacing})
    spacing = 1 if spacing is None else spacing
    dims = _gradient_dims(input, spacing, dim)
    _check_gradient(input, spacing, dims, edge_order)
    each = spacing if isinstance(spacing, (tuple, list)) else (spacing,) * len(dims)
    result = []
    for s, d in zip(each, dims, strict=True):
        result.append(_uneven(input, s, d, edge_order) if isinstance(s, Tensor) else _even(input, s, d, edge_order))
    return tuple(result)
