"""Accounts of what was compiled: functions, graphs, cuts, kernels, and the user's lines on all of them."""

import os

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.backward.compiled import enable
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import Native
from pullback.core import events
from pullback.report import collecting
from pullback.report.advice import is_library
from pullback.report.kernels import kernels_of
from pullback.report.places import line_of
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
    assert [why.partition(": ")[2] for why in gelu.apart] == [
        "it is a call, which writes its whole result before anything reads it"
    ]
    assert graph.memory.native > 0 and max(graph.memory.operators) >= 2 * 4 * 4 * 5
    assert (
        len(graph.memory.kernels) == len(graph.kernels)
        and 0 < max(graph.memory.kernels) <= graph.memory.native + 64 * 4
    )


def test_stages_are_timed_without_those_inside_them(account):
    assert {"capture", "joint", "partition", "backend"} <= account.stages.keys()
    seen = []
    with events.listening(lambda kind, facts: seen.append((facts["name"], facts["seconds"]))), events.stage("outer"):
        with events.stage("inner"):
            sum(range(100_000))
    (inner, inside), (outer, around) = seen
    assert (inner, outer) == ("inner", "outer") and around < inside


def test_nobody_listens_afterwards():
    before = list(events.listeners)
    with collecting():
        assert len(events.listeners) > len(before)
    assert events.listeners == before


def test_a_backward_captured_at_run_time_is_listed():
    x = torch.ones(3, requires_grad=True)
    with collecting() as account, enable(torch.compile(backend="eager")):
        (x * 2).sum().backward()
    assert any(g.kind == "compiled backward" for g in account.graphs)


def test_advice_names_the_lines_that_it_is_for(account):
    (advice,) = account.as_data()["advice"].items()
    assert "Print after" in advice[0] and len(advice[1]) == 1 and "test_collect.py" in advice[1][0]


def test_places_in_libraries_are_told_from_those_in_programs():
    assert is_library("<frozen posixpath>:142 in basename") and is_library(f"{os.__file__}:1 in f")
    assert not is_library(f"{__file__}:1 in f") and not is_library(None)


def test_kernels_of_a_cuda_device_are_listed_with_their_text():
    with FakeTensorMode(), events.listening(lambda kind, facts: None):
        x, w = torch.empty(8, 4, device="cuda"), torch.empty(4, 4, device="cuda")
        product, relu = kernels_of(Native(make_fx(lambda x, w: torch.relu(x @ w + 1))(x, w)))
    assert product.text.startswith("cublasGemm") and product.operations == 2 * 8 * 4 * 4
    assert "__global__" in relu.text and "relu" in relu.nodes[-1] and relu.seconds is None
    assert relu.moved == 2 * 8 * 4 * 4 and "it is a call" in relu.apart[0]


def test_lines_of_our_own_text_are_no_lines_of_the_users():
    graph = torch.fx.symbolic_trace(lambda x: x * 2).graph
    node = next(n for n in graph.nodes if n.op == "call_function")
    node.meta["stack_trace"] = 'File "<eval_with_key>.0", line 5, in forward'
    assert line_of(node) is None
    node.meta["stack_trace"] = f'File "{__file__}", line 7, in f\nFile "<eval_with_key>.0", line 5, in forward'
    assert line_of(node) == (__file__, 7)
