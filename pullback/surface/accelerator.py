"""The accelerator of this machine: CUDA's first devices, or none. Questions are answered; without one, the rest raises."""

from __future__ import annotations

from .. import cuda
from ..core.device import device

_NONE = "Cannot access accelerator device when none is available."


def is_available() -> bool:
    return cuda.is_available()


def device_count() -> int:
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> device | None:
    """The device type of the accelerator, if there is one."""
    return device("cuda") if cuda.is_available() else None


def _on_accelerator(function):
    def call(*args, **kwargs):
        if not cuda.is_available():
            raise RuntimeError(_NONE)
        return function(*args, **kwargs)

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


current_device_index = current_device_idx = _on_accelerator(cuda.current_device)
set_device_index = set_device_idx = _on_accelerator(cuda.set_device)
current_stream = _on_accelerator(cuda.current_stream)
set_stream = _on_accelerator(cuda.set_stream)
synchronize = _on_accelerator(cuda.synchronize)
memory_allocated = _on_accelerator(cuda.memory_allocated)
max_memory_allocated = _on_accelerator(cuda.max_memory_allocated)
memory_reserved = _on_accelerator(cuda.memory_reserved)
max_memory_reserved = _on_accelerator(cuda.max_memory_reserved)
memory_stats = _on_accelerator(cuda.memory_stats)
empty_cache = _on_accelerator(cuda.empty_cache)
reset_peak_memory_stats = _on_accelerator(cuda.reset_peak_memory_stats)
reset_accumulated_memory_stats = _on_accelerator(cuda.reset_accumulated_memory_stats)
