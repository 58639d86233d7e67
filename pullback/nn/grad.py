"""Gradients of convolutions by name: `conv2d_input(shape, weight, grad_output)`, `conv2d_weight(input, shape, grad_output)`.

In: two of the three tensors of a convolution, the shape of the third, and the convolution's attributes. Out: the gradient of
the third, one of the results of `convolution_backward`, differentiable in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.tensor import Tensor
from ..ops.system.dispatch import dispatch
from ..ops.window.conv import convolution_backward

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

Ints = int | Sequence[int]


def _each(value: Ints, spatial: int) -> tuple[int, ...]:
    return (value,) * spatial if isinstance(value, int) else tuple(value)


def _gradient(which: int, g: Tensor, input: Tensor, weight: Tensor, stride, padding, dilation, groups) -> Tensor:
    spatial = g.ndim - 2
    attributes = (
        _each(stride, spatial),
        _each(padding, spatial),
        _each(dilation, spatial),
        False,
        (0,) * spatial,
        groups,
    )
    wanted = (which == 0, which == 1, False)
    return dispatch(convolution_backward, (g, input, weight, None, *attributes, wanted))[which]


def _declare(spatial: int) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    def of_input(
        input_size,
        weight: Tensor,
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        input = grad_output.new_empty(1).expand(tuple(input_size))
        return _gradient(0, grad_output, input, weight, stride, padding, dilation, groups)

    def of_weight(
        input: Tensor,
        weight_size,
        grad_output: Tensor,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        weight = grad_output.new_empty(1).expand(tuple(weight_size))
        return _gradient(1, grad_output, input, weight, stride, padding, dilation, groups)

    for function, what in ((of_input, "input"), (of_weight, "weight")):
        function.__name__ = function.__qualname__ = f"conv{spatial}d_{what}"
        function.__doc__ = f"The gradient of `conv{spatial}d` with respect to its {what}, which has the given size."
    return of_input, of_weight


conv1d_input, conv1d_weight = _declare(1)
conv2d_input, conv2d_weight = _declare(2)
conv3d_input, conv3d_weight = _declare(3)
