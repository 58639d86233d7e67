"""A backward in pieces: the same gradients, few graphs, and values that are let go at their last use."""

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

    made = enable(lambda gm: torch.compile(gm, backend=backend, dynamic=True))
    made.graphs = graphs
    return made


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

    made = grads(compiled, 8, hook)
    seen, log[:] = log[:], []
    assert same(made, grads(nullcontext(), 8, hook)) and seen == log and len(log) == 8
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
        made = g * 2
        last.append(weakref.ref(made))
        return made

    x = torch.ones(3, requires_grad=True)
    y = x.sin()
    z = y.cos()
    w = z.exp()
    w.register_hook(first)
    y.register_hook(lambda g: alive.append(last[0]() is not None))
    with compiled:
        w.sum().backward()
    assert alive == [False]
