"""Arithmetic on elements: sums, products, negation, absolute values, and their combinations.

In: tensors and Python numbers. Out: declared operators. `conj(x)` and `zeros_like(x)` serve rules of other modules;
`conj` takes numbers, too.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.promotion import result_type
from ...core.tensor import Tensor
from ..eager.elementwise import KernelCase
from ..family.base import composite
from ..family.pointwise import INT_TO_FLOAT, pointwise
from ..system.calls import front
from ..system.operator import exports, find
from ..system.scalars import c_name, check_alpha, check_integers, is_bool
from .array_kernels import number


def conj(x):
    """The conjugate of a tensor or a number; real ones are themselves."""
    if isinstance(x, Tensor):
        return x.conj() if x.dtype.is_complex else x
    return x.conjugate() if isinstance(x, complex) else x


def zeros_like(x: Tensor) -> Tensor:
    """Zeros of the shape and dtype of a tensor."""
    return exports["torch"]["zeros_like"](x)


def _scaled(xp, x, alpha):
    return x if alpha.__class__ is int and alpha == 1 else xp.multiply(x, number(xp, alpha, x))


# ---- sums
def _check_sub(self, other, alpha=1) -> None:
    ours, theirs = is_bool(self), is_bool(other)
    if ours and theirs:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead."
        )
    if ours or theirs:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )
    if alpha.__class__ is int:  # added times -1, which is a number of 64 bits
        alpha = (2**63 - alpha) % 2**64 - 2**63
    check_alpha(self, other, alpha)


def _one_each(a, b, *rest) -> int:
    """Floating-point operations of one per element of the larger operand."""
    return max((t.numel() for t in (a, b) if isinstance(t, Tensor)), default=0)


add = pointwise(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    ufunc="add",
    check=check_alpha,
    plain=KernelCase(),
    kernel=lambda xp, x, y, alpha: xp.add(x, _scaled(xp, y, alpha)),
    fitting=("alpha",),
    vjp={"self": lambda g: g, "other": lambda g, alpha: g if alpha == 1 else g * conj(alpha)},
    opaque="pair",
    flops=_one_each,
)

sub = pointwise(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    ufunc="subtract",
    direct="number",
    check=_check_sub,
    aliases=("subtract",),
    plain=KernelCase(),
    kernel=lambda xp, x, y, alpha: xp.subtract(x, _scaled(xp, y, alpha)),
    fitting=("alpha",),
    vjp={"self": lambda g: g, "other": lambda g, alpha: -g if alpha == 1 else g * -conj(alpha)},
)

rsub_scalar = pointwise(
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    numbers=(),
    operands=("self", "other"),
    check=_check_sub,
    kernel=lambda xp, x, y, alpha: xp.subtract(y, _scaled(xp, x, alpha)),
    fitting=("alpha",),
    plain=KernelCase(),
    function=False,
    method=False,
    inplace=False,
    number=1,
    vjp=lambda g, alpha: -g if alpha == 1 else g * -conj(alpha),
)

rsub = pointwise(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    check=_check_sub,
    kernel=lambda xp, x, y, alpha: xp.subtract(y, _scaled(xp, x, alpha)),
    fitting=("alpha",),
    overloads={"other": rsub_scalar},
    method=False,
    inplace=False,
    vjp={"self": lambda g, alpha: -g if alpha == 1 else g * -conj(alpha), "other": lambda g: g},
)


# ---- products
mul = pointwise(
    "mul.Tensor(Tensor self, Tensor other) -> Tensor",
    ufunc="multiply",
    wide=("other",),
    aliases=("multiply",),
    vjp={"self": lambda g, other: g * conj(other), "other": lambda g, self: g * conj(self)},
    opaque="all",
    flops=_one_each,
)

reciprocal = pointwise(
    "reciprocal(Tensor self) -> Tensor",
    promote=INT_TO_FLOAT,
    ufunc="reciprocal",
    inplace="function",
    vjp=lambda g, out: -g * conj(out * out),
    autocast_cuda="float32",
)


def _check_scale(self, tensor1, tensor2, value=1) -> None:
    if value.__class__ is not int or value != 1:
        check_integers(result_type(self, tensor1, tensor2), value)


addcmul = pointwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    numbers=(),
    check=_check_scale,
    supports="number",
    kernel_name="addcmul_cpu_out",
    plain=KernelCase(),
    kernel=lambda xp, x, a, b, value: x + _scaled(xp, a, value) * b,
    vjp={
        "self": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * conj(tensor2 if value == 1 else tensor2 * value),
        "tensor2": lambda g, tensor1, value: g * conj(tensor1 if value == 1 else tensor1 * value),
    },
    autocast_cuda="widest",
)


def check_addcdiv(self, tensor1, tensor2, value=1) -> None:
    if tensor1.dtype.category <= dtypes.INT and tensor2.dtype.category <= dtypes.INT:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )


addcdiv = pointwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    numbers=(),
    check=check_addcdiv,
    plain=KernelCase(),
    kernel=lambda xp, x, a, b, value: x + _scaled(xp, a, value) / b,
    vjp={
        "self": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * conj(find("div.Tensor")(value, tensor2)),  # rounded once
        "tensor2": lambda g, tensor1, tensor2, value: -g * conj(tensor1 * value / (tensor2 * tensor2)),
    },
    autocast_cuda="widest",
)


# ---- interpolation
def _check_lerp(self, end, weight) -> None:
    for name, x in (("end", end), ("weight", weight)):
        if isinstance(x, Tensor) and x.dtype is not self.dtype and (x is end or x._array.ndim):
            ours, theirs = c_name(self.dtype), c_name(x.dtype)
            raise RuntimeError(f"expected dtype {ours} for `{name}` but got dtype {theirs}")
    if self.dtype.category <= dtypes.INT:
        kind = "tensor" if isinstance(weight, Tensor) else "scalar"
        raise NotImplementedError(f"\"lerp_kernel_{kind}\" not implemented for '{self.dtype.scalar_name}'")


def _lerp(xp, start, end, weight):
    """From the nearer end, so that either end is met exactly."""
    difference = end - start
    if getattr(weight, "ndim", 0):
        return xp.where(xp.abs(weight) < 0.5, start + weight * difference, end - difference * (1 - weight))
    if abs(weight) < 0.5:
        return start + difference * number(xp, weight, difference)
    return end - difference * number(xp, 1 - weight, difference)


lerp_scalar = pointwise(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    operands=("self", "end", "weight"),
    wide=("weight",),
    numbers=(),
    check=_check_lerp,
    kernel=_lerp,
    plain=KernelCase(),
    function=False,
    method=False,
    inplace="hidden",
    vjp={"self": lambda g, weight: g * (1 - conj(weight)), "end": lambda g, weight: g * conj(weight)},
)

lerp = pointwise(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    numbers=(),
    check=_check_lerp,
    kernel=_lerp,
    plain=KernelCase(),
    overloads={"weight": lerp_scalar},
    number=1,
    vjp={
        "self": lambda g, weight: g * conj(1 - weight),
        "end": lambda g, weight: g * conj(weight),
        "weight": lambda g, self, end: g * conj(end - self),
    },
)


# ---- signs
def _check_neg(self) -> None:
    if self.dtype is dtypes.bool:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        )


neg = pointwise(
    "neg(Tensor self) -> Tensor",
    numbers=(),
    check=_check_neg,
    ufunc="negative",
    dense_writes=True,  # NumPy 2.4 reads the wrong elements of rows with some strides when the result has strides too
    direct="number",
    aliases=("negative",),
    inplace="function",
    vjp=lambda g: -g,
    opaque="all",
    zero="linear",
)

abs_ = pointwise(
    "abs(Tensor self) -> Tensor",
    numbers=(),
    supports="number",
    ufunc="absolute",
    result=lambda d: d.to_real(),
    aliases=("absolute",),
    inplace="hidden",
    vjp=lambda g, self: g * self.sgn(),
    zero="kept",
)


@front("torch.abs_", "Tensor.abs_", "Tensor.absolute_")
def abs_inplace(input: Tensor) -> Tensor:
    """`abs` in place; complex tensors cannot hold their absolute values' dtype, so they are refused."""
    if input.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return abs_.inplace_function(input)


@composite("positive(Tensor(a) self) -> Tensor(a)", out=False)
def positive(self):
    if self.dtype is dtypes.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


# ---- pairs of numbers
hypot = pointwise(
    "hypot(Tensor self, Tensor other) -> Tensor",
    numbers=(),
    supports="real_float",
    ufunc="hypot",
    vjp={"self": lambda g, self, out: g * (self / out), "other": lambda g, other, out: g * (other / out)},
)

gcd = pointwise(
    "gcd(Tensor self, Tensor other) -> Tensor", numbers=(), supports="integer", ufunc="gcd", inplace="function"
)
lcm = pointwise(
    "lcm(Tensor self, Tensor other) -> Tensor", numbers=(), supports="integer", ufunc="lcm", inplace="function"
)
