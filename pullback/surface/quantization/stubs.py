"""What programs that can be quantized are written with: marks where integers begin and end, and arithmetic as modules."""

from __future__ import annotations

from ...core.tensor import Tensor
from ...nn.linear import Identity
from ...nn.module import Module
from ...ops.system.operator import public


class QuantStub(Identity):
    """Where a quantized model would quantize its input; in floats, the input itself."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig


class DeQuantStub(QuantStub):
    """Where a quantized model would give floats again; in floats, the input itself."""


class FloatFunctional(Module):
    """Arithmetic as a module, so that a quantized model can observe it; in floats, the arithmetic."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process(x + y)

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process(x * y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        return x * y

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        return self.activation_post_process(public("torch", "cat")(x, dim=dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process((x + y).relu())

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        return self.activation_post_process(x @ y)
