"""Memory of CUDA devices: none is held, so counts are zero, statistics empty, and there is nothing to reset or free."""

from __future__ import annotations

from collections import OrderedDict

from .absent import needs_device


def empty_cache() -> None:
    """Nothing is cached."""


def memory_allocated(device=None) -> int:
    return 0


def max_memory_allocated(device=None) -> int:
    return 0


def memory_reserved(device=None) -> int:
    return 0


def max_memory_reserved(device=None) -> int:
    return 0


def memory_stats(device=None) -> OrderedDict:
    return OrderedDict()


def memory_stats_as_nested_dict(device=None) -> dict:
    return {}


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved
reset_peak_memory_stats = needs_device("reset_peak_memory_stats", "Start peaks again.")
reset_accumulated_memory_stats = needs_device("reset_accumulated_memory_stats", "Start sums again.")
reset_max_memory_allocated = needs_device("reset_max_memory_allocated", "Start the peak again.")
reset_max_memory_cached = needs_device("reset_max_memory_cached", "Start the peak again.")
mem_get_info = needs_device("mem_get_info", "Free and total memory of a device.")
memory_snapshot = needs_device("memory_snapshot", "The allocator's state.")
memory_summary = needs_device("memory_summary", "The allocator's state as text.")
ipc_collect = needs_device("ipc_collect", "Free memory that other processes released.")
set_per_process_memory_fraction = needs_device("set_per_process_memory_fraction", "Limit this process's memory.")
