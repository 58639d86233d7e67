"""Which variables a frame may still read; what a graph that ends gives."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.bytecode.liveness import live_names
from pullback.capture.bytecode.steps import steps_of
from pullback.capture.front.explain import explain


def before(function, name: str) -> frozenset[str]:
    """What is live where a name is first read as a global."""
    steps = steps_of(function.__code__)
    place = next(i for i, (step, arg) in enumerate(steps.code) if "GLOBAL" in step and name in str(arg))
    return live_names(steps)[place]


def straight(x):
    a, b = x, x  # noqa: F841 - this is about unused ones
    mark()  # noqa: F821
    return b


def loop(x):
    a = b = c = x
    for i in x:
        mark()  # noqa: F821
        b, a = a, i  # noqa: F841
    return c


def handled(x):
    a, b = x, x  # noqa: F841
    try:
        mark()  # noqa: F821
    except ValueError:
        return a
    return x


def deleted(x):
    a = x
    mark()  # noqa: F821
    del a
    return x


def branches(x):
    a, b = x, x
    mark()  # noqa: F821
    return a if x else b


@pytest.mark.parametrize(
    ("function", "live", "dead"),
    [
        (straight, "b", "ax"), (loop, "ac", "x"), (handled, "ax", "b"), (deleted, "ax", ""), (branches, "abx", ""),
    ],
)  # fmt: skip
def test_names(function, live, dead):
    found = before(function, "mark")
    assert found >= set(live) and not found & set(dead)


def results(f) -> list[int]:
    graphs = explain(f)(torch.ones(3, requires_grad=True)).graphs
    return [len(g.graph.output_node().args[0]) for g in graphs]


def test_a_dead_tensor_is_no_result(capsys):
    def f(x):
        y = x.sin()
        z = y * 2
        print("here")
        return z + 1

    assert results(f) == [1, 1]


def test_code_that_can_ask_for_its_variables_keeps_them(capsys):
    def f(x):
        y = x.sin()
        z = y * 2
        print(sorted(locals()))
        return z + 1

    torch.compile(f, backend="eager")(torch.ones(3))
    assert capsys.readouterr().out == "['x', 'y', 'z']\n"
