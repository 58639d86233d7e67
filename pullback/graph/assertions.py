"""Assertions that can be part of a graph.

In: a condition that may be a traced value. Out: nothing, or an error when the program runs. What always holds: a call is
never removed as dead code.
"""

from __future__ import annotations

from typing import Any

from ..ops.make.assertions import ASSERTIONS
from ..ops.system.overrides import any_overridden, call_overridden
from .node import has_side_effect

for _operator in ASSERTIONS:
    has_side_effect(_operator)


@has_side_effect
def _assert(condition: Any, message: str) -> None:
    """An `assert` that is recorded where the condition is traced."""
    if any_overridden((condition,)):
        return call_overridden(_assert, (condition, message), {})
    if not condition:
        raise AssertionError(message)
    return None


@has_side_effect
def _assert_is_none(value: Any, msg: str) -> None:
    """That an input which was None when traced is None again."""
    if value is not None:
        raise AssertionError(msg)


@has_side_effect
def assert_fn(x: Any) -> None:
    """What an `assert` statement in traced code becomes."""
    if not x:
        raise AssertionError("Assertion failed")
