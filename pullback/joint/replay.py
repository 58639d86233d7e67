"""Random operators that are computed again, in backward or to be differentiated: they must draw the same numbers.

In: random nodes of a joint graph. Out: for each, a stand-in node for the state of the generator, which forward saves;
and the calls that take the node's place, `run_and_save_rng_state` in forward and `run_with_rng_state` in backward. What
always holds: after forward and backward, the generator is where the joint graph leaves it. Where a whole joint graph is run again,
for gradients that are differentiated, `drawn_again` lets it begin with the states that forward began with.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..capture.fake.mode import fake_mode_of
from ..core import random
from ..core.random import Generator
from ..core.tree import tree_leaves
from ..graph import Graph, GraphModule, Node, map_arg
from ..ops.make.random import get_rng_state
from .costs import is_random

Rewrite = Callable[[Graph, Node, dict[Node, Node]], Node]  # makes a node of another graph in this one


def random_nodes(module: GraphModule) -> list[Node]:
    """The calls of a graph, and of the graphs within it, that draw random numbers."""
    graphs = [m.graph for m in module.modules() if isinstance(m, GraphModule)]
    return [n for graph in graphs for n in graph.nodes if is_random(n._target)]


@contextmanager
def drawn_again(states: dict | None) -> Iterator[None]:
    """A block that draws what was drawn from these states of the generators on, and leaves them as they are now."""
    if states is None:
        yield
        return
    now = random.states()
    random.set_states(states)
    try:
        yield
    finally:
        random.set_states(now)


class Replay:
    """How random nodes are computed again: `states` to save, and what each half makes of a node."""

    def __init__(self, nodes: list[Node]):
        self.states: list[Node] = []
        self.forward: dict[Node, Rewrite] = {}
        self.backward: dict[Node, Rewrite] = {}
        stand_ins = Graph()
        for node in nodes:
            _check(node)
            state = stand_ins.placeholder(f"{node._name}_rng_state")
            state.meta["val"] = state_value(node)
            self.states.append(state)
            self.forward[node], self.backward[node] = saving(state), restoring(state)


def _check(node: Node) -> None:
    if any(isinstance(v, Generator) for v in tree_leaves((node._args, dict(node._kwargs)))):
        raise NotImplementedError(
            f"a random call with its own generator cannot be computed again: {node.format_node()}"
        )


def state_value(node: Node) -> Any:
    """What meta says of a state of the generator: a tensor like it, fake where the node's value is fake."""
    state = get_rng_state()
    mode = fake_mode_of(tree_leaves(node.meta.get("val")))
    return state if mode is None else mode.from_tensor(state, static_shapes=True)


def saving(state: Node) -> Rewrite:
    """In forward: a call that gives the state before it, and its result."""

    def make(graph: Graph, node: Node, result: dict[Node, Node]) -> Node:
        from ..capture.higher_order.rng import run_and_save_rng_state

        args, kwargs = map_arg(node._args, result.__getitem__), map_arg(node._kwargs, result.__getitem__)
        both = graph.call_function(run_and_save_rng_state, (node._target, *args), dict(kwargs))
        both.meta = {**node.meta, "val": (state.meta["val"], node.meta.get("val"))}
        result[state] = graph.call_function(operator.getitem, (both, 0), name=state._name)
        result[state].meta = dict(state.meta)
        return graph.call_function(operator.getitem, (both, 1), name=node._name)

    return make


def restoring(state: Node) -> Rewrite:
    """In backward: a call that draws from the state that forward began with."""

    def make(graph: Graph, node: Node, result: dict[Node, Node]) -> Node:
        from ..capture.higher_order.rng import run_with_rng_state

        args, kwargs = map_arg(node._args, result.__getitem__), map_arg(node._kwargs, result.__getitem__)
        return graph.call_function(
            run_with_rng_state, (result[state], node._target, *args), dict(kwargs), name=node._name
        )

    return make
