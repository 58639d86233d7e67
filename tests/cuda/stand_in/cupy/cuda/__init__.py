"""Devices, streams, events and graphs that note what is asked of them."""

from __future__ import annotations

import contextlib
import itertools
import time

from . import memory, nccl, runtime
from .memory import MemoryHook, MemoryPool

__all__ = [
    "Device",
    "Event",
    "ExternalStream",
    "Graph",
    "MemoryHook",
    "MemoryPool",
    "Stream",
    "memory",
    "nccl",
    "runtime",
]

NO_KERNELS = "kernels in CUDA C need a device"
current = 0
_pointers = itertools.count(0x1000, 0x10)


class Device:
    compute_capability = "90"

    def __init__(self, id: int):
        self.id = id

    def use(self) -> None:
        global current
        current = self.id

    def __enter__(self):
        self._before = current
        self.use()

    def __exit__(self, *exc):
        Device(self._before).use()

    def synchronize(self) -> None:
        runtime.calls.append(("synchronize", self.id))


class Graph:
    def __init__(self):
        self.launches: list = []

    def launch(self, stream) -> None:
        self.launches.append(stream.ptr)


class Stream:
    done = True

    def __init__(self, non_blocking: bool = False, priority: int | None = None, ptr: int | None = None):
        self.ptr = next(_pointers) if ptr is None else ptr
        self.priority, self.waited, self.graph = priority, [], None

    def use(self):
        global _stream
        _stream = self

    def synchronize(self) -> None:
        self.waited.append("all")

    def record(self) -> Event:
        result = Event()
        result.record(self)
        return result

    def __enter__(self):
        self._before = _stream
        self.use()

    def __exit__(self, *exc):
        self._before.use()

    def wait_event(self, event) -> None:
        self.waited.append(event)

    def is_capturing(self) -> bool:
        return self.graph is not None

    def begin_capture(self, mode) -> None:
        if runtime.refuses_capture:
            raise RuntimeError("cudaErrorStreamCaptureUnsupported")
        self.graph = Graph()

    def end_capture(self) -> Graph:
        result, self.graph = self.graph, None
        return result


Stream.null = Stream(ptr=0)
_stream = Stream.null


def ExternalStream(ptr: int) -> Stream:
    return Stream(ptr=ptr)


def get_current_stream() -> Stream:
    return _stream


class Event:
    done = True

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False):
        self.block, self.disable_timing, self.interprocess = block, disable_timing, interprocess
        self.at, self.stream = None, None

    def record(self, stream) -> None:
        self.at, self.stream = time.perf_counter(), stream

    def synchronize(self) -> None:
        runtime.calls.append(("event", self.stream.ptr))


def get_elapsed_time(start: Event, end: Event) -> float:
    return (end.at - start.at) * 1000


@contextlib.contextmanager
def using_allocator(malloc):
    before, memory.malloc = memory.malloc, malloc
    try:
        yield
    finally:
        memory.malloc = before


def __getattr__(name: str):
    if name in ("device", "function", "PinnedMemory"):  # what launches kernels
        raise NotImplementedError(NO_KERNELS)
    raise AttributeError(f"the stand-in for cupy.cuda has no {name!r}")
