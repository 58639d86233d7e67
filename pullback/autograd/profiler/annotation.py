"""`record_function`: a named block of a program, as an event among those of the operators inside it.

With no profile running, entering and leaving a block is a test of one bit.
"""

from __future__ import annotations

from contextlib import ContextDecorator

from ...ops.system.packet import ops
from .recorder import USER, Recorder, Span, current


class Handle:
    """An open block: the span, and the recorder that it belongs to (None where nothing was recording)."""

    __slots__ = ("recorder", "span")

    def __init__(self, recorder: Recorder | None, span: Span | None):
        self.recorder, self.span = recorder, span


def enter(name: str, args: str | None = None) -> Handle:
    """Begin a block; `args` is shown beside its name."""
    recorder = current()
    if recorder is None:
        return Handle(None, None)
    span = recorder.begin(name, USER)
    if args is not None:
        span.shapes, span.dtypes = [], [args]
    return Handle(recorder, span)


def leave(handle: Handle) -> None:
    """End a block; one that has ended already, or with its profile, stays as it is."""
    if handle.recorder is not None:
        handle.recorder.finish(handle.span)


class record_function(ContextDecorator):
    """Context manager, and decorator, that labels a block of code in profiles."""

    def __init__(self, name: str, args: str | None = None):
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True
        self.record: Handle | None = None

    def _recreate_cm(self) -> record_function:
        """A decorated function gets a block of its own at each call, so that it may call itself."""
        return record_function(self.name, self.args)

    def __enter__(self) -> record_function:
        self.record = enter(self.name, self.args)
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        if self.run_callbacks_on_exit and self.record is not None:
            leave(self.record)

    def _call_end_callbacks_on_future(self, fut):
        """Let the block end when a future is done, rather than with the `with`."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False

        def done(finished):
            if self.record is not None:
                leave(self.record)
            return finished.value()

        return fut.then(done)


# `ops.profiler`: the same two steps for programs that call them as operators.
enter.has_effects = leave.has_effects = True  # type: ignore[attr-defined]  # a graph keeps the calls
ops.profiler._record_function_enter = ops.profiler._record_function_enter_new = enter
ops.profiler._record_function_exit = leave
