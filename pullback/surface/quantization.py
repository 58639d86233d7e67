"""What programs that can be quantized need before they are: stubs, and arithmetic as modules (`torch.ao.quantization`).

Quantization itself is not built: what would quantize raises and says so. A model written with these runs in floats.
"""

from __future__ import annotations

from ..core.tensor import Tensor
from ..nn.linear import Identity
from ..nn.module import Module
from ..ops.system.operator import public


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


def _absent(*args, **kwargs):
    raise NotImplementedError("quantization is not implemented in pullback: models run in floats")


prepare = prepare_qat = convert = fuse_modules = fuse_modules_qat = quantize = quantize_dynamic = quantize_qat = _absent
QConfig = default_observer = default_weight_observer = get_default_qconfig = get_default_qat_qconfig = _absent
