"""A backward lets go of saved values while it runs, and allocates what it needs when they are gone: on an emulated device."""

from __future__ import annotations

import weakref
from itertools import accumulate

import pytest

import pullback as torch
from pullback.codegen import memory
from tests.codegen.cuda.emulator import EmulatedMachine, EmulatedSegment

WIDTH, DEPTH = 96, 6


def backward(g, *saved):
    for s in saved:
        g = (s @ g).sin()
    return (g @ g.t()).cos() @ (g @ g.t()).exp() @ g, saved[0]


@pytest.fixture
def arguments():
    torch.manual_seed(0)
    return [torch.randn(WIDTH, 8), *[torch.randn(WIDTH, WIDTH) / 10 for _ in range(DEPTH)]]


@pytest.fixture
def program(emulated, monkeypatch, arguments):
    """The graph, its inputs but the first saved by a forward."""
    monkeypatch.setattr(memory, "LEAST", 64)
    monkeypatch.setattr(memory, "WORTH", 64)
    real = EmulatedSegment.write

    def write(self, *args):
        for n in self.given[1:]:
            n.meta["saved"] = True
        return real(self, *args)

    monkeypatch.setattr(EmulatedSegment, "write", write)
    return emulated(backward, *arguments)


@pytest.fixture
def alive(monkeypatch, arguments):
    """Which of the saved values are alive when each part of a run begins."""
    refs, seen = [weakref.ref(s) for s in arguments[1:]], []
    run = EmulatedMachine.run

    def watched(self, program, addresses, tf32, begin):
        run(self, program, addresses, tf32, lambda k: (begin(k), seen.append([r() is not None for r in refs])))

    monkeypatch.setattr(EmulatedMachine, "run", watched)
    return seen


def test_parts_compute_the_same(program, arguments):
    plan = program.segments[0].source.plan
    assert plan.cuts and len(plan.arenas) == len(plan.cuts) + 1 and sum(plan.arenas) == plan.arena
    expected = backward(*arguments)
    for run in (lambda: program(*arguments), lambda: program.consume(list(arguments))):
        found = run()
        assert torch.allclose(found[0], expected[0], atol=1e-3, rtol=1e-3) and found[1] is arguments[1]


def test_what_nobody_else_has_is_gone_after_its_part(program, arguments, alive):
    kept = arguments[2]
    program.consume(arguments)
    assert not arguments and alive[-1][:3] == [True, True, False] and kept is not None and all(alive[0])


def test_what_the_caller_has_stays(program, arguments, alive):
    program(*arguments)
    assert all(map(all, alive))


def test_a_result_is_allocated_with_the_part_that_writes_it(program, arguments, monkeypatch):
    """Its address is not there before; the addresses of later results are not either."""
    found, run = [], EmulatedMachine.run
    inputs, plan = len(arguments), program.segments[0].source.plan

    def watched(self, program, addresses, tf32, begin):
        run(self, program, addresses, tf32, lambda k: (begin(k), found.append([a != 0 for a in addresses[inputs:]])))

    monkeypatch.setattr(EmulatedMachine, "run", watched)
    program(*arguments)
    assert [sum(row) for row in found] == list(accumulate(map(len, plan.born))) and sum(
        found[-1]
    ) == plan.outputs > sum(found[0])
