"""The profiler of operators and backward nodes: `profile` a block, label parts of it with `record_function`.

Importing this package hangs the recorder on the seams in dispatch and in the engine; while no profile runs, nothing
of it is reached.
"""

from ...core import modes as _modes
from .annotation import record_function
from .block import profile
from .event_list import EventList
from .events import MEMORY_EVENT_NAME, DeviceType, FunctionEvent, FunctionEventAvg, Kernel, MemRecordsAcc
from .markers import EnforceUnique, KinetoStepTracker, emit_itt, emit_nvtx, load_nvprof, parse_nvprof_trace


def kineto_available() -> bool:
    """Whether traces with shapes, stacks and annotations can be made: they can, without the library of that name."""
    return True


def profiler_enabled() -> bool:
    """Whether a profile is recording in this thread."""
    return bool(_modes.ambient.mode & _modes.PROFILE)


__all__ = [
    "MEMORY_EVENT_NAME", "DeviceType", "EnforceUnique", "EventList", "FunctionEvent", "FunctionEventAvg", "Kernel",
    "KinetoStepTracker", "MemRecordsAcc", "emit_itt", "emit_nvtx", "kineto_available", "load_nvprof",
    "parse_nvprof_trace", "profile", "profiler_enabled", "record_function",
]  # fmt: skip
