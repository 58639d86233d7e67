"""Activation functions as `nn.functional` has them: `inplace=` on some, compositions, and the randomised leak.

In: tensors. Out: what the operators of `activations` and `smooth_activations` give. An in-place call changes its input
and returns it.
"""

from __future__ import annotations

import math

from ...core import modes
from ...core.device import device
from ...core.modes import ambient
from ...core.random import default_generator, generator_of
from ...core.random_streams import rrelu_noise
from ...core.tensor import PLAIN, Tensor
from ..family.base import operator
from ..family.pointwise import pointwise
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import NONDIFFERENTIABLE, Spec, export
from ..system.overrides import any_overridden, call_overridden
from ..system.schema import wrong_type
from .activations import (
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    leaky_relu_backward,
    prelu,
    relu,
    threshold,
)
from .array_kernels import number
from .exponential import sigmoid
from .smooth_activations import SELU_ALPHA, SELU_SCALE, celu, elu, mish, silu
from .trigonometric import tanh

export("nn.functional", "prelu", prelu.function)
export("nn.functional", "hardshrink", hardshrink.function)
export("nn.functional", "relu_", relu.inplace_function)


# ---- with `inplace=`
def _with_inplace(name: str, op) -> None:
    fresh, written = op.function, op.inplace_function

    def function(input: Tensor, inplace: bool = False) -> Tensor:
        if input.__class__ not in PLAIN or ambient.mode >= 2:
            if ambient.mode & modes.FUNCTION or any_overridden((input,)):
                return call_overridden(function, (input,), {"inplace": inplace})
        return written(input) if inplace else fresh(input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of each element."
    export("nn.functional", name, function)


for _name, _op in {
    "relu": relu,
    "silu": silu,
    "mish": mish,
    "hardsigmoid": hardsigmoid,
    "hardswish": hardswish,
}.items():
    _with_inplace(_name, _op)


@front("nn.functional.relu6")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Elements kept between 0 and 6."""
    return hardtanh.inplace_function(input, 0, 6) if inplace else hardtanh.function(input, 0, 6)


@front("nn.functional.hardtanh")
def hard_tanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Elements kept between `min_val` and `max_val`."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (hardtanh.inplace_function if inplace else hardtanh.function)(input, min_val, max_val)


@front("nn.functional.threshold")
def threshold_function(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """`value` where an element is not above the threshold."""
    return threshold_(input, threshold, value) if inplace else _threshold.function(input, threshold, value)


@front("nn.functional.elu")
def elu_function(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Elements where positive, `alpha * (exp(x) - 1)` elsewhere."""
    return (elu.inplace_function if inplace else elu.function)(input, alpha)


@front("nn.functional.celu")
def celu_function(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Elements where positive, `alpha * (exp(x / alpha) - 1)` elsewhere."""
    return (celu.inplace_function if inplace else celu.function)(input, alpha)


@front("nn.functional.selu")
def selu_function(input: Tensor, inplace: bool = False) -> Tensor:
    """The exponential linear unit that keeps mean and variance."""
    return (elu.inplace_function if inplace else elu.function)(input, SELU_ALPHA, SELU_SCALE)


@front("nn.functional.leaky_relu")
def leaky_relu_function(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Elements where positive, `negative_slope` times them elsewhere."""
    return (leaky_relu.inplace_function if inplace else leaky_relu.function)(input, negative_slope)


# ---- in place by name
_threshold = threshold


@front("torch.celu_", "nn.functional.celu_")
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu` in place."""
    return celu.inplace_function(input, alpha)


@front("torch.selu_", "nn.functional.selu_")
def selu_(input: Tensor) -> Tensor:
    """`selu` in place."""
    return elu.inplace_function(input, SELU_ALPHA, SELU_SCALE)


@front("nn.functional.elu_")
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`elu` in place."""
    return elu.inplace_function(input, alpha)


@front("nn.functional.hardtanh_")
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh` in place."""
    return hardtanh.inplace_function(input, min_val, max_val)


@front("nn.functional.leaky_relu_")
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`leaky_relu` in place."""
    return leaky_relu.inplace_function(input, negative_slope)


@front("torch.threshold_", "nn.functional.threshold_")
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold` in place. Elements that share memory are written once: doing it again would change nothing."""
    if 0 in input.stride():
        _threshold.inplace_function(_each_once(input), threshold, value)
        return input
    return _threshold.inplace_function(input, threshold, value)


def _each_once(t: Tensor) -> Tensor:
    """A view of the memory of an expanded tensor in which no element comes twice."""
    for dim, stride in enumerate(t.stride()):
        if stride == 0 and t.size(dim) > 1:
            t = t.narrow(dim, 0, 1)
    return t


# ---- compositions
@front("nn.functional.sigmoid")
def sigmoid_function(input: Tensor) -> Tensor:
    """`1 / (1 + exp(-x))`."""
    return sigmoid.function(input)


@front("nn.functional.tanh")
def tanh_function(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return tanh.function(input)


@front("nn.functional.softsign")
def softsign(input: Tensor) -> Tensor:
    """`x / (1 + |x|)`."""
    return input / (input.abs() + 1)


@front("nn.functional.tanhshrink")
def tanhshrink(input: Tensor) -> Tensor:
    """`x - tanh(x)`."""
    return input - input.tanh()


# ---- the randomised leak
def _noise(xp, x, lower, upper, generator):
    if xp.__name__ != "numpy":
        from ...core.random_philox import sample_on_device

        own = generator or generator_of(device("cuda", x.device.id))
        return sample_on_device(xp, rrelu_noise, own, x, lower, upper)
    return rrelu_noise(generator or default_generator, x, lower, upper)


draw_slopes = operator(
    "_rrelu_noise(Tensor self, Scalar lower, Scalar upper, Generator? generator=None) -> Tensor",
    kernel=_noise,
    meta=lambda self, lower, upper, generator: Spec(self.shape, self.dtype),
    vjp=NONDIFFERENTIABLE,
    function=False,
    method=False,
    tags=("nondeterministic_seeded",),
)


def _rrelu(xp, x, noise, lower, upper, training):
    if training:
        return x * noise
    leaked = xp.where(x > 0, x, x * number(xp, (lower + upper) / 2, x))
    return leaked if leaked.shape == noise.shape else xp.ascontiguousarray(xp.broadcast_arrays(leaked, noise)[0])


def _rrelu_rule(g, self, noise, lower, upper, training):
    return g * noise if training else leaky_relu_backward.function(g, self, (lower + upper) / 2, False)


rrelu_with_noise = pointwise(
    "rrelu_with_noise(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, "
    "bool training=False) -> Tensor",
    supports="real_float",
    kernel_name="leaky_relu_cpu",
    kernel=_rrelu,
    function=False,
    method=False,
    inplace="hidden",
    vjp={"self": _rrelu_rule},
)


def _leak(input: Tensor, lower: float, upper: float, training: bool, generator, inplace: bool) -> Tensor:
    if not isinstance(input, Tensor):
        raise wrong_type("rrelu", rrelu_with_noise.schema.arguments[0], input)
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    drawn = bool(training) and lower != upper
    if inplace and not drawn:  # the slope of the result tells the input's: nothing that is overwritten is needed
        return leaky_relu.inplace_function(input, (lower + upper) / 2)
    noise = dispatch(draw_slopes, (input.detach(), lower, upper, generator)) if drawn else input.detach()
    run = rrelu_with_noise.inplace_function if inplace else rrelu_with_noise.function
    return run(input, noise, lower, upper, drawn)


@front("torch.rrelu")
def rrelu(input: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator=None) -> Tensor:
    """A leak whose slope is drawn for each negative element in training, and is their mean otherwise."""
    return _leak(input, lower, upper, training, generator, inplace=False)


@front("torch.rrelu_", "nn.functional.rrelu_")
def rrelu_(input: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, generator=None) -> Tensor:
    """`rrelu` in place."""
    return _leak(input, lower, upper, training, generator, inplace=True)


@front("nn.functional.rrelu")
def rrelu_function(
    input: Tensor, lower: float = 0.125, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """`rrelu`, in place if asked."""
    return _leak(input, lower, upper, training, None, inplace)
