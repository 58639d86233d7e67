"""`while_loop`: values, gradients where it runs, graphs, refusals."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.autograd import gradcheck, gradgradcheck
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.trace.make_fx import make_fx


def loop(x, w, steps=3):
    body = lambda i, a: (i + 1, a.sin() * w)  # noqa: E731
    return torch.while_loop(lambda i, a: i < steps, body, (torch.tensor(0), x))


def test_values():
    x, w = torch.randn(3), torch.randn(3)
    count, out = loop(x, w)
    assert count == 3 and torch.equal(out, (((x.sin() * w).sin() * w).sin()) * w)
    assert torch.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a + 1), (0, x))[0] == 4


def test_without_a_step_the_state_is_copied():
    x = torch.randn(3)
    (out,) = torch.while_loop(lambda a: torch.tensor(False), lambda a: (a + 1,), (x,))
    assert torch.equal(out, x) and out is not x


def test_gradients():
    args = tuple(torch.randn(3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    f = lambda x, w: loop(x, w)[1]  # noqa: E731
    assert gradcheck(f, args) and gradgradcheck(f, args)


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_graphs(mode):
    x, w = torch.randn(3), torch.randn(3)
    graph = make_fx(lambda x, w: loop(x, w), tracing_mode=mode)(x, w)
    assert torch.equal(graph(-x, w)[1], loop(-x, w)[1])
    (node,) = [n for n in graph.graph.nodes if n.target is torch.ops.higher_order.while_loop]
    assert [str(a) for a in node.args[:2]] == ["while_loop_cond_graph_0", "while_loop_body_graph_0"]
    assert len(node.args[2]) == 2 and len(node.args[3]) == 1


@pytest.mark.parametrize("mode", ["real", "fake"])
@pytest.mark.parametrize("order", [1, 2])
def test_gradients_in_a_graph(mode, order):
    def run(x, w, bound):
        args = [t.detach().requires_grad_() for t in (x, w)]
        out = (loop(*args, bound)[1],)
        for n in range(order):
            total = sum((o * o).sum() for o in out)
            out = torch.autograd.grad(total, args, create_graph=n + 1 < order, materialize_grads=True)
        return out

    x, w = (torch.randn(3, dtype=torch.float64) for _ in range(2))
    graph = make_fx(run, tracing_mode=mode)(x, w, torch.tensor(2))
    for steps in (0, 1, 4)[order - 1 :]:
        bound = torch.tensor(steps)
        for got, want in zip(graph(x, w, bound), run(x, w, bound), strict=True):
            assert torch.allclose(got, want)


def test_what_cannot_be_traced_says_so():
    x = torch.randn(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="integer in its state"):
        make_fx(lambda x: torch.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a + 1), (0, x)))(x.detach())


def test_refusals():
    x = torch.randn(3)
    with pytest.raises(RuntimeError, match="cond_fn must return a boolean scalar tensor or a boolean"):
        torch.while_loop(lambda a: a, lambda a: (a,), (x,))
    with pytest.raises(RuntimeError, match="to be callable"):
        torch.while_loop(1, lambda a: (a,), (x,))
    fake = FakeTensorMode().from_tensor(x)
    with pytest.raises(RuntimeError, match="Expected carried_inputs and body_output to have same metadata"):
        torch.while_loop(lambda a: a.sum() < 3, lambda a: (a.double(),), (fake,))


def counted(x, n):
    def step(i, a):
        torch._check(i >= 0)
        torch._check(i < a.shape[0])
        a = a.clone()
        a.select(0, i).mul_(2)
        return i + 1, a

    return torch.while_loop(lambda i, a: i < n, step, (0, x))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_integers_of_the_state_are_symbols_in_a_graph(dynamic, backend):
    x = torch.arange(1.0, 5.0)
    run = torch.compile(counted, backend=backend, fullgraph=True, dynamic=dynamic)
    for n in (0, 1, 3):
        (got_i, got), (want_i, want) = run(x, n), counted(x, n)
        assert got_i == want_i and torch.equal(got, want)


def test_integers_of_the_state_in_an_exported_program():
    class Loop(torch.nn.Module):
        def forward(self, x):
            i, out = torch.while_loop(lambda i, a: i < x.shape[0], lambda i, a: (i + 2, a + i), (1, x))
            return i * 2, out

    x = torch.randn(5)
    program = torch.export.export(Loop(), (x,), dynamic_shapes={"x": {0: torch.export.Dim("n")}})
    for n in (5, 8):
        x = torch.randn(n)
        (got_i, got), (want_i, want) = program.module()(x), Loop()(x)
        assert got_i == want_i and torch.equal(got, want)


def test_gradients_beside_an_integer_in_the_state():
    def f(x, w):
        return torch.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w + i), (0, x))[1]

    x, w = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    want = torch.autograd.grad(f(x, w).sum(), (x, w))
    got = torch.autograd.grad(torch.compile(f, backend="aot_eager", fullgraph=True)(x, w).sum(), (x, w))
    assert all(torch.allclose(a, b) for a, b in zip(got, want, strict=True))


def test_the_result_is_nested_as_the_body_nests_it():
    x = torch.zeros(2)
    less = lambda a: a.sum() < 4  # noqa: E731
    for f in (torch.while_loop, torch.compile(torch.while_loop, backend="aot_eager", fullgraph=True)):
        assert torch.equal(f(less, lambda a: a + 1, (x,)), torch.full((2,), 2.0))
        (out,) = f(less, lambda a: [a + 1], (x,))
        assert torch.equal(out, torch.full((2,), 2.0))
