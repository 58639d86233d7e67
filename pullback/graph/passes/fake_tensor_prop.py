"""Fake values on nodes, from a run on fake tensors.

In: a graph module and example inputs, real or fake. Out: `meta["val"]` on every node. What always holds: nothing is
computed but shapes, dtypes and devices, and the graph itself does not change.
"""

from __future__ import annotations

from typing import Any

from ...core.layers import above
from ...core.tensor import Tensor
from ..arguments import map_aggregate
from ..interpreter import Interpreter
from ..node import Node


class FakeTensorProp(Interpreter):
    """Runs a graph on fake tensors and notes each result on its node."""

    def __init__(self, module: Any, mode: Any = None, *, check_consistency: bool = False):
        super().__init__(module)
        self._mode = mode if mode is not None else _new_mode()

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        found = False

        def look(value: Any) -> Any:
            nonlocal found
            found = found or isinstance(value, Tensor) or getattr(value, "is_symbolic", False)
            return value

        map_aggregate(result, look)
        if found:
            _unify(n.meta.get("val"), result)
            n.meta["val"] = result
        n.meta["type"] = type(result)
        return result

    def get_attr(self, target: Any, args: tuple, kwargs: dict) -> Any:
        value = self.fetch_attr(target)
        return self._mode.from_tensor(value) if isinstance(value, Tensor) else value

    def propagate(self, *args: Any) -> Any:
        """Run on fakes of the inputs; the result."""
        return self.propagate_dont_convert_inputs(
            *(self._mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args)
        )

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run on inputs that are fake already; the result."""
        with self._mode:
            return super().run(*args)


def _unify(before: Any, now: Any) -> None:
    """Say of symbols for what only data decides that they are those which the node had before: it is the same call."""
    if isinstance(before, Tensor) and isinstance(now, Tensor):
        before, now = tuple(before.shape), tuple(now.shape)
    if isinstance(before, (tuple, list)) and isinstance(now, (tuple, list)):
        for a, b in zip(before, now, strict=False):
            _unify(a, b)
    elif all(getattr(v, "is_symbolic", False) for v in (before, now)):
        old, new = before.node.expr, now.node.expr
        env = now.node.shape_env
        if (
            env is before.node.shape_env
            and old is not new
            and all(getattr(e, "is_unbacked", False) for e in (old, new))
        ):
            env.constrain_unify(now, before)


def _new_mode() -> Any:
    """A mode of its own."""
    return above.fake_mode(True)
