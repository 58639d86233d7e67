"""Contexts that are open where a graph ends, and those around a compiled call: what is computed is what they say."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.surface.compiler import graph_break

BACKENDS = ["eager", "aot_eager", "inductor"]
MANAGER = torch.no_grad()


def product_after_a_break(a, b):
    graph_break()
    return torch.mm(a, b)


def nested_with_breaks(a, b):
    out = []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        graph_break()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
            graph_break()
            out.append(torch.mm(a, b))
            with torch.autocast("cpu", dtype=torch.float16):
                graph_break()
                out.append(product_after_a_break(a, b))
        out.append(product_after_a_break(a, b))
    return [*out, torch.mm(a, b)]


def switched_off_inside(a, b):
    with torch.autocast("cpu", enabled=False):
        first = torch.mm(a, b)
    with torch.autocast("cpu", dtype=torch.float16):
        second = torch.mm(a, b)
    return [first, second, torch.mm(a, b)]


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a @ b

    @staticmethod
    def backward(ctx, g):
        return None, None


def custom_function_inside(a, b):
    with torch.autocast("cpu"):
        return [Product.apply(a, b)]


def told_of_it(a, b):
    with torch.autocast("cpu", dtype=torch.float16):
        graph_break()
        inside = torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cpu")
        first = a @ b
    return [first if inside == (torch.float16, True) else a, a @ b]


@pytest.mark.parametrize("around", [None, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("f", [nested_with_breaks, switched_off_inside, custom_function_inside, told_of_it])
@pytest.mark.parametrize("backend", BACKENDS)
def test_autocast(f, backend, around):
    a, b = torch.rand(3, 3), torch.rand(3, 3)
    run = torch.compile(f, backend=backend)
    run(a, b)
    for dtype in (around, None, around):
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
            want, found = f(a, b), run(a, b)
        assert [t.dtype for t in found] == [t.dtype for t in want]
        assert not torch.is_autocast_enabled("cpu")


def left_after_a_break(x):
    with torch.no_grad():
        y = x.sin()
        graph_break()
        y = y.cos()
    return y * x


def left_after_a_break_shared(x):
    with MANAGER:
        y = x.sin()
        graph_break()
        y = y.cos()
    return y * x


@pytest.mark.parametrize("f", [left_after_a_break, left_after_a_break_shared])
@pytest.mark.parametrize("backend", BACKENDS)
def test_recording_goes_on_where_it_was_left(f, backend):
    x = torch.linspace(0.1, 1.0, 3, requires_grad=True)
    run = torch.compile(f, backend=backend)
    (want,) = torch.autograd.grad(f(x).sum(), x)
    for _ in range(3):
        (found,) = torch.autograd.grad(run(x).sum(), x)
        assert torch.allclose(found, want) and torch.is_grad_enabled()
        with torch.no_grad():
            assert not run(x).requires_grad and not torch.is_grad_enabled()
    assert MANAGER.entered == []


def test_leaving_a_context_ends_no_graph():
    graphs = []
    run = torch.compile(left_after_a_break, backend=lambda gm, _: graphs.append(gm) or gm)
    run(torch.ones(2, requires_grad=True))
    assert len(graphs) == 2


def made_on_devices(x):
    with torch.device("meta"):
        out = [torch.ones(2)]
        graph_break()
        with torch.device("cpu"):
            out.append(torch.ones(2))
            graph_break()
            out.append(torch.ones(2))
        out.append(torch.ones(2))
    return [str(t.device) for t in (*out, torch.ones(1))]


@pytest.mark.parametrize("backend", BACKENDS)
def test_default_devices(backend):
    run = torch.compile(made_on_devices, backend=backend)
    for around in ("cpu", "meta", "cpu"):
        with torch.device(around):
            assert run(torch.ones(1)) == ["meta", "cpu", "cpu", "meta", around]
        assert torch.ones(1).device.type == "cpu"
