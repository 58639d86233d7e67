"""Results of compiled functions that get no gradient: nothing is computed for them, as in eager mode."""

from __future__ import annotations

import contextlib

import pytest

import pullback as torch
from pullback.backward.switch import enable

BACKENDS = ["eager", "aot_eager", "inductor"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("compiled_backward", [False, True])
def test_an_unused_result_makes_no_nan(backend, compiled_backward):
    x = torch.zeros(3, requires_grad=True)
    _, z = torch.compile(lambda x: (x.sqrt(), x * 2), backend=backend)(x)
    if compiled_backward:
        with enable(lambda gm: torch.compile(gm, backend=backend)):
            z.sum().backward()
    else:
        z.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_dead_value_at_a_graph_break_makes_no_nan(backend, capsys):
    def f(x):
        y = x.sqrt()  # noqa: F841 - nothing reads it after the break
        z = x * 2
        print("between")
        return z * 3

    x = torch.zeros(3, requires_grad=True)
    torch.compile(f, backend=backend)(x).sum().backward()
    assert x.grad.tolist() == [6.0] * 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_input_that_no_gradient_reaches_has_none(backend):
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    a, b = torch.compile(lambda x, w: (x * 2, x * w), backend=backend)(x, w)
    a.sum().backward(retain_graph=True)
    assert x.grad.tolist() == [2.0] * 2 and w.grad is None
    b.sum().backward()
    assert x.grad.tolist() == [3.0] * 2 and w.grad.tolist() == [1.0] * 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_second_derivatives_of_one_result(backend):
    x = torch.tensor([0.0, 2.0], requires_grad=True)
    _, z = torch.compile(lambda x: (x.sqrt(), x**3), backend=backend)(x)
    (first,) = torch.autograd.grad(z.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert first.tolist() == [0.0, 12.0] and second.tolist() == [0.0, 12.0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_joins_two_results_gets_zeros(backend):
    def f(x):
        a, b = torch.cat([x * 2, x * 3]).split(2)
        return a.exp(), b.sqrt()

    want, have = (torch.zeros(2, requires_grad=True) for _ in range(2))
    f(want)[0].sum().backward()
    torch.compile(f, backend=backend)(have)[0].sum().backward()
    assert have.grad.tolist() == want.grad.tolist() == [2.0, 2.0]


class Constant(torch.autograd.Function):
    """Its gradient does not depend on that of its result."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return x.cos()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_gradient_that_depends_on_no_tangent_stays(backend):
    f = torch.compile(lambda x: (Constant.apply(x), x * 3), backend=backend)
    x = torch.zeros(2, requires_grad=True)
    f(x)[0].sum().backward()
    assert x.grad.tolist() == [1.0] * 2


class Told(torch.autograd.Function):
    """Says when its backward runs."""

    @staticmethod
    def forward(ctx, x, log):
        ctx.log = log
        return x * 2

    @staticmethod
    def backward(ctx, g):
        ctx.log.append(g.tolist())
        return g * 2, None


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("compiled_backward", [False, True])
def test_a_backward_that_no_gradient_leads_to_does_not_run(backend, compiled_backward):
    log = []
    x = torch.ones(2, requires_grad=True)
    a = Told.apply(x, log)
    one, other = torch.compile(lambda a, x: (a.sin(), x * 3), backend=backend)(a, x)
    around = enable(lambda gm: torch.compile(gm, backend=backend)) if compiled_backward else contextlib.nullcontext()
    with around:
        other.sum().backward(retain_graph=True)
        assert log == [] and x.grad.tolist() == [3.0] * 2
        (one * 0 + other).sum().backward()
    assert log == [[0.0, 0.0]] and x.grad.tolist() == [6.0] * 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_node_reached_past_a_compiled_function_waits_for_both(backend):
    """Two ways lead to `a`; the compiled function has a gradient for one of its results only."""
    log = []
    x = torch.ones(2, requires_grad=True)
    a = Told.apply(x, log)
    f = torch.compile(lambda a, x: (a.sin(), x * 3), backend=backend)
    _, other = f(a, x)
    (other.sum() + (a * 5).sum()).backward()
    assert log == [[5.0, 5.0]] and x.grad.tolist() == [13.0] * 2
