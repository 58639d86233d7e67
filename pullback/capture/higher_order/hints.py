"""A part of a program with hints beside it, for whoever reads the graph: `hints_wrapper(f, args, kwargs, hints=...)`.

In: a function, a tuple of tensors and numbers, a dict of them, and a dict of plain values. Out: `f(*args, **kwargs)`. In a
captured program it is one node, which keeps the hints; who traces that node again sees what the function calls.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.tensor import Tensor
from .base import HigherOrderOperator, attach, distinct
from .region import Region, capturing

NUMBERS = (int, float, bool)


class HintsWrapper(HigherOrderOperator):
    """See the module's docstring."""

    takes_programs = True

    def __init__(self) -> None:
        super().__init__("hints_wrapper")

    def __call__(self, body_fn: Callable, args: tuple, kwargs: dict, hints: dict | None = None):
        _check(args, kwargs, hints)
        trace = capturing()
        if trace is None:
            return body_fn(*args, **kwargs)
        region = Region(trace, body_fn, args, kwargs)
        region.drop_unused()
        operands = region.operands
        out = distinct(region.run(lambda graph, *values: graph(*values), operands), operands)
        results = region.passed_on(out)
        trace._note_grad_mode()
        (graph,) = attach(trace, ("hints_wrapper_body_",), [region.graph])
        arguments = (graph, tuple([trace.argument(v) for v in operands]), {})
        trace.track(out, trace.create_node(self, arguments, {"hints": dict(hints or {})}, "hints_wrapper"))
        return region.result.rebuild(results)


def _check(args: tuple, kwargs: dict, hints: dict | None) -> None:
    if hints is None:
        raise RuntimeError("hints_wrapper: improper args/kwargs: expected (f, args, kwargs, hints={...}), got no hints")
    for name, given, kind in (("args", args, tuple), ("kwargs", kwargs, dict)):
        values = given.values() if isinstance(given, dict) else given
        if not isinstance(given, kind) or not all(_is_operand(v) for v in values):
            raise RuntimeError(
                f"hints_wrapper: {name} must be a {kind.__name__} of tensors, ints, floats, or bools, got {given!r}"
            )
    if not isinstance(hints, dict) or not all(isinstance(v, (*NUMBERS, str)) for v in hints.values()):
        raise RuntimeError(
            f"hints_wrapper: hints must be a dict containing int, float, bool or str value, got {hints!r}"
        )


def _is_operand(value) -> bool:
    return isinstance(value, (Tensor, *NUMBERS)) or getattr(value, "is_symbolic", False)


hints_wrapper = HintsWrapper()
