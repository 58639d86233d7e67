"""`trace_wrapped`: a function that tracing keeps whole."""

from __future__ import annotations

import pullback as torch
from pullback.capture.higher_order import trace_wrapped
from pullback.capture.trace.make_fx import make_fx


def test_a_graph_calls_the_function_when_it_runs():
    calls = []

    def square(x):
        calls.append(x)
        return x * x

    x = torch.tensor([0.5, 3.0], requires_grad=True)
    graph = make_fx(lambda g: trace_wrapped(g, fn=square))(x)
    assert not calls
    assert torch.equal(graph(x), torch.tensor([0.25, 9.0])) and len(calls) == 1
    assert "trace_wrapped = torch__dynamo__trace_wrapped_higher_order_op_self_invoke(g_1)" in graph.code


def test_a_call_stays_though_nothing_uses_it():
    calls = []
    graph = make_fx(lambda g: (trace_wrapped(g, fn=lambda x: calls.append(1) or x), g * 2)[1])(torch.ones(2))
    graph(torch.ones(2))
    assert calls == [1]


def test_a_captured_program_contains_it():
    run = torch.compile(lambda x: trace_wrapped(x, fn=lambda x: x * x) + 1, backend="eager")
    assert torch.equal(run(torch.tensor([2.0])), torch.tensor([5.0]))


def test_as_a_hook():
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    x.register_hook(lambda g: trace_wrapped(g, fn=lambda g: g * g))
    (x * 3).sum().backward()
    assert torch.equal(x.grad, torch.full((2,), 9.0))
