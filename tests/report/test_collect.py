"""Accounts of what was compiled: functions, graphs, cuts, kernels, and the user's lines on all of them."""

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.backward.compiled import enable
from pullback.core import events
from pullback.report import collecting
from pullback.runtime.build import NoCompiler, compiler


def is_built() -> bool:
    try:
        return bool(compiler())
    except NoCompiler:
        return False


def program(x, w):
    h = F.gelu(x @ w)
    print("a break")
    return h.sum()


@pytest.fixture(scope="module")
def account():
    torch.manual_seed(0)
    compiled = torch.compile(program, backend="inductor")
    with collecting() as account:
        for n in (4, 7):
            compiled(torch.randn(n, 3), torch.randn(3, 5, requires_grad=True)).backward()
    return account


def test_functions_have_their_source_graphs_and_breaks(account):
    (function,) = account.functions
    assert function.name == "program" and function.source[0].startswith("def program")
    assert len(function.graphs) == 4 and len(function.recompiles) >= 1
    assert any("print" in reason and where and "test_collect.py" in where for reason, where in function.breaks)
    assert any("x" in guard for guard in function.guards)


def test_nodes_of_all_graphs_name_the_users_lines(account):
    first = program.__code__.co_firstlineno
    captured = [g for g in account.graphs if g.kind == "captured"]
    assert {n.line for g in captured for n in g.nodes if n.op == "call_function"} == {
        (__file__, first + 1), (__file__, first + 3)
    }  # fmt: skip
    joint = next(g for g in account.graphs if g.kind == "joint")
    assert all(n.line and n.line[0] == __file__ for n in joint.nodes if n.op == "call_function")
    assert joint.notes[0].startswith("kept for the backward") and joint.notes[-1].startswith("computed again")


@pytest.mark.skipif(not is_built(), reason="there is no C compiler")
def test_kernels_have_text_bytes_operations_and_time(account):
    graph = next(g for g in account.graphs if g.kind == "forward")
    product, gelu = graph.kernels
    assert product.operations == 2 * 4 * 3 * 5 and product.moved == 4 * (4 * 3 + 3 * 5 + 4 * 5)
    assert "gelu" in gelu.nodes and "for (i64" in gelu.text and gelu.lines[0][0] == __file__
    assert all(k.seconds is not None and k.seconds >= 0 and k.share > 0 for k in graph.kernels)
    assert graph.memory.native > 0 and max(graph.memory.operators) >= 2 * 4 * 4 * 5


def test_stages_are_timed_without_those_inside_them(account):
    assert {"capture", "joint", "partition", "backend"} <= account.stages.keys()
    seen = []
    with events.listening(lambda kind, facts: seen.append((facts["name"], facts["seconds"]))), events.stage("outer"):
        with events.stage("inner"):
            sum(range(100_000))
    (inner, inside), (outer, around) = seen
    assert (inner, outer) == ("inner", "outer") and around < inside


def test_nobody_listens_afterwards(account):
    assert not events.listeners


def test_a_backward_captured_at_run_time_is_listed():
    x = torch.ones(3, requires_grad=True)
    with collecting() as account, enable(torch.compile(backend="eager")):
        (x * 2).sum().backward()
    assert any(g.kind == "compiled backward" for g in account.graphs)
