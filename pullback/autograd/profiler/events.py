"""Events: what a profile has seen, as objects that can be summed, grouped and printed.

A `FunctionEvent` is one call with its times (microseconds), its parent and its children; a `FunctionEventAvg` is the
sum of all calls with one key. Always holds: an event's own time is its time less that of its children.
"""

from __future__ import annotations

from collections import defaultdict, namedtuple
from enum import Enum

from .times import FormattedTimesMixin, format_time

MEMORY_EVENT_NAME = "[memory]"
OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"
Kernel = namedtuple("Kernel", ["name", "device", "duration"])


class DeviceType(Enum):
    """Where an event took place."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    HIP = 6
    XLA = 9
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    MTIA = 19
    PrivateUse1 = 20


class Interval:
    """From `start` to `end`, in microseconds."""

    def __init__(self, start: float, end: float):
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        return self.end - self.start


class FunctionEvent(FormattedTimesMixin):
    """One call of an operator, of a backward node, or of an annotated block."""

    def __init__(
        self, id, name, thread, start_us, end_us, overload_name=None, fwd_thread=None, input_shapes=None, stack=None,
        scope=0, use_device=None, cpu_memory_usage=0, device_memory_usage=0, is_async=False, is_remote=False,
        sequence_nr=-1, node_id=-1, device_type=DeviceType.CPU, device_index=0, device_resource_id=None,
        is_legacy=False, flops=None, trace_name=None, concrete_inputs=None, kwinputs=None, is_user_annotation=False,
        structured_input_shapes=None, input_dtypes=None,
    ):  # fmt: skip
        self.id, self.node_id, self.name, self.overload_name = id, node_id, name, overload_name or ""
        self.trace_name = name if trace_name is None else trace_name
        self.time_range = Interval(start_us, end_us)
        self.thread, self.fwd_thread, self.scope, self.sequence_nr = thread, fwd_thread, scope, sequence_nr
        self.input_shapes, self.stack, self.flops = input_shapes, stack or [], flops
        self.structured_input_shapes = input_shapes if structured_input_shapes is None else structured_input_shapes
        self.input_dtypes = input_dtypes or []
        self.concrete_inputs, self.kwinputs = concrete_inputs, kwinputs
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.use_device, self.device_type, self.device_index = use_device, device_type, device_index
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy
        self.is_user_annotation = is_user_annotation
        self.count = 1
        self.kernels: list[Kernel] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.self_cpu_percent = self.total_cpu_percent = self.total_device_percent = -1

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Attach the device's part of this call."""
        self._require_cpu()
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Attach a call that was made inside this one."""
        self._require_cpu()
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        self._require_cpu()
        self.cpu_parent = parent

    def _require_cpu(self) -> None:
        if self.device_type != DeviceType.CPU:
            raise AssertionError(f"only events of the CPU nest, this one is of {self.device_type!r}")

    # ---- times and memory: totals, and what is left without the children
    @property
    def _on_cpu(self) -> bool:
        return self.device_type == DeviceType.CPU and not self.is_async

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children) if self._on_cpu else 0

    @property
    def device_time_total(self) -> float:
        if self.is_async:
            return 0
        if self.device_type != DeviceType.CPU:
            return self.time_range.elapsed_us()
        return sum(k.duration for k in self.kernels) + sum(c.device_time_total for c in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        return (
            self.device_time_total - sum(c.device_time_total for c in self.cpu_children)
            if self._on_cpu
            else self.device_time_total
        )

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children) if self._on_cpu else 0

    @property
    def self_device_memory_usage(self) -> int:
        return self.device_memory_usage - sum(c.device_memory_usage for c in self.cpu_children) if self._on_cpu else 0

    cuda_time_total = device_time_total
    self_cuda_time_total = self_device_time_total

    @property
    def key(self) -> str:
        """What calls are grouped by."""
        return self.name

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[c.id for c in self.cpu_children]} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} is_async={self.is_async} is_remote={self.is_remote} "
            f"seq_nr={self.sequence_nr}>"
        )


_SUMMED = (
    "cpu_time_total", "device_time_total", "self_cpu_time_total", "self_device_time_total", "cpu_memory_usage",
    "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage", "count",
)  # fmt: skip


class FunctionEventAvg(FormattedTimesMixin):
    """The sum of events with one key; the first one that is added says what it stands for."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.overload_name: str | None = None
        self.node_id = 0
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.use_device: str | None = None
        self.input_shapes: list | None = None
        self.stack: list | None = None
        self.scope: int | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list | None = None
        self.device_type: DeviceType | None = None
        self.flops = 0
        for name in _SUMMED:
            setattr(self, name, 0)

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Count another event, or another sum, of the same key."""
        if self.key is None:
            for name in (
                "key", "overload_name", "node_id", "is_async", "is_remote", "is_legacy", "is_user_annotation",
                "use_device", "input_shapes", "stack", "scope", "cpu_parent", "cpu_children", "device_type",
            ):  # fmt: skip
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"events of {other.key!r} do not add to those of {self.key!r}")
        for name, value in [(n, getattr(other, n)) for n in _SUMMED]:
            setattr(self, name, getattr(self, name) + value)
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


class StringTable(defaultdict):
    """Readable names for mangled ones; nothing is mangled here, so each name stands for itself."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Records of memory (with `start_ns()`), to be asked for by intervals of time."""

    def __init__(self, mem_records: list):
        self._records = sorted(mem_records, key=lambda r: r[0].start_ns())

    def in_interval(self, start_us: float, end_us: float):
        """The records inside an interval given in microseconds."""
        from bisect import bisect_left, bisect_right

        key = lambda r: r[0].start_ns() / 1000  # noqa: E731
        first, last = bisect_left(self._records, start_us, key=key), bisect_right(self._records, end_us, key=key)
        yield from self._records[first:last]


__all__ = [
    "MEMORY_EVENT_NAME", "OUT_OF_MEMORY_EVENT_NAME", "DeviceType", "FunctionEvent", "FunctionEventAvg", "Interval",
    "Kernel", "MemRecordsAcc", "StringTable", "format_time",
]  # fmt: skip
