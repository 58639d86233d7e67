"""Which CUDA devices there are, and which is in use.

In: a device, its number, or None for the one in use. Out: what the driver says of it. Without CuPy or a device, questions
are answered ("none") and everything else raises what PyTorch's CPU build raises.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..core import device as devices
from ..core.arrays import check_devices
from ..core.cupy_library import device_count as _count
from ..core.device import device as device_type
from .absent import index_of, on_device, require_device


def is_available() -> bool:
    """Whether a CUDA device can be used."""
    return _count() > 0


def device_count() -> int:
    """How many CUDA devices can be used."""
    return _count()


def is_initialized() -> bool:
    """Whether devices are ready for use: they are as soon as they are there."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the device computes with bfloat16."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether the device multiplies float32 with fewer bits where that is allowed."""
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list() -> list[str]:
    """Architectures there is code for: kernels are compiled for the devices that are there."""
    found = {get_device_capability(i) for i in range(device_count())}
    return [f"sm_{major}{minor}" for major, minor in sorted(found)]


def get_gencode_flags() -> str:
    """The flags by which nvcc would compile for the architectures that are supported."""
    return " ".join(f"-gencode compute=compute_{a[3:]},code={a}" for a in get_arch_list())


@on_device
def init(cupy) -> None:
    """Bring up CUDA."""


@on_device
def current_device(cupy) -> int:
    """The index of the device in use."""
    return devices.current["cuda"]


@on_device
def get_device_name(cupy, device=None) -> str:
    """The name of a device."""
    return _facts(cupy, device)["name"].decode()


@on_device
def get_device_capability(cupy, device=None) -> tuple[int, int]:
    """The compute capability of a device."""
    facts = _facts(cupy, device)
    return facts["major"], facts["minor"]


@dataclass(frozen=True)
class DeviceProperties:
    """What the driver says of a device."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    L2_cache_size: int
    is_integrated: bool
    is_multi_gpu_board: bool


@on_device
def get_device_properties(cupy, device=None) -> DeviceProperties:
    """The properties of a device."""
    f = _facts(cupy, device)
    return DeviceProperties(
        f["name"].decode(), f["major"], f["minor"], f["totalGlobalMem"], f["multiProcessorCount"], f["warpSize"],
        f["maxThreadsPerMultiProcessor"], f["regsPerMultiprocessor"], f["sharedMemPerBlock"], f["l2CacheSize"],
        bool(f["integrated"]), bool(f["isMultiGpuBoard"]),
    )  # fmt: skip


def _facts(cupy, device) -> dict:
    number = index_of(device)
    if not 0 <= number < device_count():
        raise AssertionError("Invalid device id")
    return cupy.cuda.runtime.getDeviceProperties(number)


@on_device
def can_device_access_peer(cupy, device, peer_device) -> bool:
    """Whether one device reads the memory of another."""
    return bool(cupy.cuda.runtime.deviceCanAccessPeer(index_of(device), index_of(peer_device)))


@on_device
def synchronize(cupy, device=None) -> None:
    """Wait for all work on a device."""
    cupy.cuda.Device(index_of(device)).synchronize()
    check_devices()


def _number(device) -> int:
    """The index of a device; a negative one, or None, stands for no change."""
    if device is None:
        return -1
    if isinstance(device, int):
        return device
    found = device_type(device)
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    return 0 if found.index is None else found.index


def set_device(device) -> None:
    """Use a device; a negative index changes nothing."""
    number = _number(device)
    if number >= 0:
        require_device().cuda.Device(number).use()
        devices.current["cuda"] = number


class device:
    """Context manager that uses a device inside a block; with a negative index (or None) it does nothing."""

    def __init__(self, device):
        self.idx = _number(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            require_device()
            self.prev_idx = devices.current["cuda"]
            set_device(self.idx)

    def __exit__(self, *exc) -> None:
        if self.idx >= 0:
            set_device(self.prev_idx)


class device_of(device):
    """Uses the device of a tensor: for tensors that are not on a CUDA device, no change."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.is_cuda else -1)
