"""A call of a function of the user's inside a captured program, as a graph of its own and one node around it.

In: the trace of the program, a function, the arguments it is called with (any nest of tensors and other values). Out: the
function's graph, a function of tensors alone, and how nested arguments and results are made of tensors again. What always
holds: tensors that the function closes over are operands of the node, after those it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core import modes, tree
from ...core.geometry import contiguous_strides
from ...core.modes import ambient
from ...core.tensor import Tensor
from ...graph import GraphModule, Node
from ..fake.mode import FakeTensorMode
from ..trace.program import ProgramTrace
from ..trace.promises import running_graphs
from . import subprogram
from .base import attach
from .subgraph import Example


def capturing() -> ProgramTrace | None:
    """The trace of the program that is being captured, where nothing transforms what is called."""
    wanted = ambient.mode & (modes.CAPTURE | modes.TRANSFORM | modes.FORWARD) == modes.CAPTURE
    return ambient.captures[-1] if wanted else None


def traced(value: Any) -> bool:
    """Whether a value is one that graphs compute: a tensor or a symbolic number."""
    return isinstance(value, Tensor) or getattr(value, "is_symbolic", False)


class Structure:
    """A nest of values: which of them graphs compute, and all others."""

    def __init__(self, value: Any):
        self.leaves, self.spec = tree.tree_flatten(value)
        self.places = [i for i, v in enumerate(self.leaves) if traced(v)]
        self.tensors = [self.leaves[i] for i in self.places]
        self.leaves = [None if traced(v) else v for v in self.leaves]

    def rebuild(self, tensors: Any) -> Any:
        """The nest, of other tensors."""
        leaves = list(self.leaves)
        for i, t in zip(self.places, tensors, strict=True):
            leaves[i] = t
        return tree.tree_unflatten(leaves, self.spec)


class Slice:
    """An operand without one of its dimensions, as `vmap` shows it to a function."""

    tracked = False

    def __init__(self, value: Tensor, dim: int):
        self.value, self.dim = value, dim

    def fake(self, mode: FakeTensorMode) -> Tensor:
        shape = list(self.value._array.shape)
        del shape[self.dim]
        return mode.make(tuple(shape), contiguous_strides(shape), self.value.dtype, self.value.device)


class Region:
    """One function, captured. Those of its arguments that are `tracked` are differentiated by: inside, they require grad, and
    all is recorded. Inside of a function that a transform `derives`, inference mode is off, as the transform switches it off."""

    def __init__(
        self,
        trace: ProgramTrace,
        f: Callable,
        args: tuple,
        kwargs: dict,
        dims: list | None = None,
        tracked: tuple = (),
        derives: bool = False,
    ):
        self.trace, self.given = trace, Structure((args, kwargs))
        own = {id(t) for t in tree.tree_leaves(tracked) if isinstance(t, Tensor) and t.dtype.category >= 2}
        off = modes.INFERENCE if derives else 0
        with subprogram.paused_capture(trace), modes.masked(off, modes.GRAD if own else 0):
            self.operands = [trace._inside(t) if isinstance(t, Tensor) else t for t in self.given.tensors]
            shown: list[Any] = [
                Example(t, tracked=id(seen) in own) if d is None else Slice(t, d)
                for t, seen, d in zip(
                    self.operands, self.given.tensors, dims or [None] * len(self.operands), strict=True
                )
            ]
            (self.graph,), free = subprogram.capture_functions(trace, [(self._flat(f), shown)])
            self.free = [trace._inside(t) for t in free]

    def _flat(self, f: Callable) -> Callable:
        def flat(*operands: Any) -> tuple:
            args, kwargs = self.given.rebuild(operands)
            self.result = Structure(f(*args, **kwargs))
            return tuple(self.result.tensors)

        return flat

    def function(self, graph: GraphModule, free: tuple) -> Callable:
        """The captured function, of arguments as they were given."""

        def call(*args: Any, **kwargs: Any) -> Any:
            leaves = tree.tree_leaves((args, kwargs))
            return self.result.rebuild(graph(*[leaves[i] for i in self.given.places], *free))

        return call

    def record(self, target: Callable, operands: list, out: tuple, prefix: str) -> None:
        """The node of a call `target(graph, *operands)` that gives `out`."""
        trace = self.trace
        trace._note_grad_mode()
        (graph,) = attach(trace, (prefix,), [self.graph])
        arguments = tuple([trace.argument(v) for v in operands])
        name = getattr(target, "__name__", "call")
        trace.track(out, trace.create_node(target, (graph, *arguments), {}, name))

    def run(self, target: Callable, operands: list) -> tuple:
        """What the call gives on fakes. A function that writes to tensors it did not make is no region."""
        before = [t._counter[0] for t in operands if isinstance(t, Tensor)]
        with subprogram.paused_capture(self.trace), running_graphs(self.trace):
            out = target(self.graph, *operands)
        if before != [t._counter[0] for t in operands if isinstance(t, Tensor)]:
            self.trace.refuse("a function inside an operator writes to a tensor that it did not make")
        return out

    def drop_unused(self) -> None:
        """Take away operands that the graph does not read."""
        nodes = self.graph.graph.find_nodes(op="placeholder")
        kept = [bool(n.users) for n in nodes]
        operands = [*self.operands, *self.free]
        for node, used in zip(nodes, kept, strict=True):
            if not used:
                self.graph.graph.erase_node(node)
        self.graph.recompile()
        self.operands, self.free = [t for t, used in zip(operands, kept, strict=True) if used], []

    def passed_on(self, results: tuple) -> list:
        """The results, with the operands themselves where the function gives them back."""
        inputs = {n: i for i, n in enumerate(self.graph.graph.find_nodes(op="placeholder"))}
        outputs = self.graph.graph.output_node().args[0]
        given = [*self.operands, *self.free]
        return [
            given[inputs[n]] if isinstance(n, Node) and n in inputs else r
            for n, r in zip(outputs, results, strict=True)
        ]
