"""A graph that is run and held to what it was traced with."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.joint.checked_run import DebugInterpreter
from pullback.library import _scoped_library


def test_values_that_are_as_they_were_traced():
    graph = make_fx(lambda x: (x.sin().sum(0), x.topk(1).values), tracing_mode="symbolic")(torch.randn(2, 3))
    x = torch.randn(4, 5)
    got, want = DebugInterpreter(graph).run(x), graph(x)
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


def test_values_that_are_not():
    with _scoped_library("checked_run", "DEF") as lib:
        lib.define("turn(Tensor x) -> Tensor")
        lib.impl("turn", lambda x: x.clone().T, "CPU")
        lib.impl("turn", lambda x: x.clone(), "Meta")
        graph = make_fx(lambda x: torch.ops.checked_run.turn.default(x), tracing_mode="symbolic")(torch.randn(2, 2))
        with pytest.raises(AssertionError, match=r"\(3, 1\) != \(1, 3\)"):
            DebugInterpreter(graph).run(torch.randn(3, 3))
        with pytest.raises(AssertionError, match="3 != 1"):
            DebugInterpreter(graph).run(torch.randn(3, 3).T)
    graph = make_fx(lambda x: x + 1)(torch.ones(2))
    with pytest.raises(AssertionError, match="float32 != torch.float64"):
        DebugInterpreter(graph).run(torch.ones(2, dtype=torch.float64))
