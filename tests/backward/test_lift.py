"""Nodes taken apart: one graph serves the next step, whatever the step's values, and gives what the engine gives."""

import pytest

import pullback as torch
from pullback.backward.build import Backward
from pullback.backward.compiled import enable, reset
from pullback.backward.lift import NodeCall, ObjectCall, Places, lifted
from pullback.backward.scan import Inputs, scan
from pullback.capture.front.compile import counters
from pullback.core.node import edge_of

F = torch.nn.functional


@pytest.fixture(autouse=True)
def fresh():
    reset()
    torch.compiler.reset()
    counters.clear()
    yield
    reset()


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, note=None):
        ctx.save_for_backward(x)
        ctx.scale, ctx.shape, ctx.note = scale, x.shape, note
        return x.sin() * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x.cos() * ctx.scale + 0 * ctx.shape[0], None, None


class Loud(torch.autograd.Function):
    seen: list = []

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Loud.seen.append(1)
        return g * 2


def whole(gm):
    return torch.compile(gm, backend="aot_eager", fullgraph=True, dynamic=True)


def key_of(out):
    return Backward([edge_of(out)], [torch.ones_like(out)], None, False, False, None).key


def gradients(make, steps, compiler=whole):
    """`.grad` of the leaf of each step, by the engine and compiled, and how many graphs were captured."""
    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        grads = []
        for step in steps:
            leaf, out = make(step)
            if compiled:
                with enable(compiler):
                    out.sum().backward()
            else:
                out.sum().backward()
            grads.append(leaf.grad)
        found.append(grads)
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b)
    return counters["compiled_autograd"]["captures"]


def test_custom_function_serves_other_sizes_and_numbers():
    def make(step):
        x = torch.randn(step, requires_grad=True)
        return x, Scaled.apply(x, float(step))

    assert gradients(make, [3, 5, 9]) == 1


def test_key_of_a_custom_function():
    x = torch.randn(3, requires_grad=True)
    assert key_of(Scaled.apply(x, 2.0)) == key_of(Scaled.apply(torch.randn(7, requires_grad=True), 3.0))
    assert key_of(Scaled.apply(x, 2.0)) != key_of(Scaled.apply(x, 2.0, "other"))
    assert key_of(Scaled.apply(x, 2.0)) != key_of(Loud.apply(x))


def test_a_closed_over_number_is_part_of_the_key():
    factor = 2.0

    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g * factor

    x = torch.ones(2, requires_grad=True)
    grads = []
    for factor in (2.0, 5.0):  # noqa: B007 - the functions above read it
        with enable(whole):
            (g,) = torch.autograd.grad(Times.apply(x).sum(), x)
        grads.append(g.tolist())
    assert grads == [[2.0, 2.0], [5.0, 5.0]]


def test_python_that_does_more_than_compute_runs_each_time():
    Loud.seen.clear()
    x = torch.ones(2, requires_grad=True)
    for _ in range(3):
        with enable(whole):
            Loud.apply(x).sum().backward()
    assert Loud.seen == [1, 1, 1] and x.grad.tolist() == [6.0, 6.0]
    call, _ = lifted(scan(Loud.apply(x).grad_fn, Inputs()), Places())
    assert isinstance(call, ObjectCall) and "seen" in call.effect or "Loud" in call.effect


def helper(g):
    return g * 2


class Helped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return helper(g)


def test_a_function_that_the_backward_names_may_be_replaced(monkeypatch):
    x = torch.ones(2, requires_grad=True)
    seen = []
    for replacement in (helper, lambda g: seen.append(1) or g * 5):
        monkeypatch.setitem(globals(), "helper", replacement)
        for _ in range(2):
            with enable(whole):
                (g,) = torch.autograd.grad(Helped.apply(x).sum(), x)
    assert g.tolist() == [5.0, 5.0] and seen == [1, 1]


def test_an_object_on_ctx_is_run_as_it_is():
    call, _ = lifted(scan(Scaled.apply(torch.ones(2, requires_grad=True), 1.0, {1}).grad_fn, Inputs()), Places())
    assert isinstance(call, ObjectCall)
    call, _ = lifted(scan(Scaled.apply(torch.ones(2, requires_grad=True), 1.0, [1]).grad_fn, Inputs()), Places())
    assert isinstance(call, NodeCall)


def test_writes_to_views_serve_other_sizes():
    def make(step):
        x = torch.randn(step, 4, requires_grad=True)
        y = x * 2
        y[1:].mul_(3)
        y[:, 0] = 0
        return x, y.exp()

    assert gradients(make, [4, 6, 7]) == 1


def test_foreach_nodes():
    def make(step):
        x = torch.randn(step, requires_grad=True)
        a, b = torch._foreach_mul([x, x * 2], [x, x])
        return x, a + b

    assert gradients(make, [2, 3]) == 1


def test_functions_compiled_ahead_of_time():
    model = torch.compile(lambda x, w: (x @ w).relu(), backend="aot_eager", dynamic=True)

    def make(step):
        w = torch.randn(3, 2, requires_grad=True)
        return w, model(torch.randn(step, 3), w)

    assert gradients(make, [4, 5, 8]) == 1


def test_custom_operators():
    @torch.library.custom_op("test_lift::half", mutates_args=())
    def half(x: torch.Tensor) -> torch.Tensor:
        return x / 2

    half.register_fake(lambda x: torch.empty_like(x))
    half.register_autograd(lambda ctx, g: g / 2)

    def make(step):
        x = torch.randn(step, requires_grad=True)
        return x, half(x)

    assert gradients(make, [2, 4, 5]) == 1


def test_saved_tensors_are_inputs_and_are_checked():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    out = y.exp()
    out.add_(1)
    with enable(whole), pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_a_freed_graph_says_so():
    x = torch.ones(2, requires_grad=True)
    out = x.exp().sum()
    with enable(whole):
        out.backward()
        with pytest.raises(RuntimeError, match="second time"):
            out.backward()
