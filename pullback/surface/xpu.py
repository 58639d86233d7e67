"""Intel's GPUs: none can be used. Questions are answered, the rest raises."""

from __future__ import annotations


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def device_count() -> int:
    return 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def empty_cache() -> None:
    """Give free memory of the devices back: there are none."""


def _needs_device(*args, **kwargs):
    raise AssertionError("Torch not compiled with XPU enabled")


init = current_device = set_device = get_device_name = get_device_properties = _needs_device
synchronize = current_stream = memory_stats = _needs_device
device = get_device_capability = get_rng_state = set_rng_state = _needs_device
