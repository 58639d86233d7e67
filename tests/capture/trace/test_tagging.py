"""Checkpointed regions in traces: what backward computes again, and that values stay those of eager mode."""

from __future__ import annotations

import warnings

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from pullback.capture.fake.mode import FakeTensor
from pullback.capture.front.compile import compile
from pullback.capture.trace.tagging import recording_trace
from pullback.core.checkpointing import CheckpointPolicy
from pullback.joint.aot import aot_function
from pullback.joint.partition import default_partition, min_cut_rematerialization_partition
from pullback.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

PARTITIONS = [default_partition, min_cut_rematerialization_partition]
aten = torch.ops.aten


def compiled_with_graphs(f, partition=default_partition):
    graphs = []

    def compiler(graph, inputs):
        graphs.append(graph)
        return graph

    return aot_function(f, compiler, partition_fn=partition), graphs


def targets(graph) -> list:
    return [n.target for n in graph.graph.nodes if n.op == "call_function"]


def arguments(*shapes):
    torch.manual_seed(2)
    return [torch.randn(s, requires_grad=True) for s in shapes]


def run(f, *shapes, seed=5):
    args = arguments(*shapes)
    torch.manual_seed(seed)
    out = f(*args)
    out.sum().backward()
    return [out.detach(), *[a.grad for a in args], torch.rand(3)]


def same(f, form, *shapes):
    for a, b in zip(run(f, *shapes), run(form, *shapes), strict=True):
        assert (a is None) == (b is None) and (a is None or torch.allclose(a, b, atol=1e-6))


def region(x, w):
    return torch.mm(x, w).sin().exp() * 2


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("partition", PARTITIONS)
def test_a_region_is_computed_again_in_backward(partition, reentrant):
    def f(x, w):
        return checkpoint(region, x, w, use_reentrant=reentrant).cos()

    compiled, graphs = compiled_with_graphs(f, partition)
    plain, plain_graphs = compiled_with_graphs(lambda x, w: region(x, w).cos())
    same(lambda x, w: region(x, w).cos(), compiled, (3, 4), (4, 3))
    plain(*arguments((3, 4), (4, 3))).sum().backward()
    again, once = targets(graphs[1]), targets(plain_graphs[1])
    assert once.count(aten.mm.default) == 2 and again.count(aten.mm.default) == 3
    assert aten.sin.default in again and aten.exp.default in again
    saved = graphs[0].graph.output_node().args[0][1:]
    assert {n.op for n in saved if n.target is not aten.mul.Tensor} == {"placeholder"}


@pytest.mark.parametrize("partition", PARTITIONS)
def test_what_the_policy_keeps_is_saved(partition):
    seen = []

    def policy(context, op, *args, **kwargs):
        seen.append((op, context.is_recompute, tuple(context.op_output.shape)))
        return CheckpointPolicy.MUST_SAVE if op is aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE

    def f(x, w):
        return checkpoint(
            region, x, w, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy)
        )

    compiled, graphs = compiled_with_graphs(f, partition)
    same(f, compiled, (3, 4), (4, 3))
    assert (aten.mm.default, False, (3, 3)) in seen
    again = targets(graphs[1])
    assert again.count(aten.mm.default) == 2 and aten.sin.default in again
    assert any(getattr(n, "target", None) is aten.mm.default for n in graphs[0].graph.output_node().args[0])


def test_a_list_of_operators_as_policy():
    def f(x, w):
        keep = [aten.mm.default, aten.sin.default]
        return checkpoint(
            region, x, w, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(keep)
        )

    compiled, graphs = compiled_with_graphs(f)
    same(f, compiled, (3, 4), (4, 3))
    assert aten.exp.default in targets(graphs[1]) and aten.sin.default not in targets(graphs[1])


@pytest.mark.parametrize("partition", PARTITIONS)
def test_random_numbers_are_drawn_once(partition):
    def inner(x):
        return F.dropout(x.sin(), 0.5).exp() * torch.rand_like(x)

    def f(x):
        return checkpoint(inner, x, use_reentrant=False) * torch.rand(4)

    compiled, graphs = compiled_with_graphs(f, partition)
    same(f, compiled, (3, 4))
    names = [getattr(t, "__name__", str(t)) for t in targets(graphs[1])]
    assert "run_with_rng_state" in names


def test_regions_in_a_row_and_nested():
    def block(x):
        return checkpoint(lambda y: (y * 2).sin(), x.exp(), use_reentrant=False).cos()

    def f(x):
        for _ in range(3):
            x = checkpoint(block, x, use_reentrant=False)
        return x

    compiled, graphs = compiled_with_graphs(f)
    same(f, compiled, (3,))
    tags = {n.meta["ac_graph_id"] for n in graphs[0].graph.nodes if "ac_graph_id" in n.meta}
    assert len(tags) == 6


def test_modules_and_other_arguments():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.line, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

        def forward(self, x, scale, extra=None):
            return {"y": self.norm(self.line(x)).relu() * scale + extra["b"], "n": scale, "none": None}

    torch.manual_seed(1)
    block = Block()

    def f(x, b):
        out = checkpoint(block, x, 2.0, extra={"b": b}, use_reentrant=False)
        assert out["n"] == 2.0 and out["none"] is None
        return out["y"].sin()

    def grads(form):
        block.zero_grad()
        found = run(form, (3, 4), (4,))
        return found + [p.grad.clone() for p in block.parameters()]

    expected = grads(f)
    for backend in ("eager", "aot_eager", "aot_eager_decomp_partition"):
        form = compile(f, backend=backend, fullgraph=True)
        assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(expected, grads(form), strict=True))


# ---- captured programs
def captured(f, backend="eager"):
    graphs = []

    def take(graph, examples):
        graphs.append(graph)
        from pullback.capture.front.backends import lookup_backend

        return lookup_backend(backend)(graph, examples)

    return compile(f, backend=take, fullgraph=True), graphs


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "aot_eager_decomp_partition"])
def test_a_captured_checkpoint_is_one_call(backend):
    weight = torch.randn(4, 4, requires_grad=True)

    def f(x):
        return checkpoint(lambda y: F.dropout((y @ weight).sin(), 0.5), x * 2, use_reentrant=False).exp()

    form, graphs = captured(f, backend)
    same(f, form, (3, 4))
    same(f, form, (3, 4))
    (graph,) = graphs
    names = [getattr(t, "__name__", str(t)) for t in targets(graph)]
    assert names.count("tag_activation_checkpoint") == 1 and not any("sin" in n for n in names)
    assert any("sin" in str(n.target) for n in graph.wrap_body_0.graph.nodes)
    assert sum(n.op == "placeholder" for n in graph.graph.nodes) == 2  # the argument, and the weight it closes over
    found = []
    for run_one in (f, form):
        weight.grad = None
        run(run_one, (3, 4))
        found.append(weight.grad)
    assert torch.allclose(*found)


def test_a_captured_checkpoint_keeps_nothing_when_it_runs_eagerly():
    def f(x):
        return checkpoint(lambda y: y.sin().exp().cos(), x, use_reentrant=False)

    form, _ = captured(f)
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        form(*arguments((3,))).sum()
    assert len([t for t in packed if not isinstance(t, FakeTensor)]) == 1  # the region's input


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_captured_selective_checkpoint(backend):
    def f(x, w):
        keep = [aten.mm.default]
        return checkpoint(
            region, x, w, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(keep)
        )

    form, _ = captured(f, backend)
    same(f, form, (3, 4), (4, 3))


def test_policies_of_captured_checkpoints_reach_the_partitioner():
    def f(x, w):
        keep = [aten.mm.default]
        body = lambda x, w: torch.matmul(x, w).sin().exp()  # noqa: E731 - matmul is made of mm: policies see that
        return checkpoint(
            body, x, w, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(keep)
        )

    graphs = []

    def backend(graph, examples):
        from pullback.joint.aot import aot_module_simplified

        return aot_module_simplified(graph, examples, lambda g, i: graphs.append(g) or g)

    same(f, compile(f, backend=backend, fullgraph=True), (3, 4), (4, 3))
    assert targets(graphs[1]).count(aten.mm.default) == 2 and aten.sin.default in targets(graphs[1])


def test_what_cannot_be_captured_ends_the_graph():
    kept = torch.zeros(3)

    def writes(x):
        def body(y):
            kept.add_(1)
            return y.sin()

        return checkpoint(body, x, use_reentrant=False)

    with pytest.raises(
        RuntimeError, match="writes to a tensor that it did not make|in a way that the graph does not see"
    ):
        compile(writes, backend="eager", fullgraph=True)(*arguments((3,)))
    compile(writes, backend="eager")(*arguments((3,)))  # the checkpointed call runs between graphs
    assert kept.tolist() == [1.0] * 3

    def other(x):
        return checkpoint(
            torch.sin, x, use_reentrant=False, context_fn=lambda: (torch.enable_grad(), torch.enable_grad())
        )

    with pytest.raises(RuntimeError, match="create_selective_checkpoint_contexts"):
        compile(other, backend="eager", fullgraph=True)(*arguments((3,)))
    with pytest.raises(NotImplementedError, match="create_selective_checkpoint_contexts"):
        aot_function(other, lambda g, i: g)(*arguments((3,)))


def test_nothing_happens_without_recording():
    def f(x):
        return checkpoint(torch.sin, x, use_reentrant=False)

    form, graphs = captured(f)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(form(*arguments((3,))), f(*arguments((3,))))
    assert "tag_activation_checkpoint" not in [getattr(t, "__name__", str(t)) for t in targets(graphs[0])]
    assert recording_trace() is None
