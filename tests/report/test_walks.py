"""Backwards that the engine walked: nodes and hooks in the order in which they ran."""

from __future__ import annotations

import functools

import pullback as torch
from pullback.core import events
from pullback.report import collecting
from pullback.report.walks import MOST, Walks, named


def walks_of(program) -> Walks:
    found = Walks()
    with events.listening(lambda kind, facts: found.add(facts["nodes"]) if kind == "walked" else None):
        program()
    return found


def test_hooks_stand_where_they_are_called():
    called = []

    def on_tensor(g):
        called.append("tensor")

    def before(gs):
        called.append("before")

    def after(inputs, outputs):
        called.append("after")

    def accumulated(p):
        called.append("accumulated")

    def program():
        w = torch.ones(3, requires_grad=True)
        w.register_post_accumulate_grad_hook(accumulated)
        y = w * 2
        y.register_hook(on_tensor)
        y.retain_grad()
        y.grad_fn.register_prehook(before)
        y.grad_fn.register_hook(after)
        y.sum().backward()

    (walk,) = walks_of(program).known
    total, product, leaf = walk.steps
    assert [s.node for s in walk.steps] == [
        "SumBackward0",
        "MulBackward0",
        "torch::autograd::AccumulateGrad of a leaf (3,)",
    ]
    assert [text.partition(" (")[0].rpartition(".")[2] for text in product.before] == [
        "on_tensor", "keeps the gradient of output 0", "before"
    ]  # fmt: skip
    assert product.after == [f"hook: {named(after)}"] and leaf.after == [
        f"hook after accumulation: {named(accumulated)}"
    ]
    assert not total.before and not total.after
    assert called == ["tensor", "before", "after", "accumulated"]
    assert __file__ in product.after[0]


def test_backwards_of_one_structure_are_one_walk():
    def program():
        w = torch.ones(3, requires_grad=True)
        for _ in range(4):
            (w * 2).sum().backward()
        torch.autograd.grad(w.exp().sum(), w)

    found = walks_of(program)
    assert [w.times for w in found.known] == [4, 1] and found.more == 0


def test_only_so_many_structures_are_kept():
    def program():
        x = w = torch.ones((), requires_grad=True)
        for _ in range(MOST + 2):
            x = x * 2
            x.backward(retain_graph=True)
        assert w.grad is not None

    found = walks_of(program)
    assert len(found.known) == MOST and found.more == 2


def test_hooks_have_names():
    class Hook:
        def __call__(self, g):
            return None

        def method(self, g):
            return None

    assert named(Hook()).endswith("Hook") and ".method (" in named(Hook().method)
    assert named(functools.partial(Hook.method, None)).partition(" (")[0].endswith("Hook.method")


def test_what_the_compiler_walks_is_not_of_the_program():
    model = torch.nn.Linear(3, 2)
    compiled = torch.compile(model)
    with collecting() as account:
        for _ in range(2):
            compiled(torch.ones(4, 3)).sum().backward()
    (walk,) = account.walks.known
    assert walk.times == 2 and any("CompiledFunctionBackward" in s.node for s in walk.steps)
