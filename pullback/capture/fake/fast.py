"""Operators on fakes without what stands before them in a call: `get_fast_op_impls()[op](mode, *args)`."""

from __future__ import annotations

from collections.abc import Callable

from ...ops.system.operator import Operator, find
from .mode import FakeTensorMode

FAST = ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "detach.default")


def _on_fakes(op: Operator) -> Callable:
    def run(mode: FakeTensorMode, *args, **kwargs):
        with mode:
            return op(*args, **kwargs)

    return run


def get_fast_op_impls() -> dict[Operator, Callable]:
    """Operator -> the function of a fake mode and the operator's arguments that gives what it makes of them."""
    return {op: _on_fakes(op) for op in map(find, FAST)}
