"""Values of nodes that compute sizes, and Python's own functions on symbolic numbers.

In: a graph whose tensors have their fakes on them. Out: the same graph, with symbolic numbers on the nodes that make
them. What always holds: nothing is computed but sizes.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..capture.fake.mode import FakeTensorMode
from ..core.symbolic import sym_max, sym_min, symbolic
from ..graph import Graph, Node
from ..graph.assertions import _assert


def fill_numbers(graph: Graph, mode: FakeTensorMode) -> None:
    """Give nodes without a value theirs, where all that they take have one."""
    with mode:
        for node in graph.nodes:
            if node.op != "call_function" or "val" in node.meta or node.target is _assert or node.kwargs:
                continue
            if node.args and all(
                "val" in a.meta if isinstance(a, Node) else isinstance(a, (int, float)) for a in node.args
            ):
                node.meta["val"] = node.target(*[a.meta["val"] if isinstance(a, Node) else a for a in node.args])


@contextmanager
def symbolic_builtins() -> Iterator[None]:
    """Inside, `max`, `min` and `math.pow` of symbolic numbers are symbolic numbers: Python would have to compare them."""
    before = builtins.max, builtins.min, math.pow
    builtins.max, builtins.min = _extreme(max, sym_max), _extreme(min, sym_min)
    math.pow = _power  # type: ignore[assignment]
    try:
        yield
    finally:
        builtins.max, builtins.min, math.pow = before  # type: ignore[assignment]


def _extreme(plain: Callable, of_symbols: Callable) -> Callable:
    @functools.wraps(plain)
    def function(*args: Any, **kwargs: Any) -> Any:
        given = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
        if kwargs or len(given) < 2 or not symbolic(*given):
            return plain(*args, **kwargs)
        return functools.reduce(of_symbols, given)

    return function


def _power(x: Any, y: Any) -> Any:
    return x**y if symbolic(x, y) else _plain_power(x, y)


_plain_power = math.pow
