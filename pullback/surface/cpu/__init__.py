"""The CPU as a device module: one device, one stream, nothing to wait for."""

from __future__ import annotations

import os
import platform
from contextlib import AbstractContextManager
from functools import cache

from . import amp


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def device_count() -> int:
    """The CPU counts as one device, however many cores it has."""
    return 1


def current_device() -> str:
    return "cpu"


def set_device(device) -> None:
    """There is one device: nothing changes."""


def synchronize(device=None) -> None:
    """Every call has ended when it returns."""


class Stream:
    """The CPU's stream: always idle."""

    def __init__(self, priority: int = -1):
        self.priority = priority

    def wait_stream(self, stream) -> None:
        """All work is done."""

    def record_event(self) -> None:
        """All work is done."""

    def wait_event(self, event) -> None:
        """All work is done."""


class Event:
    """A mark in the CPU's stream: always over."""

    def query(self) -> bool:
        return True

    def record(self, stream=None) -> None:
        """All work is done."""

    def synchronize(self) -> None:
        """All work is done."""

    def wait(self, stream=None) -> None:
        """All work is done."""


_current = Stream()


def current_stream(device=None) -> Stream:
    """The stream in use."""
    return _current


class StreamContext(AbstractContextManager):
    """Uses a stream inside a block."""

    def __init__(self, stream: Stream | None):
        self.stream = stream
        self.before = _current

    def __enter__(self) -> None:
        global _current
        self.before = _current
        _current = self.stream or _current

    def __exit__(self, *exc) -> None:
        global _current
        _current = self.before


def stream(stream: Stream | None) -> StreamContext:
    """Use a stream inside a block."""
    return StreamContext(stream)


@cache
def get_capabilities() -> dict[str, object]:
    """What the processor can do, as the operating system tells it."""
    flags: set[str] = set()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            line = next((text for text in file if text.startswith(("flags", "Features"))), "")
        flags = set(line.partition(":")[2].split())
    features = {name: spelled in flags for name, spelled in _FLAGS.items()}
    return {"architecture": platform.machine(), "num_logical_cores": os.cpu_count() or 1, **features}


_FLAGS = {
    "sse4_1": "sse4_1", "sse4_2": "sse4_2", "avx": "avx", "avx2": "avx2", "fma3": "fma", "f16c": "f16c",
    "bmi": "bmi1", "bmi2": "bmi2", "avx512_f": "avx512f", "avx512_bw": "avx512bw", "avx512_vl": "avx512vl",
    "avx512_dq": "avx512dq", "avx512_vnni": "avx512_vnni", "avx512_bf16": "avx512_bf16", "amx_tile": "amx_tile",
    "amx_int8": "amx_int8", "amx_bf16": "amx_bf16", "amx_fp16": "amx_fp16",
}  # fmt: skip


def _is_amx_tile_supported() -> bool:
    """Whether the processor has registers for tiles of matrices."""
    return bool(get_capabilities()["amx_tile"])


def _is_amx_fp16_supported() -> bool:
    """Whether these registers take float16."""
    return bool(get_capabilities()["amx_fp16"])


def _is_avx2_supported() -> bool:
    return bool(get_capabilities()["avx2"])


def _is_avx512_supported() -> bool:
    """The instructions that PyTorch asks for: F, VL, BW and DQ."""
    return all(get_capabilities()[f"avx512_{part}"] for part in ("f", "vl", "bw", "dq"))


def _is_avx512_bf16_supported() -> bool:
    return bool(get_capabilities()["avx512_bf16"])


def _is_vnni_supported() -> bool:
    return bool(get_capabilities()["avx512_vnni"])


__all__ = [
    "Event", "Stream", "StreamContext", "amp", "current_device", "current_stream", "device_count", "get_capabilities",
    "is_available", "is_initialized", "set_device", "stream", "synchronize",
]  # fmt: skip
