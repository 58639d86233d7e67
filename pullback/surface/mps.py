"""Apple's GPUs: none can be used. Questions are answered, the rest raises."""

from __future__ import annotations


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def _needs_device(*args, **kwargs):
    raise RuntimeError("MPS backend is not available: pullback computes on CPUs and CUDA devices")


synchronize = empty_cache = current_allocated_memory = driver_allocated_memory = recommended_max_memory = _needs_device
manual_seed = seed = get_rng_state = set_rng_state = set_per_process_memory_fraction = compile_shader = _needs_device
