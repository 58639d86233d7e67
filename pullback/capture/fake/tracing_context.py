"""What a compiler knows while it traces: `with tracing(TracingContext(fake_mode))`.

In: a fake mode, or none. Out: inside the block, the mode that fakes are made in where no other one is active.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .mode import FakeTensorMode, detect_fake_mode


class _Open(threading.local):
    context: TracingContext | None = None


_open = _Open()


class TracingContext:
    """See the module's docstring."""

    def __init__(self, fake_mode: FakeTensorMode | None = None):
        self.fake_mode = fake_mode

    @staticmethod
    def try_get() -> TracingContext | None:
        """The innermost context that is open in this thread."""
        return _open.context

    @staticmethod
    def get() -> TracingContext:
        """The innermost context, or an error."""
        if _open.context is None:
            raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")
        return _open.context


@contextmanager
def tracing(context: TracingContext | None) -> Iterator[TracingContext | None]:
    """A block in which a context is open."""
    before, _open.context = _open.context, context
    try:
        yield context
    finally:
        _open.context = before


def detect(inputs=None) -> FakeTensorMode | None:
    """`detect_fake_mode`, the mode of the open context included."""
    context = TracingContext.try_get()
    found = detect_fake_mode(inputs)
    own = None if context is None else context.fake_mode
    if own is not None and found is not None and found is not own:
        raise AssertionError(
            f"fake mode ({found}) from fake tensor input doesn't match mode ({own}) from tracing context"
        )
    return own if own is not None else found
