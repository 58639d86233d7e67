"""Fake quantization as modules: an observer chooses scale and zero point, and what passes through is rounded by them.

In: tensors of floats. Out: those that few integers can say, as floats; gradients pass where nothing was cut. Observing and
rounding are switched apart from one another (`enable_observer`, `enable_fake_quant`), by buffers, so that a saved model knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ...core import device as schemes
from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ...nn.module import Module
from ...ops.make.construct import tensor
from ...ops.system.operator import public
from .observers import (
    PER_CHANNEL,
    SYMMETRIC,
    Constructor,
    FixedQParamsObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    ObserverBase,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    with_args,
)


class FakeQuantizeBase(ABC, Module):
    """What every module that fake-quantizes is."""

    fake_quant_enabled: Tensor
    observer_enabled: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(name, tensor([1], dtype=dtypes.uint8))

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor: ...

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> tuple[Tensor, Tensor]: ...

    def enable_fake_quant(self, enabled: bool = True) -> None:
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: Any) -> Constructor:
        return with_args(cls, **kwargs)


class FakeQuantize(FakeQuantizeBase):
    """Rounds to what the observer's scale and zero point allow; further arguments are the observer's."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, observer=MovingAverageMinMaxObserver, quant_min=None, quant_max=None, is_dynamic=False, **observer_kwargs
    ):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError(
                    f"quant_min must be less than or equal to quant_max, got {quant_min} > {quant_max}"
                )
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        if is_dynamic:
            observer_kwargs["is_dynamic"] = True
        self.is_dynamic = is_dynamic
        self.activation_post_process = seen = observer(**observer_kwargs)
        self.quant_min, self.quant_max = seen.quant_min, seen.quant_max
        self.dtype, self.qscheme, self.ch_axis = seen.dtype, seen.qscheme, getattr(seen, "ch_axis", -1)
        self.is_per_channel = self.qscheme in PER_CHANNEL
        floats = self.qscheme is schemes.per_channel_affine_float_qparams
        self.register_buffer("scale", tensor([1.0]))
        self.register_buffer("zero_point", tensor([0], dtype=dtypes.float32 if floats else dtypes.int32))

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return self.activation_post_process.calculate_qparams()

    def forward(self, x: Tensor) -> Tensor:
        if self.observer_enabled[0] == 1:
            self.activation_post_process(x.detach())
            for target, value in zip((self.scale, self.zero_point), self.calculate_qparams(), strict=True):
                target.resize_(value.shape).copy_(value)
        if self.fake_quant_enabled[0] != 1:
            return x
        if self.is_per_channel:
            rounded = public("torch", "fake_quantize_per_channel_affine")
            return rounded(x, self.scale, self.zero_point, self.ch_axis, self.quant_min, self.quant_max)
        rounded = public("torch", "fake_quantize_per_tensor_affine")
        return rounded(x, self.scale, self.zero_point, self.quant_min, self.quant_max)

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.quant_min}, quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *rest: Any) -> None:
        for name in ("scale", "zero_point"):  # of one element until channels are seen
            saved = state_dict.get(prefix + name)
            if saved is not None:
                getattr(self, name).resize_(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds by a scale and a zero point that nothing changes."""

    def __init__(self, observer: Any):
        super().__init__(observer=observer)
        if type(self.activation_post_process) is not FixedQParamsObserver:
            raise AssertionError(
                f"{type(self).__name__}'s observer must be a FixedQParamsObserver, got {type(self.activation_post_process)}"
            )
        self.scale, self.zero_point = self.activation_post_process.scale, self.activation_post_process.zero_point

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return self.scale, self.zero_point


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """Moving averages and rounding in one operator."""

    def __init__(self, observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, is_dynamic=False, **kwargs):
        super().__init__(observer, quant_min, quant_max, is_dynamic, **kwargs)
        averages = (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        if not isinstance(self.activation_post_process, averages):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver, "
                f"got {type(self.activation_post_process)}"
            )
        for name in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(name, tensor([1], dtype=dtypes.int64))
        self.is_symmetric_quant = self.activation_post_process.qscheme in SYMMETRIC

    def forward(self, x: Tensor) -> Tensor:
        seen = self.activation_post_process
        return public("torch", "fused_moving_avg_obs_fake_quant")(
            x, self.observer_enabled, self.fake_quant_enabled, seen.min_val, seen.max_val, self.scale, self.zero_point,
            seen.averaging_constant, seen.quant_min, seen.quant_max, self.ch_axis, self.is_per_channel,
            self.is_symmetric_quant,
        )  # fmt: skip


_EIGHT = {"quant_min": 0, "quant_max": 255}
_WEIGHT = {"quant_min": -128, "quant_max": 127, "dtype": dtypes.opaque["qint8"]}
_AVERAGES = {"observer": MovingAverageMinMaxObserver, **_EIGHT}
_SYMMETRIC = {"observer": MovingAverageMinMaxObserver, **_WEIGHT, "qscheme": schemes.per_tensor_symmetric}
_CHANNELS = {"observer": MovingAveragePerChannelMinMaxObserver, **_WEIGHT, "qscheme": schemes.per_channel_symmetric}
default_fake_quant = FakeQuantize.with_args(
    **_AVERAGES, dtype=dtypes.opaque["quint8"], qscheme=schemes.per_tensor_affine, reduce_range=True
)
default_weight_fake_quant = FakeQuantize.with_args(**_SYMMETRIC, reduce_range=False)
default_dynamic_fake_quant = FakeQuantize.with_args(
    **_AVERAGES, is_dynamic=True, dtype=dtypes.opaque["quint8"], averaging_constant=1
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(**_CHANNELS, reduce_range=False, ch_axis=0)
default_embedding_fake_quant = FakeQuantize.with_args(observer=default_float_qparams_observer, **_EIGHT)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(observer=default_float_qparams_observer_4bit)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_AVERAGES, dtype=dtypes.opaque["quint8"])
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_SYMMETRIC)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(**_CHANNELS)


def is_post_process(module: Any) -> bool:
    """Whether a module observes or fake-quantizes."""
    return isinstance(module, (ObserverBase, FakeQuantizeBase))


def enable_fake_quant(mod: Any) -> None:
    """For `model.apply`: round."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_fake_quant(mod: Any) -> None:
    """For `model.apply`: do not round."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_observer(mod: Any) -> None:
    """For `model.apply`: let ranges follow what is seen."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()


def disable_observer(mod: Any) -> None:
    """For `model.apply`: keep ranges as they are."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


__all__ = [
    "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize", "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant", "default_dynamic_fake_quant", "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit", "default_fake_quant", "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant", "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant", "default_per_channel_weight_fake_quant",
    "default_symmetric_fixed_qparams_fake_quant", "default_weight_fake_quant", "disable_fake_quant",
    "disable_observer", "enable_fake_quant", "enable_observer",
]  # fmt: skip
