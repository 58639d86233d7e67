"""Activation functions made of straight pieces: thresholds, limits, shrinking, leaks.

Each function `f` has an `f_backward(grad_output, self, ...)` operator, one pass over memory, which is differentiable in
turn: linear in `grad_output`, flat in `self` but for `hardswish`. `activation_functions` has the `nn.functional` forms.
"""

from __future__ import annotations

from ...core.dtype import BOOL, COMPLEX, finfo
from ...core.promotion import result_type
from ...core.tensor import Tensor
from ..eager.elementwise import KernelCase
from ..family.base import composite
from ..family.pointwise import pointwise
from ..system.scalars import check_integers
from .arithmetic import zeros_like
from .array_kernels import masked, number
from .selection import where

HIDDEN = dict(function=False, method=False, inplace=False)


def _masked(xp, x, mask, value):
    """`masked`, where the mask may broadcast against `x`."""
    return masked(xp, x, mask, value) if mask.shape == x.shape else xp.where(mask, number(xp, value, x), x)


# ---- thresholds
def _check_relu(self) -> None:
    if self.dtype.category == BOOL:
        raise RuntimeError("Boolean inputs not supported for relu")
    if self.dtype.category == COMPLEX:
        raise NotImplementedError("clamp is not supported for complex types")


threshold_backward = pointwise(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    check=lambda grad_output, self, threshold: check_integers(result_type(grad_output, self), threshold),
    kernel=lambda xp, g, x, threshold: _masked(xp, g, x <= number(xp, threshold, x), 0),
    supports="real_number",
    last_leads=True,
    plain=KernelCase(),
    **HIDDEN,
    vjp={
        "grad_output": lambda g, self, threshold: threshold_backward.function(g, self, threshold),
        "self": lambda g: zeros_like(g),
    },
    opaque="all",
)

relu = pointwise(
    "relu(Tensor self) -> Tensor",
    numbers=(),
    check=_check_relu,
    ufunc="maximum",
    constant=0,
    direct="real_number",
    kernel=lambda xp, x: xp.maximum(number(xp, 0, x), x),
    inplace="function",
    vjp=lambda g, out: threshold_backward.function(g, out, 0),
    opaque="all",
    zero="kept",
)

threshold = pointwise(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    inplace_node="ThresholdBackward1",
    numbers=(),
    check=lambda self, threshold, value: check_integers(self.dtype, threshold, value),
    supports="real_number",
    kernel=lambda xp, x, threshold, value: masked(xp, x, x <= number(xp, threshold, x), value),
    fitting=("value",),
    plain=KernelCase(),
    method=False,
    inplace="hidden",
    vjp=lambda g, self, threshold: threshold_backward.function(g, self, threshold),
)


def _check_hardtanh(self, min_val, max_val) -> None:
    if self.dtype.category == BOOL:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if self.dtype.category == COMPLEX:
        raise NotImplementedError("clamp is not supported for complex types")
    if not self.dtype.is_signed and (int(min_val) < 0 or int(max_val) < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    check_integers(self.dtype, min_val, max_val)


hardtanh_backward = pointwise(
    "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    kernel=lambda xp, g, x, low, high: _masked(xp, g, (x <= number(xp, low, x)) | (x >= number(xp, high, x)), 0),
    supports="real_float",
    kernel_name="hardshrink_backward_cpu",
    plain=KernelCase(),
    **HIDDEN,
    vjp={
        "grad_output": lambda g, self, min_val, max_val: hardtanh_backward.function(g, self, min_val, max_val),
        "self": lambda g: zeros_like(g),
    },
)

hardtanh = pointwise(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    numbers=(),
    check=_check_hardtanh,
    kernel=lambda xp, x, low, high: xp.minimum(number(xp, high, x), xp.maximum(number(xp, low, x), x)),
    fitting=("min_val", "max_val"),
    plain=KernelCase(),
    function=False,
    method=False,
    inplace="hidden",
    vjp=lambda g, self, min_val, max_val: hardtanh_backward.function(g, self, min_val, max_val),
)

relu6 = composite("relu6(Tensor self) -> Tensor", function=False, method=False)(lambda self: hardtanh(self, 0, 6))


@composite("_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", method=False)
def add_relu(self, other, alpha):
    """The sum, and 0 where it is negative."""
    return self.add(other, alpha=alpha).relu()


# ---- shrinking
def _check_lambd(self, lambd) -> None:
    if not self.dtype.is_floating_point or 0 <= lambd <= 1:
        return
    name, largest = self.dtype.scalar_name, finfo(self.dtype).max
    if not 0 <= lambd <= largest:
        raise RuntimeError(f"lambda must be in range [0, {largest:g}] for input dtype {name}, but found {lambd:g}")


def _inside(xp, x, lambd):
    return (x >= number(xp, -lambd, x)) & (x <= number(xp, lambd, x))


def _shrink(name: str, kernel, check, kernel_name: str, **options):
    """A function that is zero within ±lambd, and its backward, which is zero there too."""

    def rule(g, self, lambd):
        return backward.function(g, self, lambd)

    incoming = "grad_out" if name == "hardshrink" else "grad_output"
    backward = pointwise(
        f"{name}_backward(Tensor {incoming}, Tensor self, Scalar lambd) -> Tensor",
        kernel=lambda xp, g, x, lambd: _masked(xp, g, _inside(xp, x, lambd), 0),
        fitting=("lambd",),
        supports="real_float",
        plain=KernelCase(),
        **HIDDEN,
        vjp={incoming: rule, "self": lambda g: zeros_like(g)},
    )
    return backward, pointwise(
        f"{name}(Tensor self, Scalar lambd=0.5) -> Tensor",
        numbers=(),
        supports="real_float",
        kernel_name=kernel_name,
        check=check,
        kernel=kernel,
        plain=KernelCase(),
        inplace=False,
        vjp=rule,
        **options,
    )


hardshrink_backward, hardshrink = _shrink(
    "hardshrink",
    lambda xp, x, lambd: masked(xp, x, _inside(xp, x, lambd), 0),
    None,
    "hardshrink_cpu",
    fitting=("lambd",),
)
softshrink_backward, softshrink = _shrink(
    "softshrink",
    lambda xp, x, lambd: x - xp.minimum(xp.maximum(x, number(xp, -lambd, x)), number(xp, lambd, x)),
    _check_lambd,
    "softshrink_check",
    public="nn.functional.softshrink",
)


# ---- piecewise linear
def _leak(xp, value, x, slope):
    """`value` where `x` is positive, and `slope` times it elsewhere."""
    leaked = value * number(xp, slope, value)
    return (
        masked(xp, leaked, x > number(xp, 0, x), value)
        if value.shape == leaked.shape == x.shape
        else xp.where(x > 0, value, leaked)
    )


leaky_relu_backward = pointwise(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
    kernel=lambda xp, g, x, slope, is_result: _leak(xp, g, x, slope),
    supports="real_float",
    last_leads=True,
    plain=KernelCase(),
    **HIDDEN,
    vjp={
        "grad_output": lambda g, self, negative_slope: leaky_relu_backward.function(g, self, negative_slope, False),
        "self": lambda g: zeros_like(g),
    },
)

leaky_relu = pointwise(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    inplace_node="LeakyReluBackward1",
    numbers=(),
    supports="real_float",
    kernel=lambda xp, x, slope: _leak(xp, x, x, slope),
    plain=KernelCase(),
    function=False,
    method=False,
    inplace="hidden",
    vjp=lambda g, self, negative_slope: leaky_relu_backward.function(g, self, negative_slope, False),
)

prelu_kernel = pointwise(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    supports="real_float",
    kernel_name="prelu_cpu",
    kernel=lambda xp, x, weight: xp.where(x > 0, x, weight * x),
    **HIDDEN,
    vjp={
        "self": lambda g, self, weight: where(self > 0, g, weight * g),
        "weight": lambda g, self: where(self > 0, 0, self * g),
    },
)


@composite(
    "prelu(Tensor self, Tensor weight) -> Tensor",
    out=False,
    autocast_cpu="lower",
    autocast_cuda="lower",
)
def prelu(self, weight):
    if not isinstance(weight, Tensor):
        raise TypeError(f"prelu(): argument 'weight' (position 2) must be Tensor, not {type(weight).__name__}")
    if self.dtype is not weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {self.dtype.scalar_name} and {weight.dtype.scalar_name}"
        )
    if weight.numel() != 1:
        if self.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = self.shape[1] if self.ndim > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if self.ndim != weight.ndim:
        shape = [1] * self.ndim
        if self.ndim > 1:
            shape[1] = weight.numel()
        weight = weight.reshape(tuple(shape))
    return prelu_kernel(self, weight)


def _hard_sigmoid(xp, x):
    six = number(xp, 6, x)
    return xp.minimum(xp.maximum(x + number(xp, 3, x), number(xp, 0, x)), six) / six


def _hard_sigmoid_slope(xp, g, x):
    outside = (x <= number(xp, -3, x)) | (x >= number(xp, 3, x)) | (x != x)
    return _masked(xp, g * number(xp, 1 / 6, g), outside, 0)


hardsigmoid_backward = pointwise(
    "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
    kernel=_hard_sigmoid_slope,
    supports="real_float",
    plain=KernelCase(),
    **HIDDEN,
    vjp={"grad_output": lambda g, self: hardsigmoid_backward.function(g, self), "self": lambda g: zeros_like(g)},
)

hardsigmoid = pointwise(
    "hardsigmoid(Tensor self) -> Tensor",
    numbers=(),
    supports="real_float",
    kernel=_hard_sigmoid,
    plain=KernelCase(),
    function=False,
    method=False,
    inplace="hidden",
    vjp=lambda g, self: hardsigmoid_backward.function(g, self),
)

hardswish_backward = pointwise(
    "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
    kernel=lambda xp, g, x: xp.where(x <= -3, xp.zeros((), g.dtype), xp.where(x < 3, g * (x / 3 + 0.5), g)),
    supports="real_float",
    plain=KernelCase(),
    **HIDDEN,
    vjp={
        "grad_output": lambda g, self: hardswish_backward.function(g, self),
        "self": lambda g, grad_output, self: where((self > -3).logical_and(self < 3), g * grad_output / 3, 0),
    },
)

hardswish = pointwise(
    "hardswish(Tensor self) -> Tensor",
    numbers=(),
    supports="real_float",
    kernel=lambda xp, x: x * _hard_sigmoid(xp, x),
    plain=KernelCase(),
    function=False,
    method=False,
    inplace="hidden",
    vjp=lambda g, self: hardswish_backward.function(g, self),
)
