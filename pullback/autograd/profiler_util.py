"""The parts that profiles are made of, under the name that PyTorch's users import them by."""

from .profiler.event_list import EventList
from .profiler.events import (
    MEMORY_EVENT_NAME,
    OUT_OF_MEMORY_EVENT_NAME,
    DeviceType,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
    MemRecordsAcc,
    StringTable,
)  # fmt: skip
from .profiler.times import FormattedTimesMixin
from .profiler.times import format_memory as _format_memory
from .profiler.times import format_share as _format_time_share
from .profiler.times import format_time as _format_time

__all__ = [
    "MEMORY_EVENT_NAME", "OUT_OF_MEMORY_EVENT_NAME", "DeviceType", "EventList", "FormattedTimesMixin",
    "FunctionEvent", "FunctionEventAvg", "Interval", "Kernel", "MemRecordsAcc", "StringTable", "_format_memory",
    "_format_time", "_format_time_share",
]  # fmt: skip
