"""A backward in pieces: the same gradients, few graphs, and values that are let go at their last use."""

import sys
import weakref
from contextlib import nullcontext

import pytest

import pullback as torch
from pullback.backward import pieces
from pullback.backward.compiled import enable


@pytest.fixture
def compiled():
    """A compiler of backwards, and the graphs that its backend got."""
    graphs = []

    def backend(gm, examples):
        graphs.append(gm)
        return gm

    result = enable(lambda gm: torch.compile(gm, backend=backend, dynamic=True))
    result.graphs = graphs
    return result


def grads(around, depth, hook=None):
    t = torch.linspace(0, 1, 4).requires_grad_()
    w = torch.linspace(1, 2, 4).requires_grad_()
    y = t
    for _ in range(depth):
        y = (y * w).sin() + y
        if hook is not None:
            y.register_hook(hook)
    with around:
        y.sum().backward()
    return t.grad, w.grad


def same(a, b):
    return all(x.equal(y) for x, y in zip(a, b, strict=True))


def test_pieces_of_the_same_structure_are_compiled_once(compiled):
    log = []

    def hook(g):
        log.append(g.sum().item())
        return g * 1.5

    result = grads(compiled, 8, hook)
    seen, log[:] = log[:], []
    assert same(result, grads(nullcontext(), 8, hook)) and seen == log and len(log) == 8
    assert 1 <= len(compiled.graphs) <= 5


def test_a_large_backward_is_compiled_in_few_pieces(compiled, monkeypatch):
    monkeypatch.setattr(pieces, "LARGE", 40)
    monkeypatch.setattr(pieces, "PIECE", 8)
    assert same(grads(compiled, 40), grads(nullcontext(), 40))
    assert 2 <= len(compiled.graphs) <= 12  # of 15 pieces


def test_a_backward_that_is_not_large_is_one_graph(compiled):
    assert same(grads(compiled, 8), grads(nullcontext(), 8))
    assert len(compiled.graphs) == 1


def test_a_value_is_let_go_at_its_last_use(compiled):
    alive, last = [], []

    def first(g):
        result = g * 2
        last.append(weakref.ref(result))
        return result

    x = torch.ones(3, requires_grad=True)
    y = x.sin()
    z = y.cos()
    w = z.exp()
    w.register_hook(first)
    y.register_hook(lambda g: alive.append(last[0]() is not None))
    with compiled:
        w.sum().backward()
    assert alive == [False]


class Prints(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        g = g * 3 + 1
        print("between")
        return g * x.cos()


def test_the_python_of_a_custom_backward_is_compiled_around_what_it_prints(compiled, capsys):
    with compiled:
        for size in (3, 4, 5):
            x = torch.linspace(0, 1, size).requires_grad_()
            Prints.apply(x).exp().sum().backward()
            want = (x.detach().sin().exp() * 3 + 1) * x.detach().cos()
            torch.testing.assert_close(x.grad, want)
            assert capsys.readouterr().out == "between\n"
    called = [{n.target.name for n in g.graph.nodes if hasattr(n.target, "schema")} for g in compiled.graphs]
    assert len(called) == 4  # before it, on both sides of the print, after it
    assert "cos" in called[2] and "cos" not in called[1]


class Remembers(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor, ctx.calls = factor, []
        return x * factor

    @staticmethod
    def backward(ctx, g):
        ctx.calls.append(len(ctx.calls))
        ctx.seen = g * 2
        return g * ctx.factor, None


def test_what_a_custom_backward_writes_on_its_context_is_there(compiled):
    with compiled:
        for factor in (2.0, 3.0):
            x = torch.ones(3, requires_grad=True)
            y = Remembers.apply(x, factor)
            y.sum().backward()
            assert x.grad.tolist() == [factor] * 3
            assert y.grad_fn.calls == [0] and y.grad_fn.seen.tolist() == [2.0] * 3


class Counted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        frames.append(sys._getframe(1).f_code.co_filename)
        return g * 2


frames: list = []


def test_python_that_works_with_other_libraries_is_called_as_it_is(compiled):
    x = torch.ones(3, requires_grad=True)
    with compiled:
        Counted.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3 and frames[-1].endswith("function.py")
