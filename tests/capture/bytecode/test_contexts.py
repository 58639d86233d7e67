"""Contexts that are open where a graph ends, and those around a compiled call: what is computed is what they say."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.nn.attention import SDPBackend, _cur_sdpa_kernel_backends, sdpa_kernel
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


def deterministic_for_a_while(x):
    torch.use_deterministic_algorithms(True)
    y = x * 2
    inside = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    return y + inside, torch.are_deterministic_algorithms_enabled()


def deterministic_from_here(x):
    torch.use_deterministic_algorithms(True, warn_only=True)
    return x + 1, torch.is_deterministic_algorithms_warn_only_enabled()


def without_saved_tensor_hooks(x):
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        y = x.exp()
        try:
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                y = y * 2
        except RuntimeError as error:
            return y, str(error)
    return y, None


def written_out_attention(x):
    with sdpa_kernel([SDPBackend.MATH]):
        x = x.reshape(1, 1, 2, 2)
        return torch.nn.functional.scaled_dot_product_attention(x, x, x), _cur_sdpa_kernel_backends()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f", [deterministic_for_a_while, deterministic_from_here, without_saved_tensor_hooks, written_out_attention]
)
def test_settings_that_a_graph_changes(f, backend) -> None:
    def observed(call):
        try:
            value, told = call(torch.arange(4.0))
            return (
                [round(v, 4) for v in value.flatten().tolist()],
                told,
                torch.get_deterministic_debug_mode(),
                _cur_sdpa_kernel_backends(),
            )
        finally:
            torch.use_deterministic_algorithms(False)

    want, compiled = observed(f), torch.compile(f, backend=backend, fullgraph=f is not without_saved_tensor_hooks)
    assert observed(compiled) == want
    assert observed(compiled) == want
    assert torch.get_deterministic_debug_mode() == 0


def test_a_graph_runs_with_the_settings_of_the_program() -> None:
    seen = []

    @torch.compiler.allow_in_graph
    def look(x):
        seen.append(torch.are_deterministic_algorithms_enabled())
        return x + 1

    def f(x):
        x = look(x)
        torch.use_deterministic_algorithms(True)
        x = look(x)
        torch.use_deterministic_algorithms(False)
        return look(x)

    compiled = torch.compile(f, backend="eager", fullgraph=True)
    compiled(torch.ones(2))
    seen.clear()
    compiled(torch.ones(2))
    assert seen == [False, True, False]


def test_a_break_inside_of_changed_settings() -> None:
    def f(x):
        with sdpa_kernel([SDPBackend.MATH]):
            y = x * 2
            graph_break()
            return y + len(_cur_sdpa_kernel_backends())

    compiled = torch.compile(f)
    for _ in range(2):
        assert compiled(torch.ones(2)).tolist() == [3.0, 3.0]
        assert len(_cur_sdpa_kernel_backends()) > 1


def test_a_break_where_hooks_of_saved_tensors_are_disabled() -> None:
    graphs = []

    def f(x):
        with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
            y = x + 1
            graph_break()
            return y * 2

    compiled = torch.compile(f, backend=lambda gm, _: graphs.append(gm) or gm)
    assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]
    assert len(graphs) == 2


class Noted:
    """A context that says how it was left."""

    def __init__(self):
        self.seen: list = []

    def __enter__(self):
        self.seen.append("entered")

    def __exit__(self, kind, error, traceback):
        self.seen.append(kind)


def _hooks():
    return torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("context", [torch.inference_mode, _hooks, torch.no_grad])
def test_contexts_are_left_where_a_graph_within_them_raises(context, backend) -> None:
    noted = Noted()

    def function(v):
        with noted:
            graph_break()
            with context():
                graph_break()
                return torch.linalg.inv(v.sin())

    compiled = torch.compile(function, backend=backend)
    for _ in range(2):
        with pytest.raises(torch.linalg.LinAlgError):
            compiled(torch.zeros(2, 2, requires_grad=True))
        assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        x = torch.tensor([3.0], requires_grad=True)
        (x * x).sum().backward()  # what is saved goes through no hooks
        assert x.grad.item() == 6 and not x.grad.is_inference()
    assert noted.seen == ["entered", torch.linalg.LinAlgError] * 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_levels_of_forward_mode_are_opened_and_closed_in_compiled_functions(backend) -> None:
    forward = torch.autograd.forward_ad

    def tangent(v, function):
        with forward.dual_level():
            return forward.unpack_dual(function(forward.make_dual(v, torch.ones_like(v)))).tangent

    compiled = torch.compile(tangent, backend=backend)
    x = torch.tensor([0.5, 2.0])
    for _ in range(2):
        torch.testing.assert_close(compiled(x, torch.sin), x.cos())
        with pytest.raises(RuntimeError, match="shape"):
            compiled(x, lambda v: v.reshape(7))
        with forward.dual_level():  # none is open
            pass
