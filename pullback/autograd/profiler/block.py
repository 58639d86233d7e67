"""`profile`: a block of a program whose operators are timed."""

from __future__ import annotations

import warnings

from .event_list import EventList
from .events import FunctionEvent
from .recorder import USER, Recorder, Span
from .trace import write_chrome_trace

_UNFINISHED = "<unfinished torch.autograd.profile>"


class profile:
    """Context manager that records what runs inside it. Afterwards `function_events` has the events.

    `record_shapes` keeps the shapes of inputs, `profile_memory` the bytes of results, `with_stack` where calls came
    from, `with_flops` an estimate of the arithmetic in products and convolutions. There is one way of recording, so
    `use_kineto` chooses nothing; devices other than the CPU cannot be recorded.
    """

    def __init__(
        self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
        record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False, with_stack: bool = False,
        with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True, experimental_config=None,
        acc_events: bool = False, custom_trace_id_callback=None, post_processing_timeout_s: float | None = None,
        activity_filters: dict | None = None,
    ):  # fmt: skip
        self.enabled = enabled
        self.use_cpu = use_cpu
        self.use_device = None
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory, self.with_stack = with_flops, profile_memory, with_stack
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.entered = False
        self.metadata: dict[str, object] = {}
        self._recorder: Recorder | None = None
        self._events: EventList | None = None
        self._kept: list[FunctionEvent] = []  # of earlier blocks, with acc_events
        if not enabled:
            return
        device = "cuda" if use_cuda else use_device
        if device not in (None, "cpu"):
            warnings.warn(f"{device.upper()} is not available, disabling {device.upper()} profiling", stacklevel=2)
        if not use_cpu:
            raise AssertionError("No activities specified for the profiler")

    # ---- recording
    def __enter__(self):
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.begin()
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        if self.enabled:
            self.end()

    def begin(self) -> None:
        """Start to record in this thread."""
        if self.acc_events:
            self._finished()  # the events of the last block are made before its recorder goes
        self.entered = True
        recorder = Recorder(self.record_shapes, self.profile_memory, self.with_stack, self.with_flops)
        self._recorder = recorder.__enter__()

    def end(self) -> None:
        """Stop; events are made of what was recorded when they are first asked for."""
        if self._recorder is not None:
            self._recorder.__exit__()
        self._events = None

    def toggle_collection_dynamic(self, enabled: bool, activities=()) -> None:
        """Pause or go on recording inside the block."""
        if self._recorder is not None:
            self._recorder.collect(enabled)

    # ---- results
    @property
    def function_events(self) -> EventList | None:
        """The events, as a tree in the order in which they began; None while the block runs or has not run."""
        if self._events is None and self._recorder is not None and self._recorder.end:
            self._events = self._make_events(self._recorder)
        return self._events

    def _make_events(self, recorder: Recorder) -> EventList:
        result = [_event(i, span, recorder.start) for i, span in enumerate(recorder.spans, 1)]
        events = EventList(result, use_device=None, profile_memory=self.profile_memory, with_flops=self.with_flops)
        events._build_tree()
        if self.acc_events:
            events[:0] = self._kept
            self._kept = list(events)
        return events

    def _finished(self) -> EventList:
        events = self.function_events
        return EventList() if events is None else events

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds spent in all events."""
        return self._finished().self_cpu_time_total

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """Events summed by name."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self):
        """All events summed."""
        return self._finished().total_average()

    def table(self, *args, **kwargs) -> str:
        """The events as text: see `EventList.table`."""
        return self._finished().table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace that chrome://tracing and Perfetto show."""
        write_chrome_trace(self._finished(), path, self.metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with times, for flame graphs."""
        if self.function_events is None:
            raise AssertionError("Expected profiling results")
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def __repr__(self) -> str:
        return _UNFINISHED if self.function_events is None else repr(self.function_events)

    def __str__(self) -> str:
        return _UNFINISHED if self.function_events is None else str(self.function_events)


def _event(number: int, span: Span, origin: int) -> FunctionEvent:
    """A span as an event; times count from the beginning of the profile."""
    flat = [s if not s or isinstance(s[0], int) else [] for s in span.shapes]
    return FunctionEvent(
        id=number, name=step_name(span.name), trace_name=span.name, thread=span.thread,
        start_us=(span.start - origin) / 1000, end_us=(span.end - origin) / 1000, overload_name=span.overload,
        fwd_thread=span.forward_thread, input_shapes=flat, structured_input_shapes=span.shapes,
        input_dtypes=span.dtypes, stack=span.stack, scope=span.scope, cpu_memory_usage=span.memory,
        sequence_nr=span.sequence, flops=span.flops, is_user_annotation=span.scope == USER,
    )  # fmt: skip


def step_name(name: str) -> str:
    """All steps of a schedule are one name in tables; traces keep their numbers."""
    return "ProfilerStep*" if name.startswith("ProfilerStep#") else name
