"""What every test may rely on: the same seed at its start, and the ambient state as every program finds it."""

import os
import sys

import pytest
from hypothesis import settings

from pullback.capture.front.config import native
from pullback.core.modes import ambient, process
from pullback.core.random import manual_seed

# The same examples on every machine, so that a change is judged by itself; PULLBACK_SEARCH=1 looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("search", deadline=None, print_blob=True)
settings.load_profile("search" if os.environ.get("PULLBACK_SEARCH") else "same")
native.raise_rule_errors = True  # an error in a lowering rule is a failure, not a reason to run the operator


def _ambient_state() -> dict:
    """What a test must leave as it found it: all that changes the meaning of a later call."""
    return {"mode": ambient.mode, "default dtype": process.default_dtype, "deterministic": process.deterministic}


def pytest_sessionfinish() -> None:
    """Keep what was measured: a worker that is slow to end is killed, and what it would have written then is lost."""
    measured = sys.modules["coverage"].Coverage.current() if "coverage" in sys.modules else None
    if measured is not None:
        measured.stop()
        measured.save()


@pytest.fixture(autouse=True)
def _same_seed():
    manual_seed(0)


@pytest.fixture(autouse=True)
def _ambient_state_is_left_alone():
    before = _ambient_state()
    yield
    after = _ambient_state()
    ambient.mode, process.default_dtype, process.deterministic = before.values()
    left = {name: (before[name], after[name]) for name in before if before[name] != after[name]}
    if left:
        pytest.fail(f"the test left ambient state changed (before, after): {left}")
