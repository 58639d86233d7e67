"""Objects given to custom functions and to functions that graphs call as they are."""

from __future__ import annotations

import dataclasses

import pytest

import pullback as torch
from pullback.capture.trace.program import Unsupported

BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager"])
SCALE = 1.0


class Box:
    def __init__(self, factor, weight) -> None:
        self.factor, self.weight, self.parts = factor, weight, {"list": [weight, 2]}

    def doubled(self):
        return self.factor * 2

    def scaled(self):
        return self.factor * SCALE

    def count(self):
        self.factor += 1
        return self.factor


class Times(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, box):
        ctx.save_for_backward(box.weight)
        return x * box.weight * box.doubled() * box.parts["list"][1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0], None


def ran(f, *args):
    x = torch.ones(2, requires_grad=True)
    out = f(x, *args)
    out.sum().backward()
    return out.tolist(), x.grad.tolist()


@BACKENDS
def test_an_object_whose_state_changes(backend: str) -> None:
    box = Box(3, torch.full((2,), 2.0, requires_grad=True))

    def f(x, box):
        return Times.apply(x, box)

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for change in ({}, {"factor": 5}, {"weight": torch.full((2,), 7.0)}, {"parts": {"list": [box.weight, 9]}}):
        vars(box).update(change)
        assert ran(compiled, box) == ran(f, box)
    box.parts["list"][1] = 4
    assert ran(compiled, box) == ran(f, box)
    assert box.weight.grad is None


@BACKENDS
def test_an_object_that_the_program_makes(backend: str) -> None:
    def f(x, n):
        return Times.apply(x, Box(n, x.detach() + 1))

    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for n in (2, 3):
        assert ran(compiled, n) == ran(f, n)


def test_what_methods_of_an_object_read_is_tested() -> None:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, box):
            return x * box.scaled()

        @staticmethod
        def backward(ctx, g):
            return g, None

    global SCALE
    box, f = Box(3, torch.ones(2)), lambda x, box: Scaled.apply(x, box)
    compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
    try:
        for value in (1.0, 2.0):
            SCALE = value
            assert ran(compiled, box) == ran(f, box)
    finally:
        SCALE = 1.0


@pytest.mark.parametrize("changes", ["method", "attribute", "item"])
def test_an_object_that_is_changed_ends_the_graph(changes: str) -> None:
    class Changes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, box):
            if changes == "method":
                return x * box.count()
            if changes == "attribute":
                box.factor = box.factor + 1
            else:
                box.parts["list"][1] = box.factor = box.factor + 1
            return x * box.factor

        @staticmethod
        def backward(ctx, g):
            return g, None

    def f(x, box):
        return Changes.apply(x + 1, box)

    box, other = Box(3, torch.ones(2)), Box(3, torch.ones(2))
    compiled = torch.compile(f, backend="eager")
    for _ in range(3):
        assert ran(compiled, box) == ran(f, other) and box.factor == other.factor
    assert box.parts["list"][1] == other.parts["list"][1]
    with pytest.raises(Unsupported, match="Box|factor"):
        torch.compile(f, backend="eager", fullgraph=True)(torch.ones(2), box)


@dataclasses.dataclass(frozen=True)
class Pair:
    first: torch.Tensor
    second: torch.Tensor
    number: int = 5


@torch.compiler.allow_in_graph
def summed(pair):
    return pair.first + pair.second * pair.number


def test_frozen_dataclasses_in_functions_that_graphs_call() -> None:
    compiled = torch.compile(lambda x, n: summed(Pair(x, x + 1, n)), backend="eager", fullgraph=True)
    for n in (2, 3):
        assert compiled(torch.ones(2), n).tolist() == [1 + 2 * n] * 2
    with pytest.raises(Unsupported, match="a Box with tensors"):
        torch.compile(lambda x: summed(Box(1, x)), backend="eager", fullgraph=True)(torch.ones(2))
