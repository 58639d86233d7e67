"""CUDA devices, of which this build has none.

Programs ask first (`is_available()`, `device_count()`) and get honest answers; settings and statistics that mean
nothing without a device are empty; everything that would need one raises what PyTorch's CPU build raises.
"""

from __future__ import annotations

from ..core.device import device as _device_type
from ..errors import AcceleratorError, OutOfMemoryError
from . import amp, memory, nvtx, random
from .absent import NO_CUDA, DeviceObject, needs_device, require_device
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

has_half = True
has_magma = False
default_generators: tuple = ()


def is_available() -> bool:
    """Whether a CUDA device can be used: no."""
    return False


def is_initialized() -> bool:
    return False


def device_count() -> int:
    """How many CUDA devices can be used: none."""
    return 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    return False


def is_tf32_supported() -> bool:
    return False


def get_arch_list() -> list[str]:
    """Architectures this build has code for."""
    return []


def get_gencode_flags() -> str:
    return ""


init = needs_device("init", "Bring up CUDA.")
current_device = needs_device("current_device", "The index of the device in use.")
get_device_name = needs_device("get_device_name", "The name of a device.")
get_device_capability = needs_device("get_device_capability", "The compute capability of a device.")
get_device_properties = needs_device("get_device_properties", "The properties of a device.")
can_device_access_peer = needs_device("can_device_access_peer", "Whether one device reads the memory of another.")
synchronize = needs_device("synchronize", "Wait for all work on a device.")
current_stream = needs_device("current_stream", "The stream in use.")
default_stream = needs_device("default_stream", "The default stream of a device.")
set_stream = needs_device("set_stream", "Use another stream.")
current_blas_handle = needs_device("current_blas_handle", "cuBLAS's handle.")
cudart = needs_device("cudart", "The CUDA runtime.")
utilization = needs_device("utilization", "How busy a device is.")
temperature = needs_device("temperature", "How warm a device is.")
make_graphed_callables = needs_device("make_graphed_callables", "Callables as CUDA graphs.")
is_current_stream_capturing = needs_device("is_current_stream_capturing", "Whether a CUDA graph is being captured.")
graph_pool_handle = needs_device("graph_pool_handle", "A memory pool for CUDA graphs.")
get_sync_debug_mode = needs_device("get_sync_debug_mode", "What happens at synchronizing calls.")
set_sync_debug_mode = needs_device("set_sync_debug_mode", "Say what happens at synchronizing calls.")


def _index(device) -> int:
    """The index of a device; a negative one, or None, stands for no change."""
    if device is None:
        return -1
    if isinstance(device, int):
        return device
    found = _device_type(device)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return 0 if found.index is None else found.index


def set_device(device) -> None:
    """Use a device; a negative index changes nothing."""
    if _index(device) >= 0:
        require_device()


class device:
    """Context manager that uses a device inside a block; with a negative index (or None) it does nothing."""

    def __init__(self, device):
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            require_device()

    def __exit__(self, *exc) -> None:
        """Nothing was changed."""


class device_of(device):
    """Uses the device of a tensor: for tensors that are not on a CUDA device, no change."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)


class Stream(DeviceObject):
    """A queue of work on a device."""


class ExternalStream(Stream):
    """A stream made elsewhere."""


class Event(DeviceObject):
    """A mark in a stream."""


class CUDAGraph(DeviceObject):
    """A captured sequence of kernels."""


class MemPool(DeviceObject):
    """A pool of device memory."""


class graph(DeviceObject):
    """Captures a CUDA graph."""


class StreamContext:
    """Uses a stream inside a block; None does nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            require_device()

    def __exit__(self, *exc) -> None:
        """Nothing was changed."""


def stream(stream) -> StreamContext:
    """Use a stream inside a block."""
    return StreamContext(stream)


class _TypedTensor(type):
    """`cuda.FloatTensor`: a name for a type of tensor that cannot be made, and that nothing is an instance of."""

    def __call__(cls, *args, **kwargs):
        raise TypeError(f"type torch.cuda.{cls.__name__} not available. {NO_CUDA}.")

    def __instancecheck__(cls, instance) -> bool:
        return False


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
