"""Passes: common subexpressions, dead code, shapes, splitting, groups of nodes."""

import operator
from typing import NamedTuple

import pytest

import pullback as torch
from pullback import nn
from pullback.graph import Graph, GraphModule, symbolic_trace
from pullback.graph.passes.annotate_getitem_nodes import annotate_getitem_nodes
from pullback.graph.passes.cse import CSEPass, fx_graph_cse
from pullback.graph.passes.dead_code import DeadCodePass
from pullback.graph.passes.fake_tensor_prop import FakeTensorProp
from pullback.graph.passes.graph_ends import get_outputs, get_placeholders
from pullback.graph.passes.operator_support import OperatorSupport, OpSupports, any_chain, chain, create_op_support
from pullback.graph.passes.ordering import stable_topological_sort
from pullback.graph.passes.partitioner import CapabilityBasedPartitioner
from pullback.graph.passes.pass_manager import PassManager, PassResult, this_before_that_pass_constraint
from pullback.graph.passes.shape_prop import ShapeProp
from pullback.graph.passes.split_module import split_module, split_module_simple

aten = torch.ops.aten


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.param = nn.Parameter(torch.ones(3, 4))
        self.linear = nn.Linear(4, 5)

    def forward(self, x, y):
        z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
        return z + self.linear(y).clamp(min=0.0, max=1.0)


X, Y = torch.ones(3, 4), torch.zeros(3, 4)


def test_cse_merges_equal_calls_only():
    g = Graph()
    x = g.placeholder("x")
    equal = [g.call_function(aten.add.Tensor, (x, 1)) for _ in range(2)]
    kinds = [g.call_function(aten.add.Tensor, (x, v)) for v in (1.0, True, 0.0, -0.0)]
    random = [g.call_function(aten.bernoulli.default, (x,)) for _ in range(2)]
    empty = [g.call_function(aten.empty_like.default, (x,)) for _ in range(2)]
    sums = [g.call_function(aten.sum.dim_IntList, (e, [0]), {"dtype": torch.float64}) for e in equal]
    g.output((*equal, *kinds, *random, *empty, *sums))
    output = fx_graph_cse(g)
    output.lint()
    assert len(g.nodes) - len(output.nodes) == 2  # one sum of two numbers, and then one reduction
    out = output.output_node().args[0]
    assert out[0] is out[1] and out[-1] is out[-2] and len(set(out)) == len(out) - 2
    result = CSEPass()(GraphModule({}, g))
    assert result.modified and not CSEPass()(result.graph_module).modified
    assert not CSEPass(banned_ops={aten.add, aten.sum})(GraphModule({}, g)).modified


def test_shape_prop():
    gm = symbolic_trace(Net())
    ShapeProp(gm).propagate(X, Y)
    meta = {n.name: n.meta["tensor_meta"] for n in gm.graph.nodes}
    assert meta["linear"].shape == (3, 5) and meta["linear"].stride == (5, 1) and meta["linear"].requires_grad
    assert meta["x"].dtype is torch.float32 and meta["x"].memory_format is torch.contiguous_format
    assert 'linear: "f32[3, 5]" = self.linear(add)' in gm.print_readable(print_output=False)
    with pytest.raises(RuntimeError, match="ShapeProp error for: node=%add"):
        ShapeProp(gm).propagate(torch.ones(2), Y)


def test_split_module():
    gm = symbolic_trace(Net())
    turn = iter(range(100))
    names: dict = {}
    parts = split_module(gm, None, lambda n: next(turn) % 3, names)
    assert torch.equal(parts(X, Y), gm(X, Y)) and names["submod_1.linear"] == "linear"
    code = [line.strip() for line in parts.code.splitlines() if "submod" in line]
    assert code[0] == "submod_0 = self.submod_0(x, param, y);  x = param = y = None"
    assert parts.meta["partition_names"] == {"submod_0", "submod_1", "submod_2"}
    tuples = split_module(gm, None, lambda n: 0, tuple_return=True, partition_affix="a")
    assert "getitem = submod_a_0[0]" in tuples.code and torch.equal(tuples(X, Y), gm(X, Y))
    turn = iter(range(100))
    with pytest.raises(RuntimeError, match="cycle exists between partitions!"):
        split_module(gm, None, lambda n: next(turn) % 2)


class AddAndNeg(OperatorSupport):
    def is_node_supported(self, submodules, node):
        return node.target in (operator.add, torch.neg)


def crossing(a, b, c):
    d = a + b
    e = torch.neg(d)
    h = e * c + a
    return torch.neg(h) + e


def test_partitions_never_make_a_cycle():
    gm = symbolic_trace(crossing)
    expected = gm(X, X, X)
    partitioner = CapabilityBasedPartitioner(gm, AddAndNeg())
    groups = partitioner.propose_partitions()
    assert sorted(sorted(n.name for n in g.nodes) for g in groups) == [["add", "neg"], ["add_1", "add_2", "neg_1"]]
    fused = partitioner.fuse_partitions(groups)
    fused.recompile()
    assert torch.equal(fused(X, X, X), expected) and [n for n, _ in fused.named_children()] == ["fused_0", "fused_1"]


def test_single_nodes_are_groups_only_where_allowed():
    gm = symbolic_trace(single)
    assert CapabilityBasedPartitioner(gm, AddAndNeg()).propose_partitions() == []
    assert len(CapabilityBasedPartitioner(gm, AddAndNeg(), True).propose_partitions()) == 1


def single(a):
    return (a + 1) * 2


def test_operator_support():
    gm = symbolic_trace(Net())
    ShapeProp(gm).propagate(X, Y)
    modules = dict(gm.named_modules())
    table = OperatorSupport({"_operator.add": None, "clamp": (((torch.float64,),), {})})
    add, clamp = (
        gm.graph.find_nodes(op=op, **t)[0]
        for op, t in (("call_function", {"target": operator.add}), ("call_method", {}))
    )
    assert table.is_node_supported(modules, add) and not table.is_node_supported(modules, clamp)
    never = create_op_support(lambda modules, node: False)
    assert not chain(table, never).is_node_supported(modules, add) and any_chain(table, never).is_node_supported(
        modules, add
    )
    assert not OpSupports.decline_if_input_dtype(torch.float32).is_node_supported(modules, add)
    assert not OpSupports.decline_if_node_in_names({"add"}).is_node_supported(modules, add)


def test_pass_manager():
    def rename(gm):
        for node in gm.graph.find_nodes(op="call_function", target=operator.mul):
            node.target = operator.sub
            return PassResult(gm, True)
        return PassResult(gm, False)

    gm = symbolic_trace(single)
    dead = DeadCodePass()
    manager = PassManager([rename, dead], [this_before_that_pass_constraint(rename, dead)], steps=5)
    result = manager(gm)
    assert result.modified and result.graph_module(3) == 2 and not manager(gm).modified
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        PassManager([dead, rename], [this_before_that_pass_constraint(rename, dead)])(gm)
    with pytest.raises(Exception, match="An error occurred when running the 'bad' pass"):
        PassManager([bad])(gm)


def bad(gm):
    raise ValueError


def test_sorting_moves_only_what_must_move():
    gm = symbolic_trace(crossing)
    names = [n.name for n in gm.graph.nodes]
    stable_topological_sort(gm)
    assert [n.name for n in gm.graph.nodes] == names
    nodes = list(gm.graph.nodes)
    nodes[3].prepend(nodes[5])
    stable_topological_sort(gm)
    gm.graph.lint()


def test_fake_values():
    gm = symbolic_trace(Net())
    FakeTensorProp(gm).propagate(X, Y)
    values = {n.name: n.meta["val"] for n in gm.graph.nodes}
    assert values["linear"].shape == (3, 5) and values["add_1"].dtype is torch.float32
    assert 'clamp: "f32[3, 5]"' in gm.print_readable(print_output=False)


def test_a_second_run_on_fakes_keeps_the_symbols_of_the_first():
    from pullback.capture.fake.mode import FakeTensorMode
    from pullback.capture.shapes import ShapeEnv
    from pullback.capture.shapes.questions import statically_known_true
    from pullback.capture.trace.make_fx import make_fx

    mode = FakeTensorMode(shape_env=ShapeEnv())
    with mode:
        x = torch.randn(5)
        graph = make_fx(lambda x: x.nonzero())(x)
    (node,) = [n for n in graph.graph.nodes if n.target is torch.ops.aten.nonzero.default]
    before = node.meta["val"].shape[0]
    FakeTensorProp(graph, mode).propagate(x)
    after = node.meta["val"].shape[0]
    assert after is not before and statically_known_true(before == after)


def test_items_have_the_types_that_their_sequences_say():
    class Pair(NamedTuple):
        x: int
        y: float

    graph = Graph()
    kinds = (tuple[int, str], list[float], Pair, tuple[bytes, ...], None, dict[str, int])
    items = []
    for i, kind in enumerate(kinds):
        given = graph.placeholder(f"x{i}", type_expr=kind)
        items.append(graph.call_function(operator.getitem, (given, -1)))
    annotate_getitem_nodes(graph)
    assert [item.type for item in items] == [str, float, float, bytes, None, None]


def test_a_module_is_split_by_a_table():
    made = symbolic_trace(lambda x: torch.tanh(torch.sigmoid(torch.relu(x))))
    calls = [n for n in made.graph.nodes if n.op == "call_function"]
    split = split_module_simple(made, dict(zip(calls, (0, 1, 1), strict=True)), partition_affix="part")
    assert [name for name, _ in split.named_children()] == ["submod_part_0", "submod_part_1"]
    x = torch.tensor([-1.0, 2.0])
    assert torch.equal(split(x), made(x))


def test_items_of_items_are_in_the_group_of_the_call():
    def made_of(x):
        return x, (x, x)

    graph = Graph()
    x = graph.placeholder("x")
    call = graph.call_function(made_of, (x,))
    first, inner = (graph.call_function(operator.getitem, (call, i)) for i in (0, 1))
    deep = graph.call_function(operator.getitem, (inner, 0))
    blocked = graph.call_method("relu", (first,))
    graph.output(graph.call_function(operator.add, (deep, blocked)))

    class Support(OperatorSupport):
        def is_node_supported(self, submodules, node):
            return node.op == "call_function"

    found = CapabilityBasedPartitioner(GraphModule({}, graph), Support(), allows_single_node_partition=True)
    (home,) = [p for p in found.propose_partitions() if call in p.nodes]
    assert {first, inner, deep} <= set(home.nodes)


def test_the_ends_of_a_graph():
    made = symbolic_trace(lambda x, y: (x + y, {"a": x}))
    assert [n.name for n in get_placeholders(made.graph)] == ["x", "y"]
    assert [n.name for n in get_outputs(made.graph)] == ["add", "x"]
