"""Observers: modules that look at what passes through them and say with which scale and zero point to quantize it.

In: tensors of floats. Out: the same tensors; `calculate_qparams()` gives (scale, zero point). Always holds: the limits that
were seen are buffers (`min_val`, `max_val`), infinite (or empty, where each channel has its own) until something was seen.
`with_args` gives constructors with some arguments filled in, which configurations are made of.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, NoReturn

from ...core import device as schemes
from ...core import dtype as dtypes
from ...core.dtype import finfo
from ...core.tensor import Tensor
from ...nn.module import Module
from ...ops.make.construct import tensor
from ...ops.make.factories import ones, zeros

PER_CHANNEL = (schemes.per_channel_affine, schemes.per_channel_symmetric, schemes.per_channel_affine_float_qparams)
SYMMETRIC = (schemes.per_tensor_symmetric, schemes.per_channel_symmetric)
_LIMITS = {
    dtypes.opaque["qint8"]: (-128, 127), dtypes.int8: (-128, 127), dtypes.opaque["quint8"]: (0, 255), dtypes.uint8: (0, 255),
    dtypes.int16: (-(2**15), 2**15 - 1), dtypes.uint16: (0, 2**16 - 1), dtypes.opaque["qint32"]: (-(2**31), 2**31 - 1),
    dtypes.int32: (-(2**31), 2**31 - 1), dtypes.opaque["quint4x2"]: (0, 15),
}  # fmt: skip
_UNSIGNED_MIDDLES = {dtypes.opaque["quint8"]: 128, dtypes.uint8: 128, dtypes.uint16: 2**15}


class Constructor:
    """A class with some arguments filled in; those of `with_callable_args` are computed when it is called."""

    def __init__(self, call: partial):
        self.p = call
        self.callable_args: dict[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        late = {name: make() for name, make in self.callable_args.items() if name not in kwargs}
        return self.p(*args, **late, **kwargs)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: Any) -> Constructor:
        return with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Any) -> Constructor:
        result = with_args(self)
        result.callable_args = {**self.callable_args, **kwargs}
        return result


def with_args(made: Any, **kwargs: Any) -> Constructor:
    """A constructor of `made` with these arguments filled in."""
    return Constructor(partial(made, **kwargs))


class ObserverBase(ABC, Module):
    """What every observer is."""

    def __init__(self, dtype: Any, is_dynamic: bool = False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x: Tensor) -> Tensor: ...

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any: ...

    with_args = classmethod(with_args)
    with_callable_args = classmethod(lambda cls, **kwargs: with_args(cls).with_callable_args(**kwargs))


def limits(quant_min: int | None, quant_max: int | None, dtype: Any, reduce_range: bool) -> tuple[int, int]:
    """The least and the greatest integer: those asked for, or the dtype's; a reduced range has a bit less."""
    if quant_min is None or quant_max is None:
        quant_min, quant_max = _LIMITS[dtype]
    elif not quant_min <= 0 <= quant_max or quant_min == quant_max:
        raise AssertionError(
            f"Used-specified quantization range must include 0 and hold two integers, got [{quant_min}, {quant_max}]"
        )
    return (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)


class UniformQuantizationObserverBase(ObserverBase):
    """Scale and zero point from the least and the greatest number seen."""

    eps: Tensor

    def __init__(
        self, dtype=dtypes.opaque["quint8"], qscheme=schemes.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None,
        factory_kwargs=None, eps=finfo(dtypes.float32).eps, is_dynamic=False, **kwargs,
    ):  # fmt: skip
        super().__init__(dtype, is_dynamic=is_dynamic, **kwargs)
        if dtype not in _LIMITS:
            raise AssertionError(f"Default Observer only works for {', '.join(map(str, _LIMITS))}, got {dtype}")
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.factory_kwargs = {k: v for k, v in (factory_kwargs or {}).items() if k in ("device", "dtype")}
        self.register_buffer("eps", tensor([eps], **self.factory_kwargs))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        self.quant_min, self.quant_max = limits(quant_min, quant_max, dtype, reduce_range)

    def _calculate_qparams(self, min_val: Tensor, max_val: Tensor) -> tuple[Tensor, Tensor]:
        if not _seen(min_val, max_val):
            return tensor([1.0], device=min_val.device), tensor([0], device=min_val.device)
        low, high = self.quant_min, self.quant_max
        negative, positive = min_val.clamp(max=0), max_val.clamp(min=0)
        if self.qscheme in SYMMETRIC:
            scale = (-negative).maximum(positive) / (float(high - low) / 2)
            middle = _UNSIGNED_MIDDLES.get(self.dtype, 0)
            middle = (low + high) // 2 if middle and self.has_customized_qrange and middle == 128 else middle
            scale, point = scale.maximum(self.eps), zeros(scale.shape, dtype=dtypes.int64, device=scale.device) + middle
        elif self.qscheme is schemes.per_channel_affine_float_qparams:
            scale = (max_val - min_val) / float(high - low)
            scale = scale.where(scale > self.eps, ones(scale.shape, dtype=scale.dtype, device=scale.device))
            point = -1 * min_val / scale
        else:
            scale = ((positive - negative) / float(high - low)).maximum(self.eps)
            point = (low - (negative / scale).round().to(dtypes.int32)).clamp(low, high)
        return scale.reshape(-1) if not scale.ndim else scale, point.reshape(-1) if not point.ndim else point

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return self._calculate_qparams(self.min_val, self.max_val)

    def reset_min_max_vals(self) -> NoReturn:
        raise NotImplementedError("Cannot reset min/max values in the given observer.")

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


def _seen(least: Tensor, greatest: Tensor) -> bool:
    """Whether anything was observed; nonsense is refused."""
    if least.numel() == 0 or greatest.numel() == 0 or bool((least.isinf() & greatest.isinf()).all()):
        warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=4)
        return False
    if bool((least > greatest).any()):
        raise AssertionError(f"min {least} should be less than max {greatest}")
    return True


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest number ever seen."""

    min_val: Tensor
    max_val: Tensor

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.qscheme in PER_CHANNEL:
            raise NotImplementedError(
                f"{type(self).__name__}'s qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine."
            )
        self.register_buffer("min_val", tensor(float("inf"), **self.factory_kwargs))
        self.register_buffer("max_val", tensor(float("-inf"), **self.factory_kwargs))

    def forward(self, x: Tensor) -> Tensor:
        if x.numel():
            least, greatest = x.detach().to(self.min_val.dtype).aminmax()
            self.min_val.copy_(self._joined(self.min_val, least, least.minimum(self.min_val)))
            self.max_val.copy_(self._joined(self.max_val, greatest, greatest.maximum(self.max_val)))
        return x

    def _joined(self, before: Tensor, seen: Tensor, extreme: Tensor) -> Tensor:
        """What is kept of what was seen before and now."""
        return extreme

    def reset_min_max_vals(self) -> None:  # type: ignore[override]
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Averages of the least and the greatest number, which later ones move by a share."""

    def __init__(
        self, averaging_constant=0.01, dtype=dtypes.opaque["quint8"], qscheme=schemes.per_tensor_affine, *args, **kwargs
    ):
        super().__init__(dtype, qscheme, *args, **kwargs)
        self.averaging_constant = averaging_constant

    def _joined(self, before: Tensor, seen: Tensor, extreme: Tensor) -> Tensor:
        return seen.where(before.isinf(), before + self.averaging_constant * (seen - before))


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest number of each index of an axis."""

    min_val: Tensor
    max_val: Tensor

    def __init__(self, ch_axis=0, dtype=dtypes.opaque["quint8"], qscheme=schemes.per_channel_affine, *args, **kwargs):
        super().__init__(dtype, qscheme, *args, **kwargs)
        if qscheme not in PER_CHANNEL:
            raise NotImplementedError(f"{type(self).__name__}'s qscheme must be one of a channel each, got {qscheme}")
        self.ch_axis = ch_axis
        self.register_buffer("min_val", tensor([], **self.factory_kwargs))
        self.register_buffer("max_val", tensor([], **self.factory_kwargs))

    def forward(self, x: Tensor) -> Tensor:
        if x.numel():
            rows = x.detach().to(self.min_val.dtype).movedim(self.ch_axis, 0).flatten(1)
            least, greatest = rows.aminmax(dim=1)
            if self.min_val.numel():
                least, greatest = self._joined(least, greatest)
            self.min_val.resize_(least.shape).copy_(least)
            self.max_val.resize_(greatest.shape).copy_(greatest)
        return x

    def _joined(self, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
        return least.minimum(self.min_val), greatest.maximum(self.max_val)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *rest: Any) -> None:
        for name in ("min_val", "max_val"):  # empty until something is seen: they take the shape of what was saved
            saved = state_dict.get(prefix + name)
            if saved is not None:
                getattr(self, name).resize_(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def reset_min_max_vals(self) -> None:  # type: ignore[override]
        self.min_val, self.max_val = (tensor([], **self.factory_kwargs) for _ in range(2))


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Averages of the least and the greatest number of each channel."""

    def __init__(
        self,
        averaging_constant=0.01,
        ch_axis=0,
        dtype=dtypes.opaque["quint8"],
        qscheme=schemes.per_channel_affine,
        *args,
        **kwargs,
    ):
        super().__init__(ch_axis, dtype, qscheme, *args, **kwargs)
        self.averaging_constant = averaging_constant

    def _joined(self, least: Tensor, greatest: Tensor) -> tuple[Tensor, Tensor]:
        share = self.averaging_constant
        return self.min_val + share * (least - self.min_val), self.max_val + share * (greatest - self.max_val)


class HistogramObserver(ObserverBase):
    """The range that loses least, searched in a histogram: not here. Others choose ranges by extremes or averages."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError("HistogramObserver is not implemented in pullback: use MovingAverageMinMaxObserver")

    forward = calculate_qparams = __init__  # type: ignore[assignment]


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that nothing changes, for functions whose range is known."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self, scale, zero_point, dtype=dtypes.opaque["quint8"], qscheme=schemes.per_tensor_affine, quant_min=0, quant_max=255,
        is_dynamic=False, **kwargs,
    ):  # fmt: skip
        super().__init__(dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", tensor([scale], dtype=dtypes.float32))
        self.register_buffer("zero_point", tensor([zero_point], dtype=dtypes.int32))

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Looks at nothing: says only which dtype is wanted."""

    def __init__(
        self, dtype=dtypes.float32, custom_op_name="", compute_dtype=None, quant_min=None, quant_max=None, qscheme=None,
        eps=None, is_dynamic=False,
    ):  # fmt: skip
        super().__init__(dtype, is_dynamic=is_dynamic)
        self.qscheme, self.eps = qscheme or schemes.per_tensor_affine, eps
        self.quant_min, self.quant_max, self.custom_op = quant_min, quant_max, custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> NoReturn:  # type: ignore[override]
        raise Exception(f"calculate_qparams should not be called for {type(self).__name__}")

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class NoopObserver(PlaceholderObserver):
    """Looks at nothing, and says which dtype."""

    def __init__(self, dtype=dtypes.float16, custom_op_name=""):
        super().__init__(dtype, custom_op_name)


class RecordingObserver(PlaceholderObserver):
    """Keeps what it sees, for people who look for errors."""

    def __init__(self, dtype=dtypes.opaque["quint8"]):
        super().__init__(dtype)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self) -> list[Tensor]:
        return self.tensor_val


class ReuseInputObserver(PlaceholderObserver):
    """Says that the observer of the input is this one's too."""

    def __init__(self) -> None:
        super().__init__(dtypes.opaque["quint8"])


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer, default_debug_observer = PlaceholderObserver, RecordingObserver
default_reuse_input_observer = ReuseInputObserver
default_weight_observer = MinMaxObserver.with_args(dtype=dtypes.opaque["qint8"], qscheme=schemes.per_tensor_symmetric)
weight_observer_range_neg_127_to_127 = default_weight_observer.with_args(quant_min=-127, quant_max=127, eps=2**-12)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=dtypes.opaque["qint8"], qscheme=schemes.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = default_per_channel_weight_observer.with_args(
    quant_min=-127, quant_max=127, eps=2**-12
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=dtypes.opaque["quint8"], quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=dtypes.opaque["quint8"], qscheme=schemes.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = default_float_qparams_observer.with_args(dtype=dtypes.opaque["quint4x2"])
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(scale=2.0 / 256.0, zero_point=128)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(scale=1.0 / 256.0, zero_point=0)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer


def get_observer_state_dict(mod: Module) -> dict[str, Tensor]:
    """The state of the observers of a model."""
    return {name: value for name, value in mod.state_dict().items() if "activation_post_process" in name}


def load_observer_state_dict(mod: Module, obs_dict: dict[str, Tensor]) -> None:
    """Put the state of observers back."""
    missing, unexpected = mod.load_state_dict(obs_dict, strict=False)
    lost = [name for name in (*missing, *unexpected) if "activation_post_process" in name]
    if lost:
        raise Exception(f"Missing keys for observer {lost} in state_dict")


__all__ = [
    "FixedQParamsObserver", "HistogramObserver", "MinMaxObserver", "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver", "NoopObserver", "ObserverBase", "PerChannelMinMaxObserver",
    "PlaceholderObserver", "RecordingObserver", "ReuseInputObserver", "UniformQuantizationObserverBase",
    "default_affine_fixed_qparams_observer", "default_debug_observer", "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer", "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer", "default_float_qparams_observer_4bit", "default_histogram_observer",
    "default_observer", "default_per_channel_weight_observer", "default_placeholder_observer",
    "default_reuse_input_observer", "default_symmetric_fixed_qparams_observer", "default_weight_observer",
    "get_observer_state_dict", "load_observer_state_dict", "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]  # fmt: skip
