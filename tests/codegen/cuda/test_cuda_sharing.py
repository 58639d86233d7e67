"""Buffers in the memory of saved values, of results and of each other: on an emulated device."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.codegen import memory, stages
from pullback.codegen.memory import in_turns, lifetimes
from pullback.core import dtype as dtypes
from pullback.ops.lowering.loops import Buffer
from tests.codegen.cuda.emulator import EmulatedSegment

SIDE = 64


@pytest.fixture
def small(monkeypatch):
    """Every byte counts."""
    monkeypatch.setattr(memory, "LEAST", 64)
    monkeypatch.setattr(memory, "WORTH", 64)


def backward(g, saved, other):
    """The slope of something like a softmax, then products: `saved` is read once, element by element."""
    slope = saved.exp() * g
    return slope @ other, slope.t() @ other


@pytest.fixture
def arguments():
    torch.manual_seed(0)
    return [torch.randn(SIDE, SIDE) for _ in range(3)]


@pytest.fixture
def owned(small, monkeypatch):
    """Arguments of that name are the graph's own, as what a forward saved is a backward's."""
    real = EmulatedSegment.write

    def write(self, *args):
        for n in self.given:
            if n.name.startswith("saved"):
                n.meta.update(saved=True, own=True)
        return real(self, *args)

    monkeypatch.setattr(EmulatedSegment, "write", write)


@pytest.fixture
def program(emulated, owned, arguments):
    return emulated(backward, *arguments)


def test_what_nobody_else_has_is_written_over(program, arguments):
    plan = program.segments[0].source.plan
    assert [program.segments[0].given[k].name for k in plan.reused] == ["saved_1"] and plan.arena == 0
    expected = backward(*arguments)
    before = arguments[1].clone()
    seen = arguments[1]._array
    del arguments[1:2]
    arguments.insert(1, torch.from_numpy(seen))  # the memory has another owner: it is copied
    for got, want in zip(program.consume(list(arguments)), expected, strict=True):
        assert torch.allclose(got, want, atol=1e-3)
    assert torch.equal(torch.from_numpy(seen), before)
    given = [arguments[0], before.clone(), arguments[2]]
    for got, want in zip(program.consume(given), expected, strict=True):
        assert torch.allclose(got, want, atol=1e-3)
    assert not given


def test_what_the_caller_has_stays_as_it_is(program, arguments):
    expected, before = backward(*arguments), arguments[1].clone()
    for _ in range(2):
        for got, want in zip(program(*arguments), expected, strict=True):
            assert torch.allclose(got, want, atol=1e-3)
    assert torch.equal(arguments[1], before)


def test_a_second_backward_finds_what_was_saved(small, monkeypatch):
    monkeypatch.setattr(stages, "segment_kind", lambda graph: EmulatedSegment)
    x, w = (torch.randn(SIDE, SIDE, requires_grad=True) for _ in range(2))
    f = lambda x, w: torch.logsumexp((x @ w).sin() @ w, 1).sum()
    want = torch.autograd.grad(f(x, w), (x, w))
    loss = torch.compile(f)(x, w)
    for keep in (True, True, False):
        for got, expected in zip(torch.autograd.grad(loss, (x, w), retain_graph=keep), want, strict=True):
            assert torch.allclose(got, expected, atol=1e-3)


def test_a_value_that_comes_out_too_stays(small, monkeypatch):
    monkeypatch.setattr(stages, "segment_kind", lambda graph: EmulatedSegment)
    x, w = (torch.randn(SIDE, SIDE, requires_grad=True) for _ in range(2))

    def f(x, w):
        y = x @ w
        return y.view(-1), y.exp().sum()

    y, loss = torch.compile(f)(x, w)
    before = y.detach().clone()
    loss.backward()
    assert torch.equal(y, before) and torch.allclose(y.view(SIDE, SIDE), x @ w, atol=1e-3)


def test_what_is_gone_before_a_result_is_written_lies_in_its_memory(emulated, small):
    f = lambda x, w: ((x @ w).sin() @ w).cos() @ w
    args = [torch.randn(SIDE, SIDE) / 8 for _ in range(2)]
    run = emulated(f, *args)
    assert run.segments[0].source.plan.arena == SIDE * SIDE * 4
    assert torch.allclose(run(*args), f(*args), atol=1e-3)


def test_the_product_that_frees_more_comes_first(emulated, owned, arguments):
    """One of two products reads a value for the last time, which is gone before the other begins."""

    def f(g, saved, w):
        step = g @ w
        slope = saved.t() @ g
        return slope, step.sin() @ w

    run = emulated(f, *arguments)
    plan = run.segments[0].source.plan
    assert plan.entries[0][15] == plan.inputs and plan.dead == ((2,),)  # the first product gives the first result
    for got, want in zip(run.consume(list(arguments)), f(*arguments), strict=True):
        assert torch.allclose(got, want, atol=1e-3)


def test_arenas_go_when_results_come(small):
    """Values that are read backwards, and as much that comes out meanwhile."""
    made = [Buffer(f"v{n}", dtypes.float32, 1000) for n in range(8)]
    out = [Buffer(f"r{n}", dtypes.float32, 1000) for n in range(8)]
    order = [({b}, set()) for b in made]
    order += [({r}, {b}) for b, r in zip(reversed(made), out, strict=True)]
    parts = in_turns(order, set(), set(out))
    assert parts is not None and len(parts.cuts) == 3
    one = 4032  # bytes of each
    assert parts.most <= 12 * one and sum(map(len, parts.born)) == 8
    spans, begins = lifetimes(order), [0, *parts.cuts]
    for b, place in parts.offsets.items():
        n = max(k for k in range(len(parts.arenas)) if sum(parts.arenas[:k]) <= place and parts.arenas[k])
        first, last = parts.stays[n]
        assert begins[first] <= spans[b][0] and spans[b][1] < [*parts.cuts, len(order)][last]
        for other, at in parts.offsets.items():
            meet = spans[b][0] <= spans[other][1] and spans[other][0] <= spans[b][1]
            assert other is b or not meet or abs(at - place) >= one
