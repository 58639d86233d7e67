"""Configurations of quantization: which module observes activations, and which weights, as constructors."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from ...core import dtype as dtypes
from ...nn.linear import Identity
from ...nn.module import Module
from .fake_quantize import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
)
from .observers import (
    Constructor,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PlaceholderObserver,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
)

BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """What observes activations and what weights: constructors, not modules."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. "
                "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


QConfigAny = QConfig | None
default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
per_channel_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_per_channel_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=dtypes.float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=dtypes.float16),
)
float16_static_qconfig = QConfig(*[PlaceholderObserver.with_args(dtype=dtypes.float16)] * 2)
float_qparams_weight_only_qconfig = QConfig(default_placeholder_observer, default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit = QConfig(default_placeholder_observer, default_float_qparams_observer_4bit)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_qat_qconfig_v2 = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig = QConfig(Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, Identity)
default_reuse_input_qconfig = QConfig(default_reuse_input_observer, NoopObserver)
default_embedding_qat_qconfig = QConfig(NoopObserver.with_args(dtype=dtypes.float32), default_embedding_fake_quant)
default_embedding_qat_qconfig_4bit = QConfig(
    NoopObserver.with_args(dtype=dtypes.float32), default_embedding_fake_quant_4bit
)


def _checked(backend: str, version: Any, versions: tuple) -> None:
    if backend not in BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {list(BACKENDS)}")
    if version not in versions:
        raise AssertionError(f"Version number: {version} is not supported. Version number must be one of {versions}")


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """What calibrates a model for a backend after its training."""
    _checked(backend, version, (0,))
    weight = default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer
    reduced = {"fbgemm": True, "x86": True, "qnnpack": False, "onednn": False}[backend]
    return QConfig(HistogramObserver.with_args(reduce_range=reduced), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int | None = 1) -> QConfig:
    """What trains a model that is to be quantized for a backend; version 1 observes and rounds in one operator."""
    _checked(backend, version, (0, 1, None))
    kind = FusedMovingAvgObsFakeQuantize if version == 1 else FakeQuantize
    arguments: dict[str, Any] = {"observer": MovingAverageMinMaxObserver, "quant_min": 0, "quant_max": 255}
    if backend != "onednn":
        arguments["reduce_range"] = backend != "qnnpack"
    if backend == "qnnpack":
        weight = default_fused_wt_fake_quant if version == 1 else default_weight_fake_quant
    else:
        weight = default_fused_per_channel_wt_fake_quant if version == 1 else default_per_channel_weight_fake_quant
    return QConfig(kind.with_args(**arguments), weight)


def qconfig_equals(q1: QConfigAny, q2: QConfigAny) -> bool:
    """Whether two configurations would make the same modules."""
    if q1 is None or q2 is None:
        return q1 == q2
    return all(map(_constructs_same, q1, q2))


def _constructs_same(a: Any, b: Any) -> bool:
    if not isinstance(a, Constructor) or not isinstance(b, Constructor):
        return a == b
    first, second = (dict(c.p.keywords) for c in (a, b))
    observers = first.pop("observer", None), second.pop("observer", None)
    return a.p.func == b.p.func and first == second and _constructs_same(*observers)
