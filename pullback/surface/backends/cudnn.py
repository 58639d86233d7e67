"""cuDNN: convolutions on CUDA devices, where it is installed. `enabled`, `benchmark`, `deterministic` and `allow_tf32` are heeded."""

from __future__ import annotations

import sys

from ...core.cupy_library import device_count
from ...core.modes import process
from .switches import assign, assigned, check_precision, guard

SWITCHES = ("enabled", "benchmark", "benchmark_limit", "deterministic", "allow_tf32", "fp32_precision")
enabled = True
benchmark = False
benchmark_limit: int | None = 10
deterministic = False
allow_tf32 = True
fp32_precision = "none"


class _Rounding:
    """How convolutions and recurrent layers may round float32 numbers: another name for `allow_tf32`."""

    @property
    def fp32_precision(self) -> str:
        return "tf32" if allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        set_flags(_allow_tf32=check_precision(value) == "tf32")


conv = rnn = _Rounding()


def is_available() -> bool:
    """Whether there is a device, and cuDNN beside it."""
    return device_count() > 0 and _library().library() is not None


def version() -> int | None:
    return _library().version() if device_count() else None


def is_acceptable(tensor) -> bool:
    """Whether cuDNN could work on a tensor."""
    return enabled and tensor.device.type == "cuda" and tensor.dtype.name in _library().KINDS and is_available()


def _library():
    from ...runtime import cudnn

    return cudnn


def set_flags(
    _enabled=None, _benchmark=None, _benchmark_limit=None, _deterministic=None, _allow_tf32=None, _fp32_precision=None,
    _depthwise_kernel=None,
) -> tuple:  # fmt: skip
    """Set switches; the old values come back."""
    return assign(
        globals(), _named(_enabled, _benchmark, _benchmark_limit, _deterministic, _allow_tf32, _fp32_precision)
    )


def flags(
    enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True, fp32_precision="none",
    depthwise_kernel="auto",
):  # fmt: skip
    """Context manager: switches inside a block."""
    return assigned(globals(), _named(enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision))


def _named(*values) -> dict:
    return dict(zip(SWITCHES, values, strict=True))


guard(__name__)
process.cudnn = sys.modules[__name__]
