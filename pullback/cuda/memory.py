"""Memory of CUDA devices, as CuPy's pool keeps it. Without a device counts are zero and there is nothing to free.

"Allocated" is what arrays hold, "reserved" what the pool holds. The pool keeps no record of its largest use: that is
counted from the first call that asks for it or resets it; until then it is what the pool has reserved.
"""

from __future__ import annotations

from collections import OrderedDict

from ..core.cupy_library import device_count
from .absent import index_of, needs_device, on_device, require_device

_watches: dict[int, object] = {}


def _pool(device=None):
    cupy = require_device()
    with cupy.cuda.Device(index_of(device)):
        return cupy.get_default_memory_pool()


def empty_cache() -> None:
    """Give memory that no array holds back to the device."""
    if device_count():
        cupy = require_device()
        cupy.get_default_memory_pool().free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()


def memory_allocated(device=None) -> int:
    """Bytes that arrays hold."""
    return _pool(device).used_bytes() if device_count() else 0


def memory_reserved(device=None) -> int:
    """Bytes that the pool holds."""
    return _pool(device).total_bytes() if device_count() else 0


max_memory_reserved = memory_reserved


def max_memory_allocated(device=None) -> int:
    """The most bytes that arrays have held at a time: see the module's docstring."""
    if not device_count():
        return 0
    watch = _watches.get(index_of(device))
    if watch is None:
        _watch(device)
        return memory_reserved(device)
    return watch.peak  # type: ignore[attr-defined]


def _watch(device):
    """Count what is allocated and freed from now on."""
    cupy = require_device()

    class Watch(cupy.cuda.MemoryHook):
        name = "pullback"
        used = peak = memory_allocated(device)

        def malloc_postprocess(self, device_id, size, mem_size, mem_ptr, pmem_id):
            self.used += mem_size
            self.peak = max(self.peak, self.used)

        def free_postprocess(self, device_id, mem_size, mem_ptr, pmem_id):
            self.used -= mem_size

    watch = _watches[index_of(device)] = Watch()
    watch.__enter__()
    return watch


@on_device
def reset_peak_memory_stats(cupy, device=None) -> None:
    """Start the count of the largest use again."""
    watch = _watches.get(index_of(device)) or _watch(device)
    watch.used = watch.peak = memory_allocated(device)  # type: ignore[attr-defined]


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


def memory_stats(device=None) -> OrderedDict:
    """What the allocator counts, as one flat dict with dotted names."""
    if not device_count():
        return OrderedDict()
    return OrderedDict(
        {
            "allocated_bytes.all.current": memory_allocated(device),
            "allocated_bytes.all.peak": max_memory_allocated(device),
            "reserved_bytes.all.current": memory_reserved(device),
            "reserved_bytes.all.peak": max_memory_reserved(device),
        }
    )


def memory_stats_as_nested_dict(device=None) -> dict:
    """What the allocator counts, as dicts in dicts."""
    out: dict = {}
    for name, value in memory_stats(device).items():
        where = out
        *path, last = name.split(".")
        for part in path:
            where = where.setdefault(part, {})
        where[last] = value
    return out


@on_device
def memory_summary(cupy, device=None, abbreviated: bool = False) -> str:
    """The pool's state as text."""
    rows = memory_stats(device).items()
    return "\n".join([f"CUDA memory of device {index_of(device)}", *(f"{n:<32}{v:>20,}" for n, v in rows)])


@on_device
def mem_get_info(cupy, device=None) -> tuple[int, int]:
    """Free and total memory of a device, as the driver sees it."""
    with cupy.cuda.Device(index_of(device)):
        return cupy.cuda.runtime.memGetInfo()


@on_device
def set_per_process_memory_fraction(cupy, fraction: float, device=None) -> None:
    """Limit the pool to a part of the device's memory."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    with cupy.cuda.Device(index_of(device)):
        cupy.get_default_memory_pool().set_limit(fraction=float(fraction))


@on_device
def ipc_collect(cupy) -> None:
    """Free memory that other processes released: none is shared with them."""


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved
memory_snapshot = needs_device("memory_snapshot", "The allocator's state.")
