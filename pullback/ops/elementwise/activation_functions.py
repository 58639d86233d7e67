"""Activation functions as `nn.functional` has them: `inplace=` on some and compositions.

In: tensors. Out: what the operators of `activations` and `smooth_activations` give. An in-place call changes its input
and returns it.
"""

from __future__ import annotations

from ...core import modes
from ...core.modes import ambient
from ...core.tensor import PLAIN, Tensor
from ..system.calls import front
from ..system.operator import export
from ..system.overrides import any_overridden, call_overridden
from .activations import (
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    prelu,
    relu,
    threshold,
)
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
