"""A graph that is run and held to what it was traced with: dtypes, sizes and strides of every value."""

from __future__ import annotations

from typing import Any

from ..capture.shapes.check import evaluate
from ..core.tensor import Tensor
from ..graph import Interpreter, Node


class DebugInterpreter(Interpreter):
    """Runs a graph; an AssertionError where a value is not what its node's `meta["val"]` says of these arguments."""

    def run(self, *args: Any, **options: Any) -> Any:
        given = [n.meta.get("val") for n in self.module.graph.nodes if n.op == "placeholder"]
        env = getattr(self.module, "shape_env", None)
        self.values = {} if env is None else env.bind_symbols(given, args)
        return super().run(*args, **options)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        expected = n.meta.get("val")
        if isinstance(expected, (tuple, list)) and isinstance(result, (tuple, list)):
            if len(expected) != len(result):
                raise AssertionError(f"{n}: {len(expected)} != {len(result)} results")
            for i, (a, b) in enumerate(zip(expected, result, strict=True)):
                self._check(f"{n}[{i}]", a, b)
        else:
            self._check(str(n), expected, result)
        return result

    def _check(self, name: str, expected: Any, found: Any) -> None:
        if not isinstance(expected, Tensor) or not isinstance(found, Tensor):
            return
        if expected.dtype is not found.dtype:
            raise AssertionError(f"{name}: {expected.dtype} != {found.dtype}")
        size, stride = (tuple(map(self._number, v)) for v in (expected.shape, expected.stride()))
        if size != tuple(found.shape):
            raise AssertionError(f"{name}: {size} != {tuple(found.shape)}")
        if 0 in size:
            return
        if any(a != b for n, a, b in zip(size, stride, found.stride(), strict=True) if n > 1):
            raise AssertionError(f"{name}: {stride} != {tuple(found.stride())}")

    def _number(self, v: Any) -> int:
        """A size in these arguments; one that data decides is taken as found."""
        return evaluate(v.node.expr, self.values) if getattr(v, "is_symbolic", False) else v
