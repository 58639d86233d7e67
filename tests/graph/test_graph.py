"""Graphs: making, changing, checking, printing."""

import copy
import operator
import pickle

import pytest

import pullback as torch
from pullback.graph import Graph, GraphModule


@pytest.fixture
def graph():
    g = Graph()
    x, y = g.placeholder("x"), g.placeholder("input")
    a = g.call_function(operator.add, (x, 1))
    b = g.call_function(torch.ops.aten.mul.Tensor, (a, y))
    c = g.call_function(torch.cat, ([a, b], 0))
    d = g.call_method("relu", (c,))
    g.output((d, a))
    return g


TEXT = """\
graph():
    %x : [num_users=1] = placeholder[target=x]
    %input_1 : [num_users=1] = placeholder[target=input]
    %add : [num_users=3] = call_function[target=operator.add](args = (%x, 1), kwargs = {})
    %mul_tensor : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%add, %input_1), kwargs = {})
    %cat : [num_users=1] = call_function[target=torch.cat](args = ([%add, %mul_tensor], 0), kwargs = {})
    %relu : [num_users=1] = call_method[target=relu](args = (%cat,), kwargs = {})
    return (relu, add)"""


def test_printed_form(graph):
    assert str(graph) == TEXT


def test_inserting(graph):
    add = graph.find_nodes(op="call_function", target=operator.add)[0]
    with graph.inserting_before(add):
        graph.call_function(operator.pos, (1,), name="a")
        graph.call_function(operator.pos, (1,), name="b")
    with graph.inserting_after(add):
        graph.call_function(operator.pos, (1,), name="c")
        graph.call_function(operator.pos, (1,), name="d")
    with graph.inserting_before():
        graph.placeholder("first")
    assert [n.name for n in graph.nodes][:8] == ["first", "x", "input_1", "a", "b", "add", "d", "c"]
    with pytest.raises(AssertionError, match="not in graph"):
        Graph().inserting_before(add)


def test_erase(graph):
    relu = graph.find_nodes(op="call_method", target="relu")[0]
    with pytest.raises(RuntimeError, match="Tried to erase Node relu but it still had 1 users in the graph"):
        graph.erase_node(relu)
    with pytest.raises(RuntimeError, match="from wrong graph"):
        Graph().erase_node(Graph().placeholder("x"))
    graph.output_node().args = (1,)
    before = len(graph.nodes)
    graph.erase_node(relu)
    assert len(graph.nodes) == before - 1 and relu not in list(graph.nodes)
    with pytest.warns(UserWarning, match="already erased"):
        graph.erase_node(relu)


def test_erasing_while_walking(graph):
    graph.output_node().args = (1,)
    for node in reversed(graph.nodes):
        if not node.users and node.op not in ("placeholder", "output"):
            graph.erase_node(node)
    assert [n.op for n in graph.nodes] == ["placeholder", "placeholder", "output"]


def test_dead_code(graph):
    x = graph.find_nodes(op="placeholder")[0]
    with graph.inserting_before(graph.find_nodes(op="call_function", target=operator.add)[0]):
        dead = graph.call_function(operator.neg, (x,))
        graph.call_function(operator.neg, (dead,))
        kept = graph.call_function(operator.setitem, (x, 0, 1))
    assert graph.eliminate_dead_code() and not graph.eliminate_dead_code()
    assert kept in list(graph.nodes) and not graph.find_nodes(op="call_function", target=operator.neg)
    assert graph.eliminate_dead_code(is_impure_node=lambda n: n.op in ("placeholder", "output"))
    assert kept not in list(graph.nodes)


def test_copies_are_independent(graph):
    other = copy.deepcopy(graph)
    assert str(other) == TEXT and all(n.graph is other for n in other.nodes)
    other.find_nodes(op="call_method")[0].target = "sigmoid"
    assert str(graph) == TEXT
    other.lint()
    again = pickle.loads(pickle.dumps(graph))
    assert str(again) == TEXT
    again.lint()


def test_graph_copy_and_node_copy(graph):
    g = Graph()
    a, b = g.placeholder("a"), g.placeholder("b")
    values = dict(zip(graph.find_nodes(op="placeholder"), (a, b)))
    result = g.graph_copy(graph, values)
    g.output(result)
    g.lint()
    x = torch.ones(2, 2)
    assert torch.equal(GraphModule({}, g)(x, x)[0], GraphModule({}, graph)(x, x)[0])


def test_find_nodes_in_order(graph):
    last = graph.find_nodes(op="call_method")[0]
    with graph.inserting_before(last):
        late = graph.call_function(operator.add, (1, 2))
    found = graph.find_nodes(op="call_function", target=operator.add)
    assert found[-1] is late and len(found) == 2
    first = next(iter(graph.nodes))
    first.prepend(late)
    assert graph.find_nodes(op="call_function", target=operator.add)[0] is late
    assert graph.find_nodes(op="placeholder", target="input")[0].name == "input_1"


def test_lint_names_what_is_wrong(graph):
    add, mul = (graph.find_nodes(op="call_function", target=t)[0] for t in (operator.add, torch.ops.aten.mul.Tensor))
    graph.lint()
    add.prepend(mul)
    with pytest.raises(RuntimeError, match="Argument 'add' of Node 'mul_tensor' was used before it has been defined!"):
        graph.lint()
    other = Graph()
    other.call_function(operator.neg, (add,))
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        other.lint()


def test_lint_checks_targets():
    g = Graph()
    g.output(g.get_attr("nope"))
    with pytest.raises(RuntimeError, match="referenced target nope but that target was not provided in ``root``!"):
        GraphModule({}, g)
    gm = GraphModule({"nope": torch.ones(1)}, g)
    del gm.nope
    with pytest.raises(RuntimeError, match="Node nope target nope references nonexistent attribute nope of"):
        g.lint()
    with pytest.warns(UserWarning, match="insert a call_module Node with no underlying reference"):
        g.call_module("gone")


def test_print_tabular(graph, capsys):
    graph.print_tabular()
    head, line, first, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == ["opcode", "name", "target", "args", "kwargs"] and set(line) == {"-", " "}
    assert first.split() == ["placeholder", "x", "x", "()", "{}"]
