"""The accelerator of this machine, of which there is none: questions are answered, everything else raises."""

from __future__ import annotations

_NONE = "Cannot access accelerator device when none is available."


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def current_accelerator(check_available: bool = False):
    """The device type of the accelerator: None."""
    return None


def _needs_accelerator(*args, **kwargs):
    raise RuntimeError(_NONE)


current_device_index = current_device_idx = set_device_index = set_device_idx = _needs_accelerator
current_stream = set_stream = synchronize = _needs_accelerator
memory_allocated = max_memory_allocated = memory_reserved = max_memory_reserved = memory_stats = _needs_accelerator
empty_cache = reset_peak_memory_stats = reset_accumulated_memory_stats = _needs_accelerator
