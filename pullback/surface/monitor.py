"""`torch.monitor`: events that a program logs, and statistics that it keeps over windows of time.

In: events, and numbers added to a `Stat`. Out: calls of the handlers that are registered, in their order, in the thread that
logs. A window that is over is logged when the next number comes, when it is full, or when its `Stat` goes.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

__all__ = [
    "Aggregation", "Event", "EventHandlerHandle", "Stat", "TensorboardEventHandler", "data_value_t", "log_event",
    "register_event_handler", "unregister_event_handler",
]  # fmt: skip

data_value_t = str | float | int | bool
STAT_EVENT = "torch.monitor.Stat"


@dataclass(eq=False)
class Event:
    """What happened when: a name that all events of a kind share, and strings and numbers by name."""

    name: str
    timestamp: datetime
    data: Mapping[str, data_value_t]

    def __post_init__(self) -> None:
        for key, value in self.data.items():
            if not isinstance(value, data_value_t):
                raise TypeError(
                    f"Event(data=...): {key!r} is a {type(value).__name__}, expected str, float, int or bool"
                )


class EventHandlerHandle:
    """What `unregister_event_handler` takes."""

    def __init__(self, callback: Callable[[Event], object]):
        self._callback = callback


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], object]) -> EventHandlerHandle:
    """Let `callback` be called with every event that is logged from now on."""
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Let a handler hear of no further event."""
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Tell all handlers of an event; without handlers, nothing happens."""
    for handle in tuple(_handlers):
        handle._callback(event)


class Aggregation(enum.Enum):
    """What a `Stat` makes of the numbers of a window."""

    VALUE = 0  # the last one
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


def _summary(aggregation: Aggregation, numbers: list[float]) -> float:
    if aggregation is Aggregation.COUNT or not numbers:
        return float(len(numbers))
    if aggregation is Aggregation.MEAN:
        return sum(numbers) / len(numbers)
    if aggregation is Aggregation.SUM:
        return sum(numbers)
    if aggregation is Aggregation.VALUE:
        return numbers[-1]
    return max(numbers) if aggregation is Aggregation.MAX else min(numbers)


class Stat:
    """Statistics of the numbers that are added in each window of time, logged as an event when the window is over, or
    when it is full: what is added to a full window counts nowhere.

    >>> stat = torch.monitor.Stat("loss", [torch.monitor.Aggregation.MEAN], timedelta(seconds=60))
    >>> stat.add(2.0)
    >>> stat.add(4.0)
    >>> stat.count
    2
    """

    def __init__(
        self, name: str, aggregations: Iterable[Aggregation], window_size: timedelta, max_samples: int = (1 << 63) - 1
    ):
        self.name = name
        self._aggregations = tuple(aggregations)
        self._seconds, self._most = window_size.total_seconds(), max_samples
        self._numbers: list[float] = []
        self._logged: dict[Aggregation, float] = dict.fromkeys(self._aggregations, 0.0)
        self._began = time.monotonic()
        self._full = False  # whether this window is logged already
        self._lock = threading.RLock()

    @property
    def count(self) -> int:
        """How many numbers were added since the last window was logged."""
        return len(self._numbers)

    def add(self, v: float) -> None:
        """Count a number into the window, which is logged when it is full or over."""
        with self._lock:
            if time.monotonic() - self._began >= self._seconds:
                self._log()
                self._began, self._full = time.monotonic(), False
            if self._full:
                return
            self._numbers.append(float(v))
            if len(self._numbers) >= self._most:
                self._log()
                self._full = True

    def get(self) -> dict[Aggregation, float]:
        """The statistics of the last window that was logged; zeros before there was one."""
        return dict(self._logged)

    def _log(self) -> None:
        numbers, self._numbers = self._numbers, []
        if not numbers:
            return
        self._logged = {a: _summary(a, numbers) for a in self._aggregations}
        named: dict[str, data_value_t] = {f"{self.name}.{a.name.lower()}": v for a, v in self._logged.items()}
        log_event(Event(STAT_EVENT, datetime.now(), named))

    def __del__(self) -> None:
        if getattr(self, "_numbers", None):
            self._log()


class TensorboardEventHandler:
    """A handler that writes the statistics of `Stat` as scalars."""

    def __init__(self, writer):
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
