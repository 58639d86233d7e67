"""A trace that records into the graph of a tracer: `ProxyTorchDispatchMode(PythonKeyTracer(), "real")`, entered by hand.

In: a tracer, and operators that are called while the mode is entered. Out: their nodes in `tracer.graph`; tensors that the trace has
not met are attributes of `tracer.root`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...core.tensor import Tensor
from ...graph import Graph
from ...graph.tracer import Tracer
from ...nn.module import Module
from .graph_trace import GraphTrace
from .make_fx import MODES, by_operator


class PythonKeyTracer(Tracer):
    """A tracer of operators: modules are no calls of their own, and what is read of them is the thing itself."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.root: Any = Module()
        self.graph = Graph(tracer_cls=type(self))

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        return attr_val


class ProxyTorchDispatchMode(GraphTrace):
    """Records operators in the graph of a tracer. Tensors are what they are: "fake" and "symbolic" say of what kind those are
    that the caller works on."""

    def __init__(
        self,
        tracer: Tracer,
        tracing_mode: str,
        pre_dispatch: bool = False,
        _allow_fake_constant: bool = False,
        _error_on_data_dependent_ops: bool = True,
        decomposition_table: dict | None = None,
    ):
        if tracing_mode not in MODES:
            raise ValueError(f"tracing_mode must be one of {', '.join(map(repr, MODES))}, got {tracing_mode!r}")
        if pre_dispatch:
            raise NotImplementedError(
                "ProxyTorchDispatchMode above autograd: make_fx(..., pre_dispatch=True) traces there"
            )
        super().__init__()
        self.tracer, self.tracing_mode = tracer, tracing_mode
        self.graph = tracer.graph
        self.refuses_data = _error_on_data_dependent_ops
        self._decompose_by(decomposition_table or {})

    def _decompose_by(self, table: dict) -> None:
        self.decomposition_table, self.decompositions = table, by_operator(table)

    @contextmanager
    def enable_decompositions(self, table: dict) -> Iterator[None]:
        """A block in which another table of decompositions counts."""
        before = self.decomposition_table
        self._decompose_by(table)
        try:
            yield
        finally:
            self._decompose_by(before)

    def constant(self, t: Tensor) -> Any:
        node = super().constant(t)
        setattr(self.tracer.root, node.target, t)
        return node
