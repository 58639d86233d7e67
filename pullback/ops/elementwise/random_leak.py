"""The randomised leak: a slope that is drawn for each element that is not positive, the mean of its bounds otherwise.

In: tensors of real floats. Out: new tensors; `rrelu_with_noise` writes the slopes that it drew into its `noise`, 1 for elements
that are positive. Always: slopes are drawn in one place (`_rrelu_noise`), and have no gradient; those that were drawn are applied
by an operator of their own, so that a graph may keep them.
"""

from __future__ import annotations

import math

from ...core.device import device
from ...core.random import default_generator, generator_of
from ...core.random_streams import rrelu_noise
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..family.pointwise import pointwise
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import NONDIFFERENTIABLE, Spec
from ..system.record import refuse_gradients
from ..system.schema import wrong_type
from .activations import leaky_relu, leaky_relu_backward
from .array_kernels import number


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


def _leaked(xp, x, noise, lower, upper, training):
    if training:
        return x * noise
    leaked = xp.where(x > 0, x, x * number(xp, (lower + upper) / 2, x))
    return leaked if leaked.shape == noise.shape else xp.ascontiguousarray(xp.broadcast_arrays(leaked, noise)[0])


def _leak_rule(g, self, noise, lower, upper, training):
    return g * noise if training else leaky_relu_backward.function(g, self, (lower + upper) / 2, False)


leak_by_noise = pointwise(
    "_rrelu_leak(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False) -> Tensor",
    supports="real_float",
    kernel_name="leaky_relu_cpu",
    kernel=_leaked,
    function=False,
    method=False,
    inplace="hidden",
    vjp={"self": _leak_rule},
    node="RreluWithNoiseBackward0",
    inplace_node="RreluWithNoiseBackward1",
)


# ---- with noise
_BOUNDS = "Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None"
_HIDDEN = {"function": False, "method": False, "out": False, "tags": ("nondeterministic_seeded",)}


def _ordered(lower, upper) -> None:
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")


def _slopes(self: Tensor, noise: Tensor, lower, upper, training: bool, generator) -> Tensor:
    """The noise to apply: drawn in training, and otherwise what was given, which nobody reads."""
    if noise.shape != self.shape:
        raise RuntimeError(
            "noise tensor shape must match self tensor shape. Got "
            f"self.shape = {list(self.shape)} noise.shape = {list(noise.shape)}"
        )
    refuse_gradients("rrelu_with_noise", noise=noise)
    if not training:
        return noise
    if noise.dtype is not self.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.scalar_name} but found {noise.dtype.scalar_name}")
    _ordered(lower, upper)
    return dispatch(draw_slopes, (self.detach(), lower, upper, generator))


def _kept(noise: Tensor, slopes: Tensor) -> Tensor:
    return slopes if slopes is noise else noise.copy_(slopes)


@composite(f"rrelu_with_noise(Tensor self, Tensor(b!) noise, {_BOUNDS}) -> Tensor", **_HIDDEN)
def rrelu_with_noise(self, noise, lower, upper, training, generator):
    slopes = _slopes(self, noise, lower, upper, training, generator)
    _kept(noise, slopes)
    return leak_by_noise.function(self, slopes, lower, upper, training)


@composite(f"rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, {_BOUNDS}) -> Tensor(a!)", **_HIDDEN)
def rrelu_with_noise_(self, noise, lower, upper, training, generator):
    slopes = _slopes(self, noise, lower, upper, training, generator)
    _kept(noise, slopes)
    return leak_by_noise.inplace_function(self, slopes, lower, upper, training)


@composite(
    f"rrelu_with_noise_functional(Tensor self, Tensor noise, {_BOUNDS}) -> (Tensor, Tensor noise_out)", **_HIDDEN
)
def rrelu_with_noise_functional(self, noise, lower, upper, training, generator):
    slopes = _slopes(self, noise, lower, upper, training, generator)
    leaked = leak_by_noise.function(self, slopes, lower, upper, training)
    return leaked, slopes.clone() if slopes is noise else slopes


@composite(
    "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, "
    "bool self_is_result) -> Tensor",
    function=False,
    method=False,
)
def rrelu_with_noise_backward(grad_output, self, noise, lower, upper, training, self_is_result):
    if training:
        return grad_output * noise
    return leaky_relu_backward.function(grad_output, self, (lower + upper) / 2, self_is_result)


# ---- without
def _leak(input: Tensor, lower: float, upper: float, training: bool, generator, inplace: bool) -> Tensor:
    if not isinstance(input, Tensor):
        raise wrong_type("rrelu", leak_by_noise.schema.arguments[0], input)
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    _ordered(lower, upper)
    if inplace and not training:  # the slope of the result tells the input's: nothing that is overwritten is needed
        return leaky_relu.inplace_function(input, (lower + upper) / 2)
    noise = dispatch(draw_slopes, (input.detach(), lower, upper, generator)) if training else input.detach()
    run = leak_by_noise.inplace_function if inplace else leak_by_noise.function
    return run(input, noise, lower, upper, bool(training))


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
