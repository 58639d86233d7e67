"""Profiling over the steps of a training loop: a schedule says when to record, a handler takes each trace.

    with profile(schedule=schedule(wait=1, warmup=1, active=3), on_trace_ready=tensorboard_trace_handler("log")) as p:
        for batch in data:
            train(batch)
            p.step()

It stands on `autograd.profiler`, which records one block.
"""

from ..autograd.profiler import DeviceType, KinetoStepTracker, kineto_available, record_function
from . import itt
from .activity import ExecutionTraceObserver, ProfilerActivity, RecordScope, supported_activities
from .session import profile, tensorboard_trace_handler
from .steps import ProfilerAction, schedule

__all__ = [
    "DeviceType", "ExecutionTraceObserver", "KinetoStepTracker", "ProfilerAction", "ProfilerActivity", "RecordScope",
    "itt", "kineto_available", "profile", "record_function", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip
