"""Modules of quantization-aware training: fused ones, which observers take for one, and ones that fake-quantize their weights.

In and out: floats. A fused module is a `Sequential` of its parts (`ConvReLU2d(conv, relu)`). A training module
(`qat`) has the parameters of the float module that it stands for, and `weight_fake_quant`, made of its `qconfig`.
Convolutions with a batch norm in training scale weights by running statistics before rounding, and undo the scale after, so
that rounding sees what will be folded and the norm sees whole batches.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...nn import functional as F
from ...nn.activation import ReLU
from ...nn.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ...nn.containers import Sequential
from ...nn.conv import Conv1d, Conv2d, Conv3d
from ...nn.embedding import Embedding, EmbeddingBag
from ...nn.linear import Linear
from ...nn.module import Module
from ...nn.utils.fusion import fuse_conv_bn_weights, fuse_linear_bn_weights


class FusedModule(Sequential):
    """Modules that are quantized as one."""


def _found(name: str, text: str) -> dict[str, str]:
    """Where pickle finds a class that is made here, whatever it prints as."""
    return {"__module__": __name__, "__qualname__": name, "__doc__": text}


def _fused(name: str, *parts: type) -> type:
    """A fused module of parts of these classes."""

    def __init__(self: Any, *modules: Module) -> None:
        wrong = [m for m, kind in zip(modules, parts, strict=True) if not isinstance(m, kind)]
        if wrong:
            raise AssertionError(
                f"Incorrect types for input modules of {name}: expected {', '.join(p.__name__ for p in parts)}, "
                f"got {', '.join(type(m).__name__ for m in modules)}"
            )
        Sequential.__init__(self, *modules)

    text = "Fused: " + ", ".join(p.__name__ for p in parts) + "."
    return type(name, (FusedModule,), {"__init__": __init__, **_found(name, text)})


ConvBn1d, ConvBn2d, ConvBn3d = (
    _fused(f"ConvBn{n}d", c, b)
    for n, c, b in ((1, Conv1d, BatchNorm1d), (2, Conv2d, BatchNorm2d), (3, Conv3d, BatchNorm3d))
)
ConvReLU1d, ConvReLU2d, ConvReLU3d = (
    _fused(f"ConvReLU{n}d", c, ReLU) for n, c in ((1, Conv1d), (2, Conv2d), (3, Conv3d))
)
ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d = (
    _fused(f"ConvBnReLU{n}d", c, b, ReLU)
    for n, c, b in ((1, Conv1d, BatchNorm1d), (2, Conv2d, BatchNorm2d), (3, Conv3d, BatchNorm3d))
)
LinearReLU, LinearBn1d = _fused("LinearReLU", Linear, ReLU), _fused("LinearBn1d", Linear, BatchNorm1d)
BNReLU2d, BNReLU3d = _fused("BNReLU2d", BatchNorm2d, ReLU), _fused("BNReLU3d", BatchNorm3d, ReLU)


# ---- training
def _rounding(cls: type, config: Any) -> Module:
    """What rounds the weight of a module of a class."""
    if not config:
        raise AssertionError(f"qconfig must be provided for {cls.__name__}")
    return config.weight()


def _take(cls: Any, module: Module, config: Any, **parts: Module) -> Any:
    """A training module in the place of a float one: the same parameters and attributes, and rounding of weights."""
    rounding = _rounding(cls, config)
    result = cls.__new__(cls)
    result.__dict__.update(module.__dict__)
    for kind in ("_parameters", "_buffers", "_modules"):
        result.__dict__[kind] = dict(module.__dict__[kind])
    result.qconfig = config
    for name, part in parts.items():
        setattr(result, name, part)
    result.weight_fake_quant = rounding
    return result


class WeightRounding:
    """Shared by modules that fake-quantize their weight."""

    weight: Any
    qconfig: Any
    weight_fake_quant: Any
    float_class: type

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The training module of a float one, whose parameters it shares; of a fused one, of its first part."""
        config = getattr(mod, "qconfig", None)
        return _take(cls, mod[0] if isinstance(mod, FusedModule) else mod, config)

    def to_float(self: Any) -> Any:
        """The float module with these parameters."""
        result = self.float_class.__new__(self.float_class)
        result.__dict__.update({k: v for k, v in self.__dict__.items() if k not in ("qconfig", "weight_fake_quant")})
        kept = ("weight_fake_quant", "activation_post_process", "bn")
        result.__dict__["_modules"] = {k: v for k, v in self._modules.items() if k not in kept}
        result.__dict__["_parameters"], result.__dict__["_buffers"] = dict(self._parameters), dict(self._buffers)
        result.__dict__["_forward_hooks"] = type(self._forward_hooks)()  # that of the observer among them
        return result

    @property
    def rounded(self) -> Tensor:
        return self.weight_fake_quant(self.weight)


class QatLinear(WeightRounding, Linear):
    """A linear layer whose weight is fake-quantized."""

    float_class = Linear

    def __init__(self, in_features, out_features, bias=True, qconfig=None, device=None, dtype=None):
        Linear.__init__(self, in_features, out_features, bias, device=device, dtype=dtype)
        self.qconfig, self.weight_fake_quant = qconfig, _rounding(type(self), qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.rounded, self.bias)


class QatLinearReLU(QatLinear):
    """A linear layer with rounded weight, and ReLU."""

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(super().forward(input))


def _rounding_conv(base: Any, relu: bool) -> type:
    name = base.__name__.replace("Conv", "ConvReLU") if relu else base.__name__

    def __init__(self: Any, *args: Any, qconfig: Any = None, **kwargs: Any) -> None:
        base.__init__(self, *args, **kwargs)
        self.qconfig, self.weight_fake_quant = qconfig, _rounding(type(self), qconfig)

    def forward(self: Any, input: Tensor) -> Tensor:
        result = self._conv_forward(input, self.rounded, self.bias)
        return F.relu(result) if relu else result

    text = f"`{base.__name__}` whose weight is fake-quantized{', and ReLU' if relu else ''}."
    members = {"__init__": __init__, "forward": forward, "float_class": base}
    return type(name, (WeightRounding, base), {**members, **_found(f"Qat{name}", text)})


QatConv1d, QatConv2d, QatConv3d = (_rounding_conv(base, False) for base in (Conv1d, Conv2d, Conv3d))
QatConvReLU1d, QatConvReLU2d, QatConvReLU3d = (_rounding_conv(base, True) for base in (Conv1d, Conv2d, Conv3d))


class QatEmbedding(WeightRounding, Embedding):
    """An embedding whose table is fake-quantized."""

    float_class = Embedding

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.rounded, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )


class QatEmbeddingBag(WeightRounding, EmbeddingBag):
    """Bags of an embedding whose table is fake-quantized."""

    float_class = EmbeddingBag

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(
            input, self.rounded, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip


class NormedRounding(WeightRounding):
    """A linear map and the batch norm that will be folded into it."""

    bn: Any
    bias: Tensor | None
    relu = False

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        result = _take(cls, mod[0], getattr(mod, "qconfig", None), bn=mod[1])
        result.freeze_bn = False
        return result

    def forward(self: Any, input: Tensor) -> Tensor:
        scale = self.bn.weight / (self.bn.running_var + self.bn.eps).sqrt()
        rows = (-1, *[1] * (self.weight.ndim - 1))
        channels = (1, -1, *[1] * (self.weight.ndim - 2))
        weight = self.weight_fake_quant(self.weight * scale.reshape(rows))
        result = self._mapped(input, weight) / scale.reshape(channels)
        if self.bias is not None:
            result = result + self.bias.reshape(channels)
        result = self.bn(result)
        return F.relu(result) if self.relu else result

    def update_bn_stats(self) -> Any:
        """Let running statistics follow batches."""
        self.freeze_bn, self.bn.training = False, True
        return self

    def freeze_bn_stats(self) -> Any:
        """Keep running statistics as they are, and normalise by them."""
        self.freeze_bn, self.bn.training = True, False
        return self

    def train(self: Any, mode: bool = True) -> Any:
        """The norm stays frozen where it is."""
        self.training = mode
        for name, module in self._modules.items():
            if name != "bn" or not self.freeze_bn:
                module.train(mode)
        return self

    def to_float(self: Any) -> Any:
        result, bn = super().to_float(), self.bn
        fold = fuse_linear_bn_weights if isinstance(result, Linear) else fuse_conv_bn_weights
        result.weight, result.bias = fold(
            result.weight, result.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
        )
        return result


def _normed(name: str, base: type, relu: bool) -> type:
    def _mapped(self: Any, input: Tensor, weight: Tensor) -> Tensor:
        return F.linear(input, weight) if base is Linear else self._conv_forward(input, weight, None)

    text = f"`{base.__name__}` and the batch norm that will be folded into it{', and ReLU' if relu else ''}."
    members = {"_mapped": _mapped, "relu": relu, "float_class": base, **_found(f"Qat{name}", text)}
    return type(name, (NormedRounding, base), members)


_BASES = (Conv1d, Conv2d, Conv3d)
QatConvBn1d, QatConvBn2d, QatConvBn3d = (_normed(f"ConvBn{n}d", b, False) for n, b in enumerate(_BASES, 1))
QatConvBnReLU1d, QatConvBnReLU2d, QatConvBnReLU3d = (
    _normed(f"ConvBnReLU{n}d", b, True) for n, b in enumerate(_BASES, 1)
)
QatLinearBn1d = _normed("LinearBn1d", Linear, False)


for _cls in (
    QatLinear,
    QatLinearReLU,
    QatEmbedding,
    QatEmbeddingBag,
):  # they print under the names of what they stand for
    _cls.__name__ = _cls.__name__.removeprefix("Qat")


def update_bn_stats(mod: Any) -> None:
    """For `model.apply`: let the norms of convolutions in training follow batches."""
    if isinstance(mod, NormedRounding):
        mod.update_bn_stats()


def freeze_bn_stats(mod: Any) -> None:
    """For `model.apply`: freeze the norms of convolutions in training."""
    if isinstance(mod, NormedRounding):
        mod.freeze_bn_stats()
