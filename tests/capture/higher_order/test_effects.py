"""Functions that operators take, and that change Python state: each change is made as often as in the program itself."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.higher_order import cond, map, scan, while_loop, wrap
from pullback.capture.trace.program import Unsupported
from pullback.utils.checkpoint import checkpoint

BACKENDS = ["eager", "aot_eager"]


def appending(note, scale):
    def body(x):
        note(x)
        return x * scale

    return body


def looping(note):
    def body(i, x):
        note(x)
        return i + 1, x * 2

    return body


def scanning(note):
    def body(carry, x):
        note(x)
        return carry + x, carry * x

    return body


def none(x):
    pass


CALLS = {
    "wrap": lambda note, x: wrap(appending(note, 2), x),
    "cond": lambda note, x: cond(x.sum() > 0, appending(note, 2), appending(none, 3), (x,)),
    "map": lambda note, x: map(appending(note, 2), x),
    "while_loop": lambda note, x: while_loop(lambda i, x: i < 3, looping(note), (torch.tensor(0), x))[1],
    "scan": lambda note, x: scan(scanning(note), torch.zeros(()), x)[1],
    "checkpoint": lambda note, x: checkpoint(appending(note, 2), x, use_reentrant=False),
}


class Box:
    def __init__(self):
        self.count, self.seen = 0, []


def outside(call):
    box = Box()

    def note(x):
        box.count += 1
        box.seen.append("x")

    def f(x):
        return call(note, x)

    return f, lambda: (box.count, box.seen)


def results(f, state):
    values = [f(torch.arange(3.0) + k - 1).tolist() for k in range(3)]
    return values, state()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_objects_from_outside(call, backend):
    (f, state), (g, other_state) = outside(call), outside(call)
    assert results(torch.compile(f, backend=backend), state) == results(g, other_state)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_tensors_kept_in_a_list_of_the_program(call, backend):
    def f(x):
        seen = []
        out = call(seen.append, x)
        return out, [t * 1 for t in seen]

    x = torch.arange(3.0)
    expected, kept = f(x)
    found, kept_there = torch.compile(f, backend=backend)(x)
    assert torch.equal(found, expected) and [t.tolist() for t in kept_there] == [t.tolist() for t in kept]


@pytest.mark.parametrize("backend", BACKENDS)
def test_variables_of_the_program(backend):
    def f(x):
        count = 0

        def body(x):
            nonlocal count
            count += 1
            return x + count

        return map(body, x), count

    x = torch.zeros(3)
    (expected, count), (found, counted) = f(x), torch.compile(f, backend=backend)(x)
    assert torch.equal(found, expected) and counted == count


def test_one_whole_graph_is_refused():
    f, _ = outside(CALLS["cond"])
    with pytest.raises(Unsupported, match="changes Python state"):
        torch.compile(f, backend="eager", fullgraph=True)(torch.ones(3))
