"""The order of a backward, found without running it, is the order in which the engine runs it."""

from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback.autograd.engine import needed_for
from pullback.backward.schedule import schedule
from pullback.core.node import edge_of


def nodes_of(roots):
    seen, stack = set(), [r.grad_fn for r in roots]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [n for n, _ in node.next_functions if n is not None]
    return seen


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=10), st.booleans())
def test_the_engine_runs_nodes_in_this_order(steps, some):
    values = [torch.ones(2, requires_grad=True) for _ in range(2)]
    for i, j in steps:
        values.append(values[i % len(values)] * values[j % len(values)])
    roots = [values[-1], values[len(values) // 2 + 1]]
    ran = []
    for node in nodes_of(roots):
        node.register_prehook(lambda gs, node=node: ran.append(node))
    edges = [edge_of(r) for r in roots]
    inputs = [values[0]] if some else None
    needed = needed_for(edges, [edge_of(t) for t in inputs]) if some else None
    if some:
        needed.update({edge_of(t)[0]: True for t in inputs if edge_of(t)[0] in needed})
    order = schedule(edges, needed)
    torch.autograd.backward(roots, [torch.ones(2)] * 2, inputs=inputs)
    assert ran == [n for n in order if needed is None or needed.get(n)]


def test_a_node_that_is_only_wanted_is_in_the_order_but_what_is_behind_it_is_not():
    x = torch.ones(2, requires_grad=True)
    y = x.sin()
    z = y.cos()
    edges = [edge_of(z)]
    assert schedule(edges, needed_for(edges, [edge_of(y)])) == [z.grad_fn, y.grad_fn]
