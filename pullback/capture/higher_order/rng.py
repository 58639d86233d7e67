"""Random operators that are computed again: the state of the generator saved, and set for one call.

`run_and_save_rng_state(op, *args)` gives (the state before, the result). `run_with_rng_state(state, op, *args)` gives the
result that the operator has from that state, and leaves the generator as it was. Where an operator draws nothing with the
arguments that it has (attention that drops nothing), its state is of no use: `without_states` makes it a plain call, for
compilers that know the operator.
"""

from __future__ import annotations

import operator

from ...core.tensor import Tensor
from ...graph import Graph, GraphModule, Node
from ...ops.make.random import get_rng_state, set_rng_state
from ..fake.mode import unset_fake_temporarily
from .base import HigherOrderOperator, autograd_not_implemented


def _get_state() -> Tensor:
    """The state, as a real tensor whatever traces."""
    with unset_fake_temporarily():
        return get_rng_state()


class RunAndSaveRngState(HigherOrderOperator):
    """`run_and_save_rng_state(op, *args)`."""

    def __init__(self) -> None:
        super().__init__("run_and_save_rng_state", cacheable=True)

    def plain(self, op, *args, **kwargs):
        return _get_state(), op(*args, **kwargs)

    def fake_rule(self, mode, op, *args, **kwargs):
        with mode:
            return mode.from_tensor(_get_state(), static_shapes=True), op(*args, **kwargs)


class RunWithRngState(HigherOrderOperator):
    """`run_with_rng_state(state, op, *args)`."""

    def __init__(self) -> None:
        super().__init__("run_with_rng_state", cacheable=True)

    def plain(self, rng_state, op, *args, **kwargs):
        before = _get_state()
        set_rng_state(rng_state)
        try:
            return op(*args, **kwargs)
        finally:
            set_rng_state(before)

    def fake_rule(self, mode, rng_state, op, *args, **kwargs):
        with mode:
            return op(*args, **kwargs)


run_and_save_rng_state = RunAndSaveRngState()
run_with_rng_state = RunWithRngState()
for _op in (run_and_save_rng_state, run_with_rng_state):
    _op.py_autograd_impl(autograd_not_implemented(_op, deferred_error=True))


# ---- graphs
def draws_nothing(node: Node) -> bool:
    """Whether a call with a state, of either kind, runs an operator that draws nothing with its arguments."""
    op, *args = node.args[1:] if node.target is run_with_rng_state else node.args
    place = op.schema.index.get("dropout_p") if hasattr(op, "schema") else None
    if place is None or "nondeterministic_seeded" in op.tags:
        return False
    return (args[place] if place < len(args) else node.kwargs.get("dropout_p", 0.0)) == 0.0


def without_states(module: GraphModule) -> GraphModule:
    """A graph in which calls that draw nothing are plain ones."""
    if not any(
        n.target in (run_with_rng_state, run_and_save_rng_state) and draws_nothing(n) for n in module.graph.nodes
    ):
        return module
    graph = Graph()
    end = graph.output(graph.graph_copy(module.graph, {}))
    end.meta = dict(module.graph.output_node().meta)
    for node in list(graph.nodes):
        if node.target is run_with_rng_state and draws_nothing(node):
            result = _called(graph, node, node.args[1], node.args[2:], node.meta.get("val"))
            node.replace_all_uses_with(result)
            graph.erase_node(node)
        elif node.target is run_and_save_rng_state and draws_nothing(node):
            _taken_apart(graph, node)
    return GraphModule(module, graph)


def _called(graph: Graph, node: Node, target, args: tuple, value) -> Node:
    with graph.inserting_before(node):
        result = graph.call_function(target, args, dict(node.kwargs) if args else {})
    result.meta = {**node.meta, "val": value}
    return result


def _taken_apart(graph: Graph, node: Node) -> None:
    """(state, result) as two calls: the state is still what it is."""
    state, value = node.meta.get("val") or (None, None)
    parts = [_called(graph, node, _get_state, (), state), _called(graph, node, node.args[0], node.args[1:], value)]
    for user in list(node.users):
        if user.target is operator.getitem:
            user.replace_all_uses_with(parts[user.args[1]])
            graph.erase_node(user)
    if not node.users:
        graph.erase_node(node)
