"""Streams, the queues of work on a device, and events, the marks in them: CuPy's, under PyTorch's names."""

from __future__ import annotations

from ..core import device as devices
from .absent import DeviceObject, index_of, on_device, require_device


class Stream(DeviceObject):
    """A queue of work on a device."""

    def __init__(self, device=None, priority: int = 0, *, queue=None):
        cupy = require_device()
        self.device = devices.device("cuda", index_of(device))
        if queue is None:
            with cupy.cuda.Device(self.device.index):
                queue = cupy.cuda.Stream(non_blocking=True, priority=priority or None)
        self.queue = queue
        self.priority = priority
        self._outer: list = []

    @property
    def cuda_stream(self) -> int:
        """CUDA's own handle."""
        return self.queue.ptr

    stream_id = cuda_stream

    @property
    def device_index(self) -> int:
        return self.device.index or 0

    def query(self) -> bool:
        """Whether all work is done."""
        return bool(self.queue.done)

    def synchronize(self) -> None:
        """Wait for all work."""
        self.queue.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """A mark after all work that is in the queue now."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Work that comes later waits for a mark."""
        self.queue.wait_event(event.mark)

    def wait_stream(self, stream: Stream) -> None:
        """Work that comes later waits for all that is in another queue now."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        self._outer.append(current_stream())
        self.queue.use()
        return self

    def __exit__(self, *exc) -> None:
        self._outer.pop().queue.use()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.queue.ptr) == (other.device, other.queue.ptr)

    def __hash__(self) -> int:
        return hash((self.device, self.queue.ptr))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.queue.ptr:#x}>"


class ExternalStream(Stream):
    """A stream made elsewhere, by its address."""

    def __init__(self, stream_ptr: int, device=None):
        super().__init__(device, queue=require_device().cuda.ExternalStream(stream_ptr))


class Event(DeviceObject):
    """A mark in a stream."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        cupy = require_device()
        self.device = devices.device("cuda", devices.current["cuda"])
        self.mark = cupy.cuda.Event(block=blocking, disable_timing=not enable_timing, interprocess=interprocess)
        self._timed, self._recorded = enable_timing, False

    def record(self, stream: Stream | None = None) -> None:
        """Set the mark after all work that is in a stream now."""
        self.mark.record((stream or current_stream()).queue)
        self._recorded = True

    def wait(self, stream: Stream | None = None) -> None:
        """Work that comes later in a stream waits for this mark."""
        (stream or current_stream()).wait_event(self)

    def query(self) -> bool:
        """Whether all work before the mark is done."""
        return not self._recorded or bool(self.mark.done)

    def synchronize(self) -> None:
        """Wait for all work before the mark."""
        self.mark.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two marks."""
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self._recorded and end_event._recorded):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return require_device().cuda.get_elapsed_time(self.mark, end_event.mark)


@on_device
def current_stream(cupy, device=None) -> Stream:
    """The stream in use."""
    return Stream(device, queue=cupy.cuda.get_current_stream())


@on_device
def default_stream(cupy, device=None) -> Stream:
    """The default stream of a device."""
    return Stream(device, queue=cupy.cuda.Stream.null)


@on_device
def set_stream(cupy, stream: Stream | None) -> None:
    """Use another stream."""
    if stream is not None:
        stream.queue.use()


class StreamContext:
    """Uses a stream inside a block; None does nothing."""

    def __init__(self, stream: Stream | None):
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            require_device()
            self.stream.__enter__()

    def __exit__(self, *exc) -> None:
        if self.stream is not None:
            self.stream.__exit__(*exc)


def stream(stream: Stream | None) -> StreamContext:
    """Use a stream inside a block."""
    return StreamContext(stream)
