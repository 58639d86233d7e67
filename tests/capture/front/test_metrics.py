"""Rows about each graph that was captured."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.front import metrics
from pullback.capture.front.compile import RecompileError
from pullback.capture.front.config import config
from pullback.core import events


@pytest.fixture(autouse=True)
def collecting():
    metrics.clear_compilation_metrics()
    yield
    events.listeners.remove(metrics._collector)
    metrics._collector = None
    metrics.set_compilation_metrics_limit(metrics.DEFAULT_COMPILATION_METRICS_LIMIT)
    events.listeners.remove(metrics._collector)
    metrics._collector = None


def test_a_row_for_each_graph() -> None:
    def f(x):
        y = x.cos()
        torch.compiler.graph_break()
        return y.sin() + 1

    torch.compile(f, backend="eager")(torch.ones(2))
    first, second = metrics.get_compilation_metrics()
    assert (first.graph_op_count, second.graph_op_count) == (1, 2) and first.guard_count > 0
    assert [r for r in first.restart_reasons if "User-inserted graph break" in r] and not second.restart_reasons
    assert 0 < first.dynamo_time_before_restart_s <= first.entire_frame_compile_time_s
    assert first.recompile_reason is None and second.dynamo_time_before_restart_s == 0


def test_graphs_that_are_refused() -> None:
    f = torch.compile(lambda x: x.sum() if x.numel() == 4 else x, backend="eager")
    f(torch.ones(4))
    with config.patch(error_on_recompile=True), pytest.raises(RecompileError):
        f(torch.ones(5))
    _, row = metrics.get_compilation_metrics()
    assert row.fail_type == "RecompileError" and row.recompile_reason is not None


def test_errors_of_backends_may_be_suppressed() -> None:
    def broken(graph, examples):
        raise RuntimeError("broken backend")

    f = torch.compile(lambda x: x + 1, backend=broken)
    with config.patch(suppress_errors=True), pytest.warns(RuntimeWarning, match="broken backend"):
        assert f(torch.ones(2)).tolist() == [2, 2]
    (row,) = metrics.get_compilation_metrics()
    assert row.fail_reason == "RuntimeError: broken backend"


def test_the_oldest_rows_go() -> None:
    metrics.set_compilation_metrics_limit(2)
    for f in (torch.sin, torch.cos, torch.tan):
        torch.compile(lambda x, f=f: f(x), backend="eager")(torch.ones(2))
    assert len(metrics.get_compilation_metrics()) == 2
