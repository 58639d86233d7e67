"""Higher-order operators inside programs that are captured above autograd."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import nn
from pullback.capture.higher_order.map import map as mapped
from pullback.capture.higher_order.scan import scan
from pullback.nn.attention.flex_attention import flex_attention

layer = nn.Linear(3, 3)
bias = nn.Parameter(torch.randn(3, 3))


def switching(x, w):
    """A branch that switches recording off, and closes over what the program computed."""
    y = w.exp()

    def branch(x):
        with torch.no_grad():
            k = x * 3
        return k * x + y * w

    return torch.cond(x.sum() > -100, branch, lambda x: x.cos() * y, (x,))


def using_modules(x, w):
    constant = lambda x: layer(x).sin() * torch.tensor([1.0, 2.0, 3.0])  # noqa: E731
    return torch.cond(w.sum() > 100, lambda x: layer(x), constant, (x,))


def carrying(x, w):
    carry, out = scan(lambda c, x: (c * x + w, c + x), w, x)
    return carry + out.sum(0)


def mapping(x, w):
    return mapped(lambda row: layer(row) * w, x)


def looping(x, w):
    return torch.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.sin() * w), (torch.tensor(0), x))[1]


def attending(x, w):
    return flex_attention(x, x * w, x, score_mod=lambda s, b, h, i, j: s + bias[i, j])


PROGRAMS = [
    (switching, (3,)), (using_modules, (3,)), (carrying, (4, 3)), (mapping, (4, 3)), (looping, (3,)),
    (attending, (1, 2, 3, 3)),
]  # fmt: skip


@pytest.mark.parametrize("f, shape", PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_values_and_gradients(f, shape, backend):
    args = [torch.randn(shape, requires_grad=True), torch.randn(3, requires_grad=True)]
    targets = [*args, *layer.parameters(), bias]
    got = torch.compile(f, backend=backend)(*args)
    want = f(*args)
    assert torch.allclose(got, want, atol=1e-6)
    pairs = [torch.autograd.grad((out * out).sum(), targets, materialize_grads=True) for out in (got, want)]
    for a, b in zip(*pairs, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_one_graph_one_node():
    graphs = []

    def keep(graph, example_inputs):
        graphs.append(graph)
        return graph.forward

    torch.compile(switching, backend=keep)(torch.randn(3), torch.randn(3))
    (graph,) = graphs
    assert sum(n.target is torch.ops.higher_order.cond for n in graph.graph.nodes) == 1
    assert "_set_grad_enabled" in graph.cond_true_0.code
