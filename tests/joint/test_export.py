"""Graphs for others: what they compute, what their signatures say, what is refused."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import nn
from pullback.joint.config import config
from pullback.joint.export import aot_export_function, aot_export_joint_simple, aot_export_module


def leaf(*shape):
    return torch.randn(shape, requires_grad=True)


def names(graph, op="placeholder") -> list[str]:
    return [n.name for n in graph.graph.nodes if n.op == op]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 2)
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        self.steps.add_(1)
        return ((self.line(x).sin() * self.steps).sum(), x.detach() + 1)


# ---- aot_export_joint_simple
def test_joint_simple():
    x, y = leaf(3), leaf(3)
    graph = aot_export_joint_simple(lambda x, y: (x * y, (x + y).sum()), (x, y), trace_joint=True)
    assert names(graph) == ["primals_1", "primals_2", "tangents_1", "tangents_2"]
    g = torch.randn(3)
    out = graph(x.detach(), y.detach(), g, torch.ones(()))
    expected = (x * y, (x + y).sum(), g * y + 1, g * x + 1)
    assert all(torch.allclose(a, b.detach()) for a, b in zip(out, expected, strict=True))


def test_forward_alone():
    x = leaf(3)
    graph = aot_export_joint_simple(lambda x: (x * 2,), (x,), trace_joint=False)
    assert len(graph.graph.output_node().args[0]) == 1
    assert torch.equal(graph(x.detach())[0], x.detach() * 2)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: (x.add_(1),), "input mutations"),
        (lambda x: (x.t_() * 2,), "metadata mutation"),
        (lambda x: (x,), "alias of an input"),
        (lambda x: (x.t(),), "alias of an input"),
        (lambda x: (lambda y: (y, y[0]))(x * 2), "alias of an input or of another output"),
    ],
)
def test_side_effects_are_refused(f, words):
    with pytest.raises(RuntimeError, match=words):
        aot_export_joint_simple(f, (torch.ones(2, 2),), trace_joint=False)


# ---- aot_export_module
def test_signature_of_a_forward():
    net = Net()
    graph, signature = aot_export_module(net, (torch.randn(4, 3),), trace_joint=False)
    assert signature.parameters == ["line.weight", "line.bias"] and signature.buffers == ["steps"]
    assert signature.inputs_to_parameters == {"arg0_1": "line.weight", "arg1_1": "line.bias"}
    assert signature.inputs_to_buffers == {"arg2_1": "steps"} and signature.user_inputs == ["arg3_1"]
    assert len(signature.user_outputs) == 2 and list(signature.buffers_to_mutate.values()) == ["steps"]
    assert not signature.user_inputs_to_mutate and signature.backward_signature is None
    assert net.steps.item() == 0


def by_name(graph, signature, out) -> dict:
    results = [getattr(r, "name", None) for r in graph.graph.output_node().args[0]]
    return dict(zip(results, out, strict=True))


def test_gradients_of_a_loss():
    torch.manual_seed(0)
    net, x = Net(), torch.randn(4, 3)
    graph, signature = aot_export_module(net, (x,), trace_joint=True, output_loss_index=0)
    state = [*net.parameters(), *net.buffers()]
    out = by_name(graph, signature, graph(*[t.detach() for t in state], x))
    backward = signature.backward_signature
    loss = net(x)[0]
    loss.backward()
    assert torch.allclose(out[backward.loss_output], loss.detach())
    found = {name: out[result] for result, name in backward.gradients_to_parameters.items()}
    for name, p in net.named_parameters():
        assert torch.allclose(found[name], p.grad, atol=1e-6)
    (mutated,) = signature.buffers_to_mutate
    assert out[mutated].item() == 1 and not backward.gradients_to_user_inputs


def test_gradients_of_inputs():
    net, x = Net(), leaf(4, 3)
    graph, signature = aot_export_module(net, (x,), trace_joint=True, output_loss_index=0)
    assert list(signature.backward_signature.gradients_to_user_inputs.values()) == signature.user_inputs


def test_written_user_inputs():
    class Writes(nn.Module):
        def forward(self, x):
            x.add_(1)
            return (x * 2,)

    _, signature = aot_export_module(Writes(), (torch.zeros(2),), trace_joint=False)
    assert list(signature.user_inputs_to_mutate.values()) == signature.user_inputs


def test_what_is_asked_of_losses():
    net, x = Net(), torch.randn(4, 3)
    with pytest.raises(RuntimeError, match="one of your forward outputs must be a scalar loss"):
        aot_export_module(net, (x,), trace_joint=True)
    with pytest.raises(RuntimeError, match="only needed when trace_joint=True"):
        aot_export_module(net, (x,), trace_joint=False, output_loss_index=0)
    with pytest.raises(RuntimeError, match="to be a scalar"):
        aot_export_module(net, (x,), trace_joint=True, output_loss_index=1)


def test_export_of_a_function():
    x = leaf(3)
    graph, joint, in_spec, out_spec = aot_export_function(
        lambda x, *, k: {"out": x * k}, (x,), kwargs={"k": torch.ones(3)}
    )
    assert in_spec.num_leaves == 2 and out_spec.num_leaves == 1 and joint.results == 1
    assert torch.equal(graph(x.detach(), torch.full((3,), 2.0))[0], x.detach() * 2)


def test_wrapper_classes_are_refused():
    from .pair import pair

    with pytest.raises(NotImplementedError, match="tensor subclass"):
        aot_export_joint_simple(lambda x: (x * 2,), (pair(2),), trace_joint=False)


def test_new_values_of_written_inputs_come_first():
    class Count(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(2))

        def forward(self, x):
            self.calls.add_(4)
            return (x + self.calls,)

    graph, signature = aot_export_module(Count(), [torch.ones(2)], trace_joint=False)
    calls, out = graph(torch.zeros(2), torch.ones(2))
    assert calls.tolist() == [4, 4] and out.tolist() == [5, 5]
    (name,) = signature.buffers_to_mutate
    assert name == graph.graph.output_node().args[0][0].name and signature.user_outputs != [name]


@pytest.mark.parametrize("second", [lambda x: x, lambda x: x.view(-1)], ids=["duplicated", "aliased"])
def test_writes_to_inputs_that_share_memory_are_refused(second, request):
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=f"Encountered {request.node.callspec.id} inputs that are mutated"):
        aot_export_joint_simple(lambda x, y: (x.mul_(2) + y,), [x, second(x)], trace_joint=False)


def test_what_a_flat_graph_does_not_take():
    with pytest.raises(RuntimeError, match="inputs not to be pytrees"):
        aot_export_joint_simple(lambda xs: (xs[0],), [[torch.ones(1)]], trace_joint=False)
    p = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires gradients, and received a mutation"):
        aot_export_joint_simple(lambda p: (p.mul_(2) + 1,), [p], trace_joint=True)
    with config.patch(functionalize_rng_ops=True), pytest.raises(RuntimeError, match="Functionalized RNG"):
        aot_export_joint_simple(lambda p: (p + 1,), [p], trace_joint=False)


def test_only_the_loss_may_require_grad():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(torch.ones(2))

        def forward(self, x):
            out = self.p * x
            return out, out.sum()

    with pytest.raises(RuntimeError, match="that was not the scalar loss"):
        aot_export_module(Two(), [torch.ones(2)], trace_joint=True, output_loss_index=1)
