"""`Stream` and `Event`: the order of work on a device.

On the CPU every call has ended when it returns: there is one stream, it is always idle, and waiting for it is nothing.
Events cannot be recorded on it, as in PyTorch.
"""

from __future__ import annotations

from ..core.arrays import library
from ..core.device import device as device_type

_NO_EVENTS = "{} backend doesn't support events."


def _cpu(device) -> device_type:
    """The device asked for, if it has a stream here: the CPU."""
    where = device_type("cpu") if device is None else device_type(device)
    if where.type != "cpu":
        library(where)
        raise RuntimeError(f"{where.type} backend doesn't support streams.")
    return where


class Stream:
    """An ordered queue of work. The CPU's is always empty.

    >>> torch.Stream("cpu").device.type
    'cpu'
    """

    def __init__(
        self, device=None, *, priority: int = 0, stream_id: int = 0, device_index: int = -1, device_type: int = 0
    ):
        self.device = _cpu(device)
        self.stream_id = stream_id
        self.device_index = device_index
        self.device_type = device_type

    def query(self) -> bool:
        """Whether all work is done."""
        return True

    def synchronize(self) -> None:
        """Wait for all work: there is none."""

    def wait_stream(self, other: Stream) -> None:
        """Work of another stream is done already."""

    def wait_event(self, event: Event) -> None:
        raise RuntimeError(_NO_EVENTS.format(self.device.type))

    def record_event(self, event: Event | None = None) -> Event:
        raise RuntimeError(_NO_EVENTS.format(self.device.type))

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc) -> None:
        """There is no other stream to go back to."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"
        )


class Event:
    """A mark in a stream. One that was never recorded is over.

    >>> torch.Event().device.type
    'cpu'
    """

    def __init__(self, device=None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        self.device = _cpu(device)
        self.event_id = 0

    def query(self) -> bool:
        return True

    def record(self, stream: Stream | None = None) -> None:
        raise RuntimeError(_NO_EVENTS.format(self.device.type))

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing was recorded, so nothing is waited for."""

    def synchronize(self) -> None:
        """Nothing was recorded, so nothing is waited for."""

    def elapsed_time(self, end_event: Event) -> float:
        raise RuntimeError(_NO_EVENTS.format(self.device.type))

    def __repr__(self) -> str:
        return f"torch.Event device_type={self.device.type}, device_index=-1, event_flag=0, event_id={self.event_id}"
