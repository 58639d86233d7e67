"""The joint graph itself: pure, in one pass, with the facts that the runtime needs."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.fake.mode import FakeTensor, FakeTensorMode
from pullback.joint.trace import AliasedWrite, JointTrace
from pullback.joint.transform import functionalize

from .compare import is_impure

aten = torch.ops.aten


def trace(f, *args, backward=True, decompositions=None):
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    return JointTrace(f, list(args), fake_mode=mode, decompositions=decompositions or {}, backward=backward).run()


def leaf(*shape):
    return torch.randn(shape, requires_grad=True)


def placeholders(joint) -> list[str]:
    return [n.name for n in joint.module.graph.nodes if n.op == "placeholder"]


def test_inputs_and_results_of_the_graph():
    joint = trace(lambda x, y: (x * y, y.detach() + 1), leaf(2, 3), leaf(2, 3))
    assert placeholders(joint) == ["primals_1", "primals_2", "tangents_1"]
    assert joint.results == 2 and joint.differentiable == [0] and joint.gradients == [0, 1]
    assert len(joint.module.graph.output_node().args[0]) == 4
    x, y, g = torch.randn(2, 3), torch.randn(2, 3), torch.randn(2, 3)
    out = joint.module(x, y, g)
    assert [torch.equal(a, b) for a, b in zip(out, (x * y, y + 1, g * y, g * x), strict=True)] == [True] * 4


def test_without_a_backward():
    joint = trace(lambda x: x * 2, torch.ones(2), backward=False)
    assert placeholders(joint) == ["arg0_1"] and not joint.tangents and not joint.gradients


def test_the_graph_is_pure():
    def f(x, y):
        z = x * 2
        z[0].mul_(y[0])
        z.t().add_(1)
        y.copy_(z)
        return z

    joint = trace(f, leaf(3, 3), torch.randn(3, 3))
    assert not any(is_impure(n) for n in joint.module.graph.nodes)
    assert joint.written == [1] and joint.inputs[1].written and joint.inputs[1].visible and not joint.inputs[0].written


def test_no_data_is_touched():
    x, y = leaf(2), torch.zeros(2)
    joint = trace(lambda x, y: (y.add_(1), x * y)[1], x, y)
    assert y.tolist() == [0, 0] and y._version == 0 and x.grad is None
    assert all(isinstance(p, FakeTensor) for p in (*joint.primals, *joint.tangents))


def test_facts_about_inputs():
    def f(plain, seen, hidden, shaped):
        seen.mul_(2)
        with torch.no_grad():
            hidden.mul_(2)
        shaped.t_()
        return plain + 1

    result = [torch.randn(2), leaf(2) * 1, leaf(2), torch.randn(2, 3)]
    plain, seen, hidden, shaped = trace(f, *result).inputs
    assert not (plain.written or plain.bumped or plain.requires_grad) and plain.is_leaf
    assert seen.written and seen.visible and seen.bumped and not seen.is_leaf
    assert hidden.written and not hidden.visible and hidden.requires_grad
    assert not shaped.written and shaped.geometry == ((3, 2), (1, 3), 0)


def test_facts_about_outputs():
    def f(x):
        y = x * 2
        return x, x.t(), y, y[0], y, None, 7, x.detach()

    facts = trace(f, leaf(2, 2)).outputs
    assert [o.kind for o in facts] == [
        "input",
        "input view",
        "fresh",
        "view",
        "same",
        "constant",
        "constant",
        "input view",
    ]
    assert facts[3].index == facts[2].index and facts[4].index == 2 and facts[6].value == 7
    assert facts[1].requires_grad and not facts[7].requires_grad


def test_views_of_one_hidden_base():
    joint = trace(lambda x: tuple((x * 2).split(1)), leaf(2, 2))
    assert [o.kind for o in joint.outputs] == ["view", "view"] and joint.results == 1 and joint.differentiable == [0]


def test_writes_to_shared_memory_ask_for_the_base():
    base = torch.randn(4)
    with pytest.raises(AliasedWrite) as caught:
        trace(lambda x, y: x.mul_(2) + y, base[:2], base[2:], backward=False)
    assert caught.value.inputs == [0, 1]


def test_decompositions_apply_to_both_passes():
    table = {aten.sin.default: lambda x: (x - torch.pi / 2).cos(), aten.cos.default: lambda x: 1 - x}
    joint = trace(lambda x: x.sin(), leaf(2), decompositions=table)
    called = [n.target for n in joint.module.graph.nodes if n.op == "call_function"]
    assert aten.sin.default not in called and aten.cos.default not in called


def test_nodes_of_the_backward_are_marked_and_know_their_lines():
    joint = trace(lambda x: x.sin(), leaf(2))
    by_name = {n.name: n for n in joint.module.graph.nodes if n.op == "call_function"}
    assert by_name["cos"].meta["partitioner_tag"] == "is_backward" and "partitioner_tag" not in by_name["sin"].meta
    assert "x.sin()" in by_name["sin"].meta["stack_trace"]


def test_gradients_that_cannot_be_computed_raise_in_backward():
    def f(x):
        y = x.exp()
        out = y.sin()
        with torch.no_grad():
            y.mul_(2)
        return out

    joint = trace(f, leaf(2))
    assert "modified by an inplace operation" in str(joint.backward_error)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_functions_without_a_derivative_run_forward(backend):
    x = torch.eye(2, dtype=torch.float64).requires_grad_()
    out = torch.compile(lambda x: torch.linalg.ldl_factor_ex(x)[0] * 2, backend=backend)(x)
    assert out.tolist() == [[2, 0], [0, 2]] and out.requires_grad
    for _ in range(2):
        with pytest.raises(RuntimeError, match="derivative for aten::linalg_ldl_factor_ex is not implemented"):
            out.sum().backward()


def test_backward_inside_is_refused():
    def f(x):
        (x * 2).sum().backward()
        return x * 3

    with pytest.raises(RuntimeError, match="calls backward"):
        trace(f, leaf(2))


def test_writes_to_what_is_no_input_are_refused():
    outside = torch.zeros(2)
    with pytest.raises(RuntimeError, match="writes to a tensor of shape \\[2\\] that is not one of its inputs"):
        trace(lambda x: (outside.add_(1), x * outside)[1], leaf(2))
    with pytest.raises(RuntimeError, match="not one of its inputs"):
        trace(lambda x: (outside[0].fill_(1), x * 2)[1], leaf(2))
    assert outside.tolist() == [0.0, 0.0]
    trace(lambda x: x * torch.tensor([1.0, 2.0]).add_(1), leaf(2))  # its own


@pytest.mark.parametrize(
    ("change", "make"),
    [
        (lambda x: x.requires_grad_(False), lambda: leaf(2)),
        (lambda x: x.detach_(), lambda: leaf(2) * 2),
    ],
)
def test_changes_of_requires_grad_are_refused(change, make):
    with pytest.raises(NotImplementedError, match="changes whether its input 0 requires grad"):
        trace(lambda x: (change(x), x * 2)[1], make())


def test_layouts_of_tangents():
    joint = trace(lambda x: ((x * 2).t(), (x * 3)[:, :1].expand(2, 5)), leaf(2, 2))
    assert [t.stride() for t in joint.tangents] == [(1, 2), (5, 1)]


def test_functionalize_shares_the_machinery():
    def f(x):
        y = x.clone()
        y.add_(1)
        return y

    assert functionalize(f)(torch.zeros(2)).tolist() == [1, 1]


@pytest.mark.parametrize(("where", "strides"), [("cuda", (27, 9, 3, 1)), ("cpu", (27, 1, 9, 3))])
def test_gradients_on_a_device_are_turned_to_the_order_of_their_inputs_within_the_graph(where, strides):
    from pullback.capture.fake.mode import FakeTensorMode
    from pullback.joint.aot import aot_function

    found = []

    def backward(module, inputs):
        found.extend(n.meta["val"].stride() for n in module.graph.output_node().all_input_nodes)
        return module

    with FakeTensorMode():
        x = torch.empty(2, 3, 8, 8, device=where).to(memory_format=torch.channels_last)
        w = torch.empty(4, 3, 3, 3, device=where, requires_grad=True)
        aot_function(torch.nn.functional.conv2d, lambda module, inputs: module, backward)(x, w).sum().backward()
    assert found == [strides]
