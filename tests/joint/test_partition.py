"""Forward and backward together are the joint graph, bit for bit; and what is saved is what should be."""

from __future__ import annotations

import operator
import time
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
import pullback.nn.functional as F
from pullback.capture.higher_order.rng import run_and_save_rng_state, run_with_rng_state
from pullback.capture.trace.make_fx import make_fx
from pullback.graph import Graph, GraphModule, Interpreter
from pullback.joint.aot import compilers, trace_joint
from pullback.joint.config import config
from pullback.joint.costs import Kind, bytes_of, get_default_op_list, kind_of
from pullback.joint.halves import is_primal, is_tangent
from pullback.joint.partition import default_partition, min_cut_rematerialization_partition
from pullback.joint.picture import AGAIN, BACKWARD, FORWARD, SAVED, draw_graph, draw_partition, joined
from pullback.ops.system.packet import ops
from pullback.utils.checkpoint import CheckpointPolicy

aten = ops.aten
BOTH = pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
SAVE, RECOMPUTE = CheckpointPolicy.MUST_SAVE, CheckpointPolicy.MUST_RECOMPUTE


# ---- joint graphs
def joint_of(f, *inputs):
    """The joint graph of `f`, a function of tensors that gives a tuple of tensors, and example arguments for it."""
    leaves = [i.detach().requires_grad_(i.is_floating_point()) for i in inputs]
    joint = trace_joint(f, leaves, compilers(None))
    torch.manual_seed(0)
    tangents = [torch.empty_strided(t.shape, t.stride()).copy_(torch.randn(t.shape)) for t in joint.tangents]
    return joint.module, [*inputs, *tangents], joint.results


def unfunctional_joint(f, *inputs):
    """As `joint_of`, with writes as writes."""

    def both(primals, tangents):
        out = f(*primals)
        return [out, *torch.autograd.grad(out, primals, tangents, allow_unused=True)]

    leaves = [i.detach().requires_grad_() for i in inputs]
    return make_fx(both, tracing_mode="fake")(leaves, [torch.randn(N, N)])


def placeholders(module):
    return [n.name for n in module.graph.nodes if n.op == "placeholder"]


def results(module):
    return list(module.graph.output_node().args[0])


def saved_by(fw, count):
    return [n.name for n in results(fw)[count:]]


def called(module):
    return [n.target for n in module.graph.nodes if n.op == "call_function"]


def run(module, args):
    return list(Interpreter(module).run(*args))


def check(module, args, count, partition):
    """Cut a joint graph, check the form of both halves, and compare their results with the joint graph's."""
    fw, bw = partition(module, None, num_fwd_outputs=count)
    fw.graph.lint()
    bw.graph.lint()
    names = placeholders(module)
    primals = [n for n in names if n.startswith("primals")]
    tangents = [n for n in names if n.startswith("tangents")]
    saved = saved_by(fw, count)
    assert placeholders(fw) == primals
    assert placeholders(bw) == [*saved, *tangents]
    assert len(set(saved)) == len(saved)
    torch.manual_seed(7)
    expected = run(module, args)
    torch.manual_seed(7)
    got = run(fw, args[: len(primals)])
    got = got[:count] + run(bw, [*got[count:], *args[len(primals) :]])
    assert len(got) == len(expected)
    for i, (a, b) in enumerate(zip(expected, got, strict=True)):
        assert (a is None) == (b is None)
        if a is not None:
            assert np.array_equal(a.numpy(), b.numpy(), equal_nan=True), f"result {i} differs"
    return fw, bw


# ---- random programs
N = 3
UNARY = [
    torch.sin, torch.exp, torch.relu, torch.sigmoid, lambda a: a.t(), lambda a: a.reshape(-1).view(N, N).clone(),
    lambda a: a.sum(0, keepdim=True).expand(N, N), lambda a: a.sort(0)[0], lambda a: F.softmax(a, 0),
    lambda a: F.layer_norm(a, (N,)), lambda a: a.cumsum(1), lambda a: torch.cat([a[1:], a[:1]]),
    lambda a: F.dropout(a, 0.5), lambda a: a * torch.rand_like(a), lambda a: a.max(1, keepdim=True)[0] + a,
    lambda a: a.split(1)[1] + a, lambda a: a.detach() * 2, lambda a: a.mean() * a,
]  # fmt: skip
BINARY = [
    torch.add,
    torch.mul,
    torch.sub,
    torch.mm,
    lambda a, b: torch.where(a > b, a, b),
    lambda a, b: a.clone().copy_(b),
]


def noisy(a):
    """A value whose gradient is multiplied with random numbers: backward draws them."""
    result = a * 1.5
    if result.requires_grad:
        result.register_hook(lambda g: g * torch.rand_like(g))
    return result


@st.composite
def programs(draw):
    """Steps (function, operand places) of a straight program on two inputs, and which values it returns."""
    steps = []
    for i in range(draw(st.integers(1, 14))):
        place = st.integers(0, i + 1)
        if draw(st.booleans()):
            steps.append((draw(st.sampled_from([*UNARY, noisy])), (draw(place),)))
        else:
            steps.append((draw(st.sampled_from(BINARY)), (draw(place), draw(place))))
    outs = draw(st.lists(st.integers(2, len(steps) + 1), min_size=1, max_size=3, unique=True))
    return steps, outs


def as_function(program):
    steps, outs = program

    def f(*inputs):
        values = list(inputs)
        for function, places in steps:
            values.append(function(*[values[p] for p in places]))
        live = inputs[0].sum() * 0 if any(i.requires_grad for i in inputs) else 0
        return tuple([values[o] + live for o in outs])

    return f


def inputs():
    torch.manual_seed(3)
    return torch.randn(N, N), torch.randn(N, N)


@BOTH
@settings(max_examples=60)
@given(program=programs())
def test_halves_compute_what_the_joint_computes(partition, program):
    check(*joint_of(as_function(program), *inputs()), partition)


@BOTH
@settings(max_examples=60)
@given(
    program=programs(),
    choices=st.lists(st.sampled_from([None, SAVE, RECOMPUTE]), min_size=8, max_size=8),
    regions=st.integers(1, 5),
)
def test_halves_compute_what_the_joint_computes_whatever_is_tagged(partition, program, choices, regions):
    module, args, count = joint_of(as_function(program), *inputs())
    for i, node in enumerate(module.graph.nodes):
        choice = choices[i % len(choices)]
        if node.op == "call_function" and choice is not None:
            node.meta["recompute"], node.meta["ac_graph_id"] = choice, i // regions
    check(module, args, count, partition)


@settings(max_examples=25)
@given(program=programs())
def test_partition_is_deterministic_and_leaves_the_joint_alone(program):
    module, _, count = joint_of(as_function(program), *inputs())
    before = str(module.graph)
    one = [str(m.graph) for m in min_cut_rematerialization_partition(module, None, num_fwd_outputs=count)]
    two = [str(m.graph) for m in min_cut_rematerialization_partition(module, None, num_fwd_outputs=count)]
    assert one == two
    assert str(module.graph) == before


@settings(max_examples=30)
@given(program=programs())
def test_aggressive_recomputation_is_right_too(program):
    with config.patch(aggressive_recomputation=True, ban_recompute_reductions=False):
        check(*joint_of(as_function(program), *inputs()), min_cut_rematerialization_partition)


# ---- what is saved
def test_default_saves_what_backward_uses():
    fw, bw = check(*joint_of(lambda a, b: ((a @ b).sin().exp(),), *inputs()), default_partition)
    assert saved_by(fw, 1) == ["primals_1", "primals_2", "mm", "exp"]
    assert aten.cos.default in called(bw) and aten.sin.default not in called(bw)


def test_min_cut_computes_pointwise_chains_again():
    f = lambda a, b: ((a @ b).sin().exp().sigmoid().cos().sum(),)
    default, _ = check(*joint_of(f, *inputs()), default_partition)
    fw, bw = check(*joint_of(f, *inputs()), min_cut_rematerialization_partition)
    assert saved_by(fw, 1) == ["primals_1", "primals_2", "mm"]
    assert len(saved_by(default, 1)) > 3
    assert aten.sin.default in called(bw)


def test_contractions_and_random_operators_run_once():
    def f(a, b):
        h = F.dropout((a @ b).sin(), 0.5).sort(1)[0].cumsum(0)
        return ((h.exp() @ b).cos(),)

    module, args, count = joint_of(f, *inputs())
    fw, bw = check(module, args, count, min_cut_rematerialization_partition)
    twice = (aten.mm.default, aten.native_dropout.default, aten.bernoulli.p, aten.sort.default, aten.cumsum.default)
    for target in twice:
        assert (called(fw) + called(bw)).count(target) == called(module).count(target)


def test_small_reductions_are_saved_not_computed_again():
    f = lambda a: ((a.sin().sum(1, keepdim=True).exp() * a).sum(),)
    fw, bw = check(*joint_of(f, torch.randn(4, 64)), min_cut_rematerialization_partition)
    computed = [n.name for n in bw.graph.nodes if n.op == "call_function"]
    assert "sum_1" not in computed and "sin" not in computed


def test_views_of_an_input_save_the_input():
    fw, bw = check(*joint_of(lambda a, b: (a.t() @ b.t(),), *inputs()), min_cut_rematerialization_partition)
    assert saved_by(fw, 1) == ["primals_1", "primals_2"]


def test_forward_results_are_saved_as_they_are():
    module, args, count = joint_of(lambda a: (a.exp(),), inputs()[0])
    for partition in (default_partition, min_cut_rematerialization_partition):
        fw, _ = check(module, args, count, partition)
        assert results(fw)[0] is results(fw)[1]
        out, saved = fw(args[0])
        assert out is saved


def test_inputs_that_live_on_anyway_are_saved_for_nothing():
    f = lambda a, w: ((a * w.detach().sum(0)).sum(),)
    module, _, count = joint_of(f, torch.randn(3), torch.randn(16, 3))
    with config.patch(ban_recompute_reductions=False):
        fw, _ = min_cut_rematerialization_partition(module, None, num_fwd_outputs=count)
        assert "primals_2" not in saved_by(fw, count)
        options = {"num_fwd_outputs": count, "static_lifetime_input_indices": [1]}
        fw, bw = min_cut_rematerialization_partition(module, None, **options)
        assert "primals_2" in saved_by(fw, count) and aten.sum.dim_IntList in called(bw)


def test_a_long_chain_of_cheap_nodes_is_not_computed_again_as_a_whole():
    def f(a):
        for _ in range(400):
            a = a.sin()
        return (a,)

    module, args, count = joint_of(f, torch.randn(2))
    with config.patch(ban_recompute_long_fusible_chains=False):
        fw, bw = check(module, args, count, min_cut_rematerialization_partition)
        assert saved_by(fw, 1) == ["primals_1"]
    fw, bw = check(module, args, count, min_cut_rematerialization_partition)
    assert 3 <= len(saved_by(fw, 1)) <= 6


def test_meta_and_names_stay():
    module, args, count = joint_of(lambda a, b: ((a @ b).sin().exp(),), *inputs())
    known = {n.name: n for n in module.graph.nodes}
    for half in check(module, args, count, min_cut_rematerialization_partition):
        for node in half.graph.nodes:
            if node.op != "output":
                assert node.meta["val"] is known[node.name].meta["val"]


def test_recomputed_nodes_come_just_before_their_use():
    f = lambda a, b: ((((a @ b).sin().cos() @ b).sin().cos() @ b).sum(),)
    _, bw = check(*joint_of(f, *inputs()), min_cut_rematerialization_partition)
    order = [n.name for n in bw.graph.nodes if n.op == "call_function"]
    assert order.index("sin") > order.index("sin_1") > 0  # the joint graph has them the other way round, and first


# ---- tags
@BOTH
def test_must_recompute_and_must_save(partition):
    module, args, count = joint_of(lambda a, b: ((a @ b).sin().exp().sum(),), *inputs())
    nodes = {n.name: n for n in module.graph.nodes}
    for name in ("mm", "sin", "exp"):
        nodes[name].meta["recompute"] = RECOMPUTE
    fw, bw = check(module, args, count, partition)
    assert saved_by(fw, 1) == ["primals_1", "primals_2"]
    assert aten.mm.default in called(bw)[:4]
    nodes["exp"].meta["recompute"] = SAVE
    fw, bw = check(module, args, count, partition)
    assert "exp" in saved_by(fw, 1) and aten.exp.default not in called(bw)


@BOTH
def test_what_enters_the_next_checkpointed_region_is_saved(partition):
    module, args, count = joint_of(lambda a, b: ((a @ b).sin().exp().cos().sum(),), *inputs())
    for name, region in (("mm", 1), ("sin", 1), ("exp", 2), ("cos", 2)):
        node = next(n for n in module.graph.nodes if n.name == name)
        node.meta["recompute"], node.meta["ac_graph_id"] = RECOMPUTE, region
    fw, _ = check(module, args, count, partition)
    assert "sin" in saved_by(fw, 1)


@BOTH
def test_a_random_operator_computed_again_draws_the_same_numbers(partition):
    module, args, count = joint_of(lambda a: ((a.sin() * torch.rand_like(a)).exp(),), inputs()[0])
    for node in module.graph.nodes:
        if node.op == "call_function" and node.name in ("rand_like", "sin", "mul"):
            node.meta["recompute"] = RECOMPUTE
    fw, bw = check(module, args, count, partition)
    assert "rand_like_rng_state" in saved_by(fw, 1) and "rand_like" not in saved_by(fw, 1)
    assert run_and_save_rng_state in called(fw) and run_with_rng_state in called(bw)
    torch.manual_seed(7)
    run(module, args)
    expected = torch.rand(3)
    torch.manual_seed(7)
    saved = run(fw, args[:1])[count:]
    run(bw, [*saved, *args[1:]])
    assert torch.equal(torch.rand(3), expected)


def test_a_random_operator_with_its_own_generator_is_not_computed_again():
    generator = torch.Generator()
    generator.manual_seed(1)
    module, _, count = joint_of(lambda a: (a * torch.rand(N, N, generator=generator),), inputs()[0])
    node = next(n for n in module.graph.nodes if n.name.startswith("rand"))
    node.meta["recompute"] = RECOMPUTE
    with pytest.raises(NotImplementedError, match="its own generator"):
        default_partition(module, None, num_fwd_outputs=count)


# ---- results that are not ordinary
@BOTH
def test_gradients_that_need_no_tangent_and_inputs_without_gradient(partition):
    graph = Graph()
    a, b, t = (graph.placeholder(name) for name in ("primals_1", "primals_2", "tangents_1"))
    double = graph.call_function(aten.mul.Tensor, (a, 2))
    graph.output((double, a, None, double))
    module = GraphModule({}, graph)
    example = torch.randn(2)
    for node in (a, b, t, double):
        node.meta["val"] = example
    fw, bw = check(module, [example, example, example], 1, partition)
    assert placeholders(bw) == [*saved_by(fw, 1), "tangents_1"]
    assert results(bw)[1] is None


@BOTH
def test_backward_that_uses_only_one_of_several_results(partition):
    module, args, count = joint_of(lambda a: (a.sort(1)[0] * 2,), inputs()[0])
    fw, _ = check(module, args, count, partition)
    assert [n.target for n in results(fw)[1:]] == [operator.getitem]


@BOTH
def test_constants_are_on_both_sides_and_not_saved(partition):
    constant = torch.randn(N, N)
    fw, bw = check(*joint_of(lambda a: ((a * constant).sin() * constant,), inputs()[0]), partition)
    assert [n.op for n in fw.graph.nodes].count("get_attr") == 1
    assert [n.op for n in bw.graph.nodes].count("get_attr") == 1
    assert not any(name.startswith("_tensor_constant") for name in saved_by(fw, 1))


class Symbolic:
    """A number as a trace with symbolic sizes has it in meta."""

    is_symbolic = True
    node = SimpleNamespace(hint=4)


@BOTH
def test_sizes_are_saved_as_numbers_after_tensors(partition):
    graph = Graph()
    a, t = graph.placeholder("primals_1"), graph.placeholder("tangents_1")
    total = graph.call_function(aten.sum.default, (a,))
    out = graph.call_function(aten.exp.default, (total,))
    size = graph.call_function(aten.sym_size.int, (a, 0))
    twice = graph.call_function(operator.mul, (size, 2))
    slope = graph.call_function(aten.mul.Tensor, (t, out))
    grown = graph.call_function(aten.expand.default, (slope, [twice]))
    first = graph.call_function(aten.slice.Tensor, (grown, 0, 0, size))
    graph.output((out, first))
    for node in (total, out, t, slope):
        node.meta["val"] = torch.randn(())
    for node in (a, grown, first):
        node.meta["val"] = torch.randn(4)
    size.meta["val"], twice.meta["val"] = Symbolic(), Symbolic()
    fw, _ = check(GraphModule({}, graph), [torch.randn(5), torch.randn(())], 1, partition)
    first, *numbers = [node.target for node in results(fw)[1:]]
    assert first is aten.exp.default and numbers and set(numbers) <= {aten.sym_size.int, operator.mul}


@BOTH
def test_errors(partition):
    module, _, count = joint_of(lambda a: (a.sin(),), inputs()[0])
    with pytest.raises(RuntimeError, match="computed from a gradient"):
        partition(module, None, num_fwd_outputs=count + 1)
    with pytest.raises(RuntimeError, match="num_fwd_outputs is 9"):
        partition(module, None, num_fwd_outputs=9)


@BOTH
def test_a_joint_graph_that_writes_is_refused(partition):
    module = unfunctional_joint(lambda a, b: a.clone().copy_(b).sin(), *inputs())
    with pytest.raises(RuntimeError, match="copy_.*functionalize"):
        partition(module, None, num_fwd_outputs=1)


def test_memory_budget_is_refused():
    module, _, count = joint_of(lambda a: (a.sin(),), inputs()[0])
    with (
        config.patch(activation_memory_budget=0.5),
        pytest.raises(NotImplementedError, match="activation_memory_budget"),
    ):
        min_cut_rematerialization_partition(module, None, num_fwd_outputs=count)


# ---- pictures
def test_picture_of_a_partition(tmp_path):
    module, args, count = joint_of(lambda a, b: (((a @ b).sin().cos() @ b).sum(),), *inputs())
    fw, bw = check(module, args, count, min_cut_rematerialization_partition)
    text = draw_partition(fw, bw, str(tmp_path / "cut.svg"))
    assert (tmp_path / "cut.svg").read_text() == text + "\n"
    boxes = [e for e in ElementTree.fromstring(text).iter() if e.tag.endswith("rect")]
    graph, colors = joined(fw.graph, bw.graph)
    assert len(boxes) == len(graph.nodes)
    by_name = {node.name: color for node, color in colors.items()}
    assert {n for n, c in by_name.items() if c == SAVED} == set(saved_by(fw, count))
    assert [n for n, c in by_name.items() if c == AGAIN] == ["sin_1"]  # beside the first, in forward
    fw_first, bw_only = by_name["sin"], by_name["tangents_1"]
    assert (fw_first, bw_only) == (FORWARD, BACKWARD)


def test_picture_of_a_graph(tmp_path):
    module, _, _ = joint_of(lambda a: (a.sin(),), inputs()[0])
    draw_graph(module, str(tmp_path / "graph"))
    assert "sin" in (tmp_path / "graph.svg").read_text()
    with pytest.raises(NotImplementedError, match="SVG"):
        draw_graph(module, str(tmp_path / "graph.png"))


# ---- costs
def test_kinds_of_operators():
    assert kind_of(aten.sin.default) is kind_of(aten.sum.dim_IntList) is Kind.CHEAP
    assert kind_of(aten.view.default) is kind_of(aten.detach.default) is Kind.VIEW
    assert kind_of(aten.native_dropout.default) is kind_of(aten.rand_like.default) is Kind.RANDOM
    for op in (aten.mm.default, aten.convolution.default, aten.sort.default, aten.cumsum.default, aten.median.default):
        assert kind_of(op) is Kind.HEAVY
    table = get_default_op_list()
    assert aten.add in table.recomputable_ops and aten.mm in table.compute_intensive_ops and aten.t in table.view_ops


def test_bytes():
    graph = Graph()
    node = graph.placeholder("a")
    node.meta["val"] = [torch.randn(2, 3), torch.zeros(4, dtype=torch.int8)]
    assert bytes_of(node) == 28


def test_large_graphs_are_cut_in_no_time():
    """Far above what is measured (see benchmarks/trace.py): fails where something is quadratic."""

    def f(a):
        b = a
        for _ in range(400):
            b = b.sin() + a.cos() * b
        return (b,)

    module, _, count = joint_of(f, torch.randn(2))
    began = time.perf_counter()
    min_cut_rematerialization_partition(module, None, num_fwd_outputs=count)
    assert time.perf_counter() - began < 3


def test_inputs_are_told_apart():
    module, _, _ = joint_of(lambda a, b: ((a * b).sum(),), *inputs())
    nodes = list(module.graph.nodes)
    assert [n.name for n in nodes if is_primal(n)] == ["primals_1", "primals_2"]
    assert [n.name for n in nodes if is_tangent(n)] == ["tangents_1"]
    assert not any(is_primal(n) or is_tangent(n) for n in nodes if n.op != "placeholder")


@BOTH
def test_nodes_know_their_pass(partition):
    joint = trace_joint(lambda x: x.sin().cos().sum(), [torch.randn(4, requires_grad=True)], compilers(None))
    forward, backward = partition(joint.module, [], num_fwd_outputs=1)
    assert all(n.meta["partitioner_tag"] == "is_forward" for n in forward.graph.nodes if n.op == "call_function")
    assert all(n.meta["autograd_backward"] for n in backward.graph.nodes)
    assert not any(n.meta.get("autograd_backward") for n in forward.graph.nodes)
