"""An error in a lowering rule never vanishes; what a rule refuses runs as an operator, and says why."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.front.config import native as settings
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import compile_graph, lower
from pullback.ops.lowering import NotLowerable
from pullback.ops.system.operator import find, registry


def broken(b, x, *rest):
    b.fill(b.result(), b.raw(x))
    return nothing_of_this_name  # noqa: F821


@pytest.fixture
def broken_sum(monkeypatch):
    op = find("sum.default")
    monkeypatch.setattr(op, "lower", broken)
    monkeypatch.setattr(lower, "_warned", set())
    return op


def compiled(f, *args):
    return compile_graph(make_fx(f, tracing_mode="fake")(*args))


def test_an_error_in_a_rule_is_an_error_in_tests(broken_sum):
    with pytest.raises(NameError, match="nothing_of_this_name") as caught:
        compiled(lambda x: (x * 2).sum(), torch.ones(3))
    assert "lowering rule of aten.sum.default" in caught.value.__notes__[0]


def test_users_get_one_warning_that_names_the_operator(broken_sum, monkeypatch):
    monkeypatch.setattr(settings, "raise_rule_errors", False)
    with pytest.warns(RuntimeWarning, match="rule of aten.sum.default failed.*NameError") as seen:
        result = compiled(lambda x: (x * 2).sum() + (x * 3).sum(), torch.ones(3))
        again = compiled(lambda x: x.exp().sum(), torch.zeros(3))
    assert len([w for w in seen if "lowering rule" in str(w.message)]) == 1
    assert result(torch.ones(3)) == 15 and again(torch.zeros(3)) == 3
    assert result.fallbacks == ["aten.sum.default"] * 2
    assert "NameError" in result.reasons["sum_1"]


def test_what_a_rule_refuses_is_recorded_and_leaves_nothing_behind(monkeypatch):
    def refuses(b, x, *rest):
        b.fill(b.result(), b.number(7.0, x.dtype))
        return NotLowerable("not today")

    monkeypatch.setattr(find("sum.default"), "lower", refuses)
    result = compiled(lambda x: (x * 2).sum() + 1, torch.ones(3))
    assert result(torch.ones(3)) == 7 and result.reasons == {"sum_1": "not today"}
    assert not any("= 7" in k for k in result.kernels)


def test_a_rule_is_a_function():
    """Of the builder and the arguments: there is no name to look up, so none that could be missing."""
    named = [k for k, op in registry.items() if op.lower is not None and not callable(op.lower)]
    assert not named
