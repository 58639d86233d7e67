"""One element or another: larger and smaller, limits, masks, replacements.

In: operands that broadcast; masks (`condition`, `mask`) broadcast with them and take no part in promotion. Ties share
the gradient in `maximum` and `minimum`; limits pass it to whichever operand was taken. A limit is the first operand of the
array library's function, which gives the second where both are equal: a zero keeps its sign.
"""

from __future__ import annotations

import warnings

import numpy as np

from ...core import dtype as dtypes
from ...core.arrays import library
from ...core.geometry import broadcast_shapes
from ...core.promotion import result_type
from ...core.tensor import META, Tensor
from ..eager.elementwise import KernelCase
from ..eager.kernels import run_into
from ..family.base import composite
from ..family.pointwise import POINTWISE, pointwise
from ..system.calls import front
from ..system.inplace import deprecated_on_expanded
from ..system.operator import exports
from ..system.scalars import c_name, check_fits, check_integers, is_bool, is_complex
from .array_kernels import masked, number


# ---- larger and smaller
def _check_ordered(name: str):
    def check(self, other) -> None:
        if is_complex(self) or is_complex(other):
            raise RuntimeError(f"{name} not implemented for complex tensors.")

    return check


def _tied(g, self, other, losing):
    return g.masked_fill(losing, 0).div(1 + (self == other).to(g.dtype))


maximum = pointwise(
    "maximum(Tensor self, Tensor other) -> Tensor",
    numbers=(),
    check=_check_ordered("maximum"),
    ufunc="maximum",
    direct="real",
    inplace=False,
    vjp={
        "self": lambda g, self, other: _tied(g, self, other, self < other),
        "other": lambda g, self, other: _tied(g, self, other, other < self),
    },
)

minimum = pointwise(
    "minimum(Tensor self, Tensor other) -> Tensor",
    numbers=(),
    check=_check_ordered("minimum"),
    ufunc="minimum",
    direct="real",
    inplace=False,
    vjp={
        "self": lambda g, self, other: _tied(g, self, other, self > other),
        "other": lambda g, self, other: _tied(g, self, other, other > self),
    },
)

fmax = pointwise(
    "fmax(Tensor self, Tensor other) -> Tensor",
    numbers=(),
    check=_check_ordered("fmax"),
    ufunc="fmax",
    direct="real",
    inplace=False,
    vjp={
        "self": lambda g, self, other: g.masked_fill((self >= other).logical_or(other.isnan()).logical_not(), 0),
        "other": lambda g, self, other: g.masked_fill((self >= other).logical_or(other.isnan()), 0),
    },
)

fmin = pointwise(
    "fmin(Tensor self, Tensor other) -> Tensor",
    numbers=(),
    check=_check_ordered("fmin"),
    ufunc="fmin",
    direct="real",
    inplace=False,
    vjp={
        "self": lambda g, self, other: g.masked_fill((self <= other).logical_or(other.isnan()).logical_not(), 0),
        "other": lambda g, self, other: g.masked_fill((self <= other).logical_or(other.isnan()), 0),
    },
)


# ---- limits
_MANY = 2048  # elements, below which two calls of the array library are as quick


def _limited(xp, x, low, high):
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if (whole := _limited_integers(xp, x, low, high)) is not None:
        return whole
    if low is not None:
        x = xp.maximum(_limit(xp, low, x), x)
    return x if high is None else xp.minimum(_limit(xp, high, x), x)


def _limited_integers(xp, x, low, high):
    """Many integers between numbers, else None: the array library does not vectorise the larger of an array and one number."""
    if xp is not np or x.dtype.kind not in "iu" or x.size < _MANY:
        return None
    ends = np.iinfo(x.dtype)
    low, high = (_limit(np, end if v is None else v, x) for v, end in ((low, ends.min), (high, ends.max)))
    return np.clip(x, low, high) if low.dtype == high.dtype == x.dtype and not low.ndim and not high.ndim else None


def _limit(xp, limit, like):
    return limit if hasattr(limit, "dtype") else number(xp, limit, like)


def _check_limits(self, min=None, max=None) -> None:
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if is_complex(self) or any(isinstance(limit, complex) for limit in (min, max)):
        raise NotImplementedError("clamp is not supported for complex types")
    for limit in (min, max):
        if limit is not None and not isinstance(limit, (Tensor, float)) and self.dtype.category == dtypes.INT:
            check_fits(limit, self.dtype)


def _inside(self, low, high):
    """Where an element is within its limits."""
    if high is None:
        return self >= low
    return self <= high if low is None else (self >= low).logical_and(self <= high)


def _limits_rule(g, self, min, max, mask):
    """Gradients of the element and of its two limits; where the limits cross, the upper one holds."""
    within = where(_inside(self, min, max), g, 0) if mask[0] else None
    low = high = None
    if mask[1]:
        below = self < min if max is None else (self < min).logical_and(min < max)
        low = where(below, g, 0)
    if mask[2]:
        above = self > max if min is None else (self > max).logical_or(max < min)
        high = where(above, g, 0)
    return within, low, high


def _clamp_name(self, min=None, max=None) -> str:
    if any(isinstance(v, Tensor) for v in (min, max)):
        return "clamp_cpu" if min is not None and max is not None else "maximum_cpu" if max is None else "minimum_cpu"
    return "clamp_scalar_cpu" if min is not None and max is not None else _one_sided("min" if max is None else "max")


def _one_sided(side: str) -> str:
    return f"clamp_{side}_scalar_cpu"


def _supported(self, min=None, max=None) -> str:
    tensors = any(isinstance(v, Tensor) for v in (min, max))
    return (
        "real" if tensors or not (is_bool(self) and all(v is None or is_bool(v) for v in (min, max))) else "real_number"
    )


clamp_number = pointwise(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    operands=("self", "min", "max"),
    fitting=("min", "max"),
    numbers=(),
    check=_check_limits,
    supports=_supported,
    kernel_name=_clamp_name,
    kernel=_limited,
    plain=KernelCase(check=False),
    function=False,
    method=False,
    inplace="hidden",
    number=1,
    vjp=lambda g, self, min, max: where(_inside(self, min, max), g, 0),
)

clamp = pointwise(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    check=_check_limits,
    supports="real",
    kernel_name=_clamp_name,
    kernel=_limited,
    overloads={"min": clamp_number, "max": clamp_number},
    inplace="function",
    aliases=("clip",),
    vjp={("self", "min", "max"): _limits_rule},
)


def _one_limit(side: str, ufunc: str, inside: str, outside: str):
    """`clamp_min` or `clamp_max`: a limit that is a number, and one that is a tensor."""

    def kernel(xp, x, limit):
        whole = _limited_integers(xp, x, *((limit, None) if side == "min" else (None, limit)))
        return getattr(xp, ufunc)(_limit(xp, limit, x), x) if whole is None else whole

    check = lambda self, limit: _check_limits(self, limit) if not isinstance(limit, Tensor) else None

    def taken(g, self, limit, which):
        return where(getattr(self, which)(limit), g, 0)

    rules = {
        "min": (lambda g, self, min: taken(g, self, min, inside), lambda g, self, min: taken(g, self, min, outside)),
        "max": (lambda g, self, max: taken(g, self, max, inside), lambda g, self, max: taken(g, self, max, outside)),
    }[side]
    number = pointwise(
        f"clamp_{side}(Tensor self, Scalar {side}) -> Tensor",
        operands=("self", side),
        fitting=(side,),
        numbers=(),
        check=check,
        supports=_supported,
        kernel_name=_one_sided(side),
        kernel=kernel,
        plain=KernelCase(check=False),
        function=False,
        method=False,
        inplace="hidden",
        vjp=rules[0],
    )
    return number, pointwise(
        f"clamp_{side}.Tensor(Tensor self, Tensor {side}) -> Tensor",
        supports="real",
        kernel_name=f"{ufunc}_cpu",
        ufunc=ufunc,
        overloads={side: number},
        inplace="function",
        number=1,
        vjp={"self": rules[0], side: rules[1]},
    )


clamp_min_number, clamp_min = _one_limit("min", "maximum", "ge", "lt")
clamp_max_number, clamp_max = _one_limit("max", "minimum", "le", "gt")


# ---- one or the other
def _check_condition(condition, self, other) -> None:
    if not isinstance(condition, Tensor):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    if condition.dtype is dtypes.uint8:
        warnings.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead.",
            stacklevel=2,
        )
    elif condition.dtype is not dtypes.bool:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype.scalar_name}"
        )
    numbers = [v for v in (self, other) if v.__class__ is int]
    if numbers:
        check_integers(result_type(self, other), *numbers)


def _where(xp, condition, x, y):
    if condition.shape == x.shape == y.shape and condition.dtype.kind == "b":
        return masked(xp, y, condition, x)
    return xp.where(condition, x, y)


def _check_where_out(result: Tensor, out: Tensor) -> None:
    if out.dtype is not result.dtype:
        raise RuntimeError(f"Expected out type to be {result.dtype.scalar_name} but got {out.dtype.scalar_name}")


where_op = pointwise(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    operands=("self", "other"),
    check=_check_condition,
    check_out=_check_where_out,
    kernel=_where,
    plain=KernelCase("all", check=False),
    native=True,
    function=False,
    method=False,
    inplace=False,
    vjp={"self": lambda g, condition: where(condition, g, 0), "other": lambda g, condition: where(condition, 0, g)},
)


@composite("where(Tensor condition) -> Tensor[]", function=False, method=False)
def where_true(condition):
    return list(condition.nonzero(as_tuple=True))


def where(condition: Tensor, x, y) -> Tensor:
    """`x` where the condition holds, `y` elsewhere: the operator, for rules."""
    return where_op.function(condition, x, y)


@front("torch.where", past=("where.self",))
def where_front(condition, input=None, other=None, *, self=None, out: Tensor | None = None):
    """Elements of `input` where the condition holds, of `other` elsewhere; alone, where the condition holds."""
    input = self if input is None else input
    if input is None and other is None:
        return exports["torch"]["nonzero"].__wrapped__(condition, as_tuple=True)  # who listens has heard of this call
    return where_op.function(condition, input, other, out=out)


@front("Tensor.where", past=("where.self",))
def where_method(input: Tensor, condition: Tensor, other) -> Tensor:
    """Elements of this tensor where the condition holds, of `other` elsewhere."""
    return where_op.function(condition, input, other)


# ---- masks
def _check_mask(self, mask, value) -> None:
    if mask.dtype is not dtypes.bool:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {c_name(mask.dtype)}")
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value._array.ndim} dimension(s)."
            )
    else:
        check_fits(value, self.dtype)
    if mask._array.shape != self._array.shape:
        broadcast_shapes(mask._array.shape, self._array.shape)


def _check_value(x, value) -> None:
    """Refuse a number that a tensor holds as any other: one that the elements cannot hold."""
    if hasattr(value, "dtype") and value.dtype is not x.dtype and value.size == 1 and x.dtype.kind != "b":
        check_fits(value.item(), dtypes.by_numpy[x.dtype])


def _masked_fill(xp, x, mask, value):
    _check_value(x, value)
    if x.dtype.kind not in "bc" and (
        isinstance(value, complex) or getattr(value, "dtype", None) and value.dtype.kind == "c"
    ):
        value = value.real
    if mask.shape == x.shape:
        return masked(xp, x, mask, xp.asarray(value).astype(x.dtype) if hasattr(value, "dtype") else value)
    return xp.where(mask, xp.asarray(value).astype(x.dtype), x)


def _masked_write(self: Tensor, mask: Tensor, value) -> None:
    """Element after element, so that one that is filled stays so wherever else it is seen."""
    if not self._keys & META:
        _check_mask(self, mask, value)
        xp, number = library(self.device), value._array if isinstance(value, Tensor) else value
        _check_value(self._array, number)
        xp.copyto(self._array, xp.asarray(number).astype(self._array.dtype), where=mask._array)


_masked_expanded = deprecated_on_expanded("masked_fill_", "tensor[mask] = scalar", _masked_write)


def _masked_fill_vmap(args: tuple, dims: tuple, size: int):
    """A batch of values is no longer one number: it is chosen by the mask as any tensor is."""
    x, mask, value = args
    if dims[2] is None:
        return POINTWISE.vmap(masked_fill, args, dims, size)
    return POINTWISE.vmap(where_op, (mask, value.to(x.dtype), x), (dims[1], dims[2], dims[0]), size)


masked_fill_number = pointwise(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    contiguous=True,
    operands=("self",),
    check=_check_mask,
    kernel=_masked_fill,
    plain=KernelCase("all"),
    native=True,
    function=False,
    method=False,
    inplace="hidden",
    expanded=_masked_expanded,
    vjp={"self": lambda g, mask: g.masked_fill(mask, 0)},
)

masked_fill = pointwise(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    contiguous=True,
    operands=("self",),
    check=_check_mask,
    kernel=_masked_fill,
    native=True,
    overloads={"value": masked_fill_number},
    vmap=_masked_fill_vmap,
    out=False,
    number=1,
    reads_first=True,
    expanded=_masked_expanded,
    vjp={"self": lambda g, mask: g.masked_fill(mask, 0), "value": lambda g, mask: where(mask, g, 0)},
)


# ---- replacements
def _nan_to_num(xp, x, nan, posinf, neginf):
    if x.dtype.kind == "c":
        rows = xp.ascontiguousarray(x)
        parts = rows.view(x.real.dtype)  # the two of each number, one after the other
        if xp is not np:
            return _nan_to_num(xp, parts, nan, posinf, neginf).view(x.dtype).reshape(x.shape)
        out = np.empty(rows.shape, x.dtype)
        run_into(nan_to_num, [parts, nan, posinf, neginf], out.view(parts.dtype))
        return out if out.shape == x.shape else out.reshape(x.shape)
    if x.dtype.kind in "biu":
        return x.copy()
    limits = dtypes.finfo(dtypes.by_numpy[x.dtype])
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    out = xp.where(xp.isnan(x), xp.asarray(0 if nan is None else nan).astype(x.dtype), x)
    out = xp.where(x == xp.inf, xp.asarray(high).astype(x.dtype), out)
    return xp.where(x == -xp.inf, xp.asarray(low).astype(x.dtype), out)


nan_to_num = pointwise(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    numbers=(),
    kernel=_nan_to_num,
    native=True,  # the largest number is that of the dtype itself
    inplace="function",
    vjp=lambda g, self: g * self.isfinite(),
    zero="kept",
)
