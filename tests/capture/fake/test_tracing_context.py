"""The context of a trace: its fake mode is found where no other one is."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.fake.tracing_context import TracingContext, detect, tracing


def test_the_mode_of_the_open_context():
    mode, other = FakeTensorMode(), FakeTensorMode()
    assert detect() is None and TracingContext.try_get() is None
    with tracing(TracingContext(mode)) as context:
        assert detect() is mode and TracingContext.get() is context
        with tracing(TracingContext()):
            assert detect() is None and detect([other.from_tensor(torch.ones(2))]) is other
        with pytest.raises(AssertionError, match="from tracing context"):
            detect([other.from_tensor(torch.ones(2))])
    with pytest.raises(RuntimeError, match="within an ongoing trace"):
        TracingContext.get()
