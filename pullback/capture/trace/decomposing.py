"""A graph written anew with some operators taken apart.

In: a graph module, an empty graph, a table of decompositions, and arguments to run on. Out: the new graph has what the old one
computes, in the operators that the decompositions call.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...graph import Graph, GraphModule, Interpreter
from .graph_trace import GraphTrace
from .make_fx import by_operator


def _apart(value: Any) -> Any:
    """A tensor of this trace's own on the same memory; what is no tensor, itself."""
    return value.shallow(value._autograd) if isinstance(value, Tensor) else value


class DecompositionInterpreter(Interpreter):
    """Runs a module and writes what it does into `new_graph`."""

    def __init__(self, module: GraphModule, new_graph: Graph, decomposition_table: dict | None = None, **kwargs: Any):
        super().__init__(module, **kwargs)
        self.tracer = GraphTrace(decompositions=by_operator(decomposition_table or {}))
        self.tracer.graph = self.new_graph = new_graph

    def placeholder(self, target: Any, args: tuple, kwargs: dict) -> Any:
        value = _apart(super().placeholder(target, args, kwargs))
        self.tracer.track(value, self.new_graph.placeholder(target))
        return value

    def get_attr(self, target: Any, args: tuple, kwargs: dict) -> Any:
        value = _apart(super().get_attr(target, args, kwargs))
        if isinstance(value, Tensor):
            self.tracer.track(value, self.new_graph.get_attr(target))
        return value

    def output(self, target: Any, args: tuple, kwargs: dict) -> Any:
        result = super().output(target, args, kwargs)
        self.new_graph.output(self.tracer.argument(result))
        return result

    def run(self, *args: Any, **kwargs: Any) -> Any:
        with self.tracer:
            return super().run(*args, **kwargs)
