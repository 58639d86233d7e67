"""`profile`: recording that follows a schedule of steps, and handlers for the traces that it gives."""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
import warnings
from collections.abc import Callable, Iterable

from ..autograd.profiler import EventList, record_function
from ..autograd.profiler import profile as block_profile
from .activity import ProfilerActivity, supported_activities
from .steps import RECORDING, ProfilerAction, always


class profile:
    """Context manager that records the steps its schedule picks.

    Without a schedule everything between entry and exit is one trace. `step()` says that the next step begins; when
    the last step of a cycle ends, `on_trace_ready(self)` is called, and `events()` has the events of that cycle.
    """

    def __init__(
        self, *, activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None, on_trace_ready: Callable | None = None,
        record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
        with_modules: bool = False, experimental_config=None, execution_trace_observer=None, acc_events: bool = False,
        use_cuda: bool | None = None, custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ):  # fmt: skip
        self.activities = _checked_activities(activities, use_cuda)
        self.record_shapes, self.with_flops, self.profile_memory = record_shapes, with_flops, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.schedule = schedule or always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn: record_function | None = None
        self.profiler: block_profile | None = None
        self.preset_metadata: dict[str, str] = {}
        self._recording = False
        self._trace_id = ""

    # ---- the life of a profile
    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the action of step 0."""
        self._change(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End the current step; a trace that is being recorded becomes ready."""
        self._end_step()
        self._change(self.current_action, None)

    def step(self) -> None:
        """The next step begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._change(before, self.current_action)
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _change(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """Stop, hand over and start recording as two successive actions ask for."""
        if before is ProfilerAction.RECORD_AND_SAVE or (before is ProfilerAction.RECORD and after is None):
            self.stop_trace()
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        elif before in RECORDING and after not in RECORDING:
            warnings.warn(f"Incorrect schedule: {before.name} followed by {after and after.name}", stacklevel=3)
            self.stop_trace()
        elif before is ProfilerAction.WARMUP and after is ProfilerAction.NONE:
            warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=3)
        if after in RECORDING and not self._recording:
            self.start_trace()

    def prepare_trace(self) -> None:
        """Make the recorder of the next trace."""
        if self.profiler is None or not self.acc_events:
            self.profiler = block_profile(
                record_shapes=self.record_shapes, with_flops=self.with_flops, profile_memory=self.profile_memory,
                with_stack=self.with_stack, with_modules=self.with_modules, acc_events=self.acc_events,
            )  # fmt: skip
        self._trace_id = (
            self.custom_trace_id_callback() if self.custom_trace_id_callback is not None else uuid.uuid4().hex.upper()
        )

    def start_trace(self) -> None:
        self.prepare_trace()
        recorder = self._finished()
        recorder.metadata.update({key: _parsed(value) for key, value in self.preset_metadata.items()})
        recorder.begin()
        self._recording = True

    def stop_trace(self) -> None:
        if self._recording:
            self._recording = False
            self._finished().end()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Pause or go on recording."""
        if self.profiler is not None and ProfilerActivity.CPU in set(activities):
            self.profiler.toggle_collection_dynamic(enable)

    # ---- results
    def _finished(self) -> block_profile:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before its results are read: no step was recorded")
        return self.profiler

    def events(self) -> EventList | None:
        """The events of the last trace; None while one is being recorded."""
        return self._finished().function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The events of the last trace, summed by name."""
        return self._finished().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str) -> None:
        """Write the last trace; a path that ends in .gz is compressed."""
        self._finished().metadata["trace_id"] = self._trace_id
        self._finished().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with times, for flame graphs."""
        self._finished().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        raise NotImplementedError(
            "export_memory_timeline(): memory is counted per call (profile_memory=True), not followed over time"
        )

    def get_trace_id(self) -> str | None:
        return self._trace_id or None

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        self.custom_trace_id_callback = callback

    # ---- what else goes into the file
    def add_metadata(self, key: str, value: str) -> None:
        """A text that is written into the trace."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """A piece of JSON that is written into the trace."""
        self._finished().metadata[key] = _parsed(value)

    def preset_metadata_json(self, key: str, value: str) -> None:
        """The same, before the profile has started."""
        self.preset_metadata[key] = value


def _parsed(text: str):
    try:
        return json.loads(text)
    except ValueError:
        return text


def _checked_activities(activities: Iterable | None, use_cuda: bool | None) -> set[ProfilerActivity]:
    """The activities that can be recorded of those asked for; others are named in a warning."""
    asked = supported_activities() if activities is None else set()
    for activity in activities or ():
        asked.update(activity if isinstance(activity, dict) else (activity,))
    if use_cuda:
        warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=3)
        asked.add(ProfilerActivity.CUDA)
    for missing in sorted(asked - supported_activities(), key=lambda a: a.name):
        warnings.warn(f"{missing.name} is not available, disabling {missing.name} profiling", stacklevel=3)
    asked &= supported_activities()
    if not asked:
        raise AssertionError("No valid profiler activities found")
    return asked


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """A handler that writes each trace to a file of its own, named as TensorBoard's plugin expects."""

    def write(session: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        session.export_chrome_trace(os.path.join(dir_name, name))

    return write
