"""Random graphs under random changes: they stay well formed, and generated code does what interpreting does."""

import copy
import operator
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.graph import Graph, GraphModule, Interpreter
from pullback.graph.passes.cse import fx_graph_cse
from pullback.graph.passes.split_module import split_module

FUNCTIONS = (operator.add, operator.mul, operator.sub)
numbers = st.integers(0, 10**6)
calls = st.lists(st.tuples(st.sampled_from(FUNCTIONS), numbers, numbers), min_size=1, max_size=12)
edits = st.lists(
    st.tuples(st.sampled_from(("insert", "replace", "move", "retarget", "rewire", "dead")), numbers, numbers)
)
settings.register_profile("graph", max_examples=60, deadline=None)


def build(calls) -> Graph:
    g = Graph()
    result = [g.placeholder("x"), g.placeholder("y")]
    for function, a, b in calls:
        result.append(g.call_function(function, (result[a % len(result)], result[b % len(result)])))
    g.output((result[-1], [result[len(result) // 2], {"k": result[0]}]))
    return g


def computed(g: Graph) -> list:
    return [n for n in g.nodes if n.op == "call_function"]


def insert(g, a, b):
    node = computed(g)[a % len(computed(g))]
    with g.inserting_after(node):
        result = g.call_function(operator.neg, (node,))
    node.replace_all_uses_with(result, delete_user_cb=lambda user: user is not result)


def replace(g, a, b):
    nodes = [n for n in g.nodes if n.op != "output"]
    first, second = sorted((nodes[a % len(nodes)], nodes[b % len(nodes)]))
    if first is not second:
        second.replace_all_uses_with(first)


def move(g, a, b):
    """A node may go anywhere between its inputs and its users."""
    node = computed(g)[a % len(computed(g))]
    latest = max(node.all_input_nodes, default=None)
    if latest is not None:
        latest.append(node)


def retarget(g, a, b):
    node = computed(g)[a % len(computed(g))]
    if len(node.args) == 2:
        node.target = FUNCTIONS[b % 3]


def rewire(g, a, b):
    node = computed(g)[a % len(computed(g))]
    earlier = [n for n in g.nodes if n < node]
    node.update_arg(0, earlier[b % len(earlier)])


def dead(g, a, b):
    if len(computed(g)) > 1:
        g.eliminate_dead_code()


EDITS = {f.__name__: f for f in (insert, replace, move, retarget, rewire, dead)}


def edited(calls, edits) -> Graph:
    g = build(calls)
    for name, a, b in edits:
        if computed(g):
            EDITS[name](g, a, b)
    return g


def check(g: Graph) -> None:
    g.lint()
    for node in g.nodes:
        assert all(node in used.users for used in node.all_input_nodes)
        assert all(node in user.all_input_nodes for user in node.users)
    nodes = list(g.nodes)
    assert nodes == list(reversed(list(reversed(g.nodes)))) and len(nodes) == len(g.nodes)
    assert all(a < b for a, b in zip(nodes, nodes[1:]))
    for target in (*FUNCTIONS, operator.neg):
        assert g.find_nodes(op="call_function", target=target) == [n for n in nodes if n.target is target]


@settings(max_examples=60, deadline=None)
@given(calls, edits)
def test_edited_graphs_are_well_formed_and_run(calls, edits):
    g = edited(calls, edits)
    check(g)
    gm = GraphModule({}, g)
    assert gm(3, 5) == Interpreter(gm).run(3, 5)


@settings(max_examples=40, deadline=None)
@given(calls, edits)
def test_copies_and_passes_keep_the_meaning(calls, edits):
    gm = GraphModule({}, edited(calls, edits))
    expected = gm(3, 5)
    assert copy.deepcopy(gm)(3, 5) == expected and pickle.loads(pickle.dumps(gm))(3, 5) == expected
    merged = fx_graph_cse(gm.graph)
    check(merged)
    assert GraphModule({}, merged)(3, 5) == expected and len(merged.nodes) <= len(gm.graph.nodes)
    gm.graph.eliminate_dead_code()
    assert GraphModule({}, gm.graph)(3, 5) == expected


@settings(max_examples=40, deadline=None)
@given(calls, st.integers(1, 4), st.booleans())
def test_split_modules_keep_the_meaning(calls, size, order):
    gm = GraphModule({}, build(calls))
    place = {node: i // size for i, node in enumerate(computed(gm.graph))}
    parts = split_module(gm, None, place.__getitem__, keep_original_order=order)
    parts.graph.lint()
    assert parts(3, 5) == gm(3, 5) and len(list(parts.children())) == len(set(place.values()))
