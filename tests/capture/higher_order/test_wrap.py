"""Functions that stand as one call."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.front.backends import lookup_backend
from pullback.capture.higher_order import wrap
from pullback.capture.higher_order.hints import hints_wrapper
from pullback.capture.higher_order.wrap import wrap_with_autocast, wrap_with_set_grad_enabled


def test_calls_under_a_setting():
    x = torch.randn(3, requires_grad=True)
    assert wrap(torch.sin, x).requires_grad
    assert not wrap_with_set_grad_enabled(False, torch.sin, x).requires_grad and torch.is_grad_enabled()
    y = torch.randn(3, 3)
    assert wrap_with_autocast("cpu", torch.bfloat16, True, None, torch.mm, y, y).dtype == torch.bfloat16


def inner(x, y):
    return hints_wrapper(lambda a, b: a.relu() + b, (x, y), {}, hints={"inner": True}).abs()


def hinted(x, y):
    return hints_wrapper(inner, (x + y, y), {}, hints={"outer": 2, "name": "f"})


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_hints_stand_in_the_graph(backend):
    graphs = []

    def noting(graph, examples):
        graphs.append(graph)
        return lookup_backend(backend)(graph, examples)

    x, y = torch.randn(2, 4, requires_grad=True), torch.ones(4)
    out = torch.compile(hinted, backend=noting, fullgraph=True)(x, y)
    torch.testing.assert_close(out, ((x + y).relu() + y).abs())
    (node,) = [n for n in graphs[0].graph.nodes if n.target is hints_wrapper]
    assert node.kwargs == {"hints": {"outer": 2, "name": "f"}}
    out.sum().backward()
    assert x.grad.tolist() == (x + y > 0).float().tolist()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "improper args/kwargs"),
        ({"hints": {"a": (1,)}}, "hints must be a dict containing int, float, bool or str value"),
        ({"args": ([torch.ones(2)],), "hints": {}}, "args must be a tuple of tensors, ints, floats, or bools"),
    ],
)
def test_improper_hints_are_refused(given, words):
    with pytest.raises(RuntimeError, match=words):
        hints_wrapper(torch.sin, **{"args": (torch.ones(2),), "kwargs": {}, **given})
