"""CUDA devices, through CuPy; where CuPy or a device is missing there are none.

Programs ask first (`is_available()`, `device_count()`) and get honest answers; settings and statistics that mean
nothing without a device are empty; everything that would need one raises what PyTorch's CPU build raises.
"""

from __future__ import annotations

from ..core.device import device as device_type
from ..core.device import indexed
from ..core.errors import AcceleratorError, OutOfMemoryError
from ..core.random import generator_of
from ..core.tensor import Tensor
from ..ops.make.construct import TYPED, legacy
from ..ops.make.storages import LEGACY_CUDA
from . import amp, memory, nvtx, random
from .absent import NO_CUDA, Unsupported, needs_device
from .devices import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
    synchronize,
)  # fmt: skip
from .graphed import make_graphed_callables
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing
from .memory import (
    empty_cache,
    ipc_collect,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)  # fmt: skip
from .random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)  # fmt: skip
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)  # fmt: skip

has_half = True
has_magma = False


def __getattr__(name: str):
    """`default_generators`: one for each device. `_initialized`: PyTorch's flag, which programs read before they ask."""
    if name == "_initialized":
        return is_initialized()
    if name == "default_generators":
        return tuple(generator_of(device_type("cuda", i)) for i in range(device_count()))
    if name in LEGACY_CUDA:  # `cuda.FloatStorage`
        return LEGACY_CUDA[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


current_blas_handle = needs_device("current_blas_handle", "cuBLAS's handle.")
cudart = needs_device("cudart", "The CUDA runtime.")
utilization = needs_device("utilization", "How busy a device is.")
temperature = needs_device("temperature", "How warm a device is.")
get_sync_debug_mode = needs_device("get_sync_debug_mode", "What happens at synchronizing calls.")
set_sync_debug_mode = needs_device("set_sync_debug_mode", "Say what happens at synchronizing calls.")


class MemPool(Unsupported):
    """A pool of device memory."""


class _TypedTensor(type):
    """`cuda.FloatTensor`: a name for CUDA tensors of a dtype. Without a device none can be made."""

    def check_available(cls) -> None:
        if not is_available():
            raise TypeError(f"type torch.cuda.{cls.__name__} not available. {NO_CUDA}.")

    def __call__(cls, *args, **kwargs):
        cls.check_available()
        return legacy(TYPED[cls.__name__].dtype, args, indexed("cuda"))

    def __instancecheck__(cls, instance) -> bool:
        return (
            isinstance(instance, Tensor) and instance.is_cuda and f"{instance.dtype.scalar_name}Tensor" == cls.__name__
        )


for _name in ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"):
    globals()[f"{_name}Tensor"] = _TypedTensor(f"{_name}Tensor", (), {"__module__": __name__})

__all__ = [
    "AcceleratorError", "CUDAGraph", "Event", "ExternalStream", "MemPool", "OutOfMemoryError", "Stream",
    "StreamContext", "amp", "can_device_access_peer", "current_blas_handle", "current_device", "current_stream",
    "cudart", "default_generators", "default_stream", "device", "device_count", "device_of", "empty_cache",
    "get_arch_list", "get_device_capability", "get_device_name", "get_device_properties", "get_gencode_flags",
    "get_rng_state", "get_rng_state_all", "get_sync_debug_mode", "graph", "graph_pool_handle", "has_half",
    "has_magma", "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported",
    "is_current_stream_capturing", "is_initialized", "is_tf32_supported", "make_graphed_callables", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory",
    "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "nvtx", "random", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_memory_stats", "seed", "seed_all",
    "set_device", "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream",
    "set_sync_debug_mode", "stream", "synchronize", "temperature", "utilization",
]  # fmt: skip
