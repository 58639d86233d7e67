"""Custom functions that stood in for operators before these had derivatives; programs still name one of them."""

from __future__ import annotations

import math

from ..core.tensor import Tensor
from .function import Function


class Resize(Function):
    """`Resize.apply(tensor, sizes)`: the same elements in another shape."""

    @staticmethod
    def forward(ctx, tensor: Tensor, sizes: tuple) -> Tensor:
        if math.prod(sizes) != tensor.numel():
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({math.prod(sizes)} elements in total), but the "
                f"given tensor has a size of {'x'.join(map(str, tensor.size()))} ({tensor.numel()} elements). "
                "autograd's resize can only change the shape of a given tensor, while preserving the number of "
                "elements. "
            )
        ctx.input_sizes = tensor.size()
        return tensor.contiguous().view(*sizes) if tensor.is_contiguous() else tensor.reshape(*sizes).clone()

    @staticmethod
    def backward(ctx, grad_output: Tensor) -> tuple:
        return grad_output.contiguous().view(ctx.input_sizes), None
