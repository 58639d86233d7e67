"""How library operators are recorded: the registered backward, an Autograd kernel, or the warning that there is none."""

import warnings

import pytest

import pullback as torch
from pullback.library import _scoped_library, custom_op, register_autograd
from pullback.library.autograd import get_fallback_mode, set_fallback_mode
from pullback.library.dispatcher import AutoDispatchBelowAutograd


@pytest.fixture
def lib():
    with _scoped_library("t_grad", "FRAGMENT") as result:
        yield result


ops = torch.ops.t_grad


def _scaled(lib):
    lib.define("scale(Tensor x, float n=2.0) -> Tensor")
    lib.impl("scale", lambda x, n=2.0: torch.from_numpy(x.detach().numpy() * n), "CPU")

    def setup(ctx, inputs, output):
        assert inputs[1] in (2.0, 3.0)
        ctx.n = inputs[1]

    register_autograd("t_grad::scale", lambda ctx, g: (ops.scale(g, ctx.n), None), setup_context=setup, lib=lib)


def test_a_registered_backward(lib):
    _scaled(lib)
    x = torch.ones(2, requires_grad=True)
    out = ops.scale(x)
    assert out.grad_fn.name() == "GeneratedBackwardFor_t_grad_scale_defaultBackward"
    assert torch.autograd.grad(out.sum(), x)[0].tolist() == [2, 2]
    assert ops.scale(torch.ones(2)).grad_fn is None
    with torch.no_grad():
        assert not ops.scale(x).requires_grad


def test_a_backward_in_operators_differentiates_again(lib):
    _scaled(lib)
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: ops.scale(x, 3.0), (x,))
    assert torch.autograd.gradgradcheck(lambda x: ops.scale(x * x, 3.0), (x,))
    assert torch.func.grad(lambda x: ops.scale(x, 3.0).sum())(x.detach()).tolist() == [3, 3]


def test_saved_tensors_and_needs_input_grad():
    @custom_op("t_grad2::mul", mutates_args=())
    def mul(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x * y

    needed = []

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, g):
        needed.append(ctx.needs_input_grad[:2])
        x, y = ctx.saved_tensors
        return g * y, g * x

    mul.register_autograd(backward, setup_context=setup)
    x, y = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0])
    mul(x, y).backward()
    assert x.grad.tolist() == [3] and needed == [(True, False)]


def test_lists_of_tensors():
    @custom_op("t_grad2::each", mutates_args=())
    def each(xs: list[torch.Tensor], y: torch.Tensor) -> list[torch.Tensor]:
        return [x * y for x in xs]

    def setup(ctx, inputs, output):
        assert type(inputs[0]) is list and type(output) is list
        ctx.save_for_backward(*inputs[0], inputs[1])

    def backward(ctx, gs):
        assert type(gs) is list and ctx.needs_input_grad == ([True, False], True)
        *xs, y = ctx.saved_tensors
        return [g * y for g in gs], sum((g * x).sum() for g, x in zip(gs, xs, strict=True))

    each.register_autograd(backward, setup_context=setup)
    xs, y = [torch.ones(2, requires_grad=True), torch.ones(3)], torch.tensor(3.0, requires_grad=True)
    out = each(xs, y)
    assert type(out) is list
    (out[0].sum() + out[1].sum()).backward()
    assert xs[0].grad.tolist() == [3, 3] and y.grad.item() == 5
    each.register_autograd(lambda ctx, gs: (gs[0], None))
    with pytest.raises(
        RuntimeError, match="Expected the return from backward to be of the same structure as the inputs"
    ):
        each(xs, y)[0].sum().backward()


def test_keyword_only_inputs_and_other_results():
    @custom_op("t_grad2::kw", mutates_args=())
    def kw(x: torch.Tensor, *, n: int = 2) -> tuple[torch.Tensor, int, torch.Tensor]:
        return x * n, n, x.argmax()

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.n = keyword_only_inputs["n"]

    got = []
    kw.register_autograd(lambda ctx, g, n, h: (got.append(n), g * ctx.n)[1], setup_context=setup)
    x = torch.ones(2, requires_grad=True)
    out = kw(x, n=5)
    assert out[1] == 5 and not out[2].requires_grad
    out[0].sum().backward()
    assert x.grad.tolist() == [5, 5] and got == [None]


def test_a_missing_backward_says_so():
    op = custom_op("t_grad2::none", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    out = op(torch.ones(1, requires_grad=True))
    assert out.requires_grad
    with pytest.raises(
        RuntimeError,
        match="Trying to backward through t_grad2.none.default but no autograd formula was registered. Please use register_autograd",
    ):
        out.backward()
    op.register_autograd(lambda ctx, g: (g, g, g))
    with pytest.raises(RuntimeError, match="returned an incorrect number of gradients"):
        op(torch.ones(1, requires_grad=True)).backward()


def test_forward_mode_is_not_dropped():
    op = custom_op("t_grad2::fwd", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1))
        with pytest.raises(NotImplementedError, match="must implement the jvp function"):
            op(dual)


def test_without_an_autograd_kernel_backward_warns(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2, "CPU")
    lib.define("np(Tensor x) -> Tensor")
    lib.impl("np", lambda x: torch.from_numpy(x.detach().numpy() * 2), "CPU")
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="t_grad::f: an autograd kernel was not registered to the Autograd key"):
        ops.f(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    x.grad = None
    out = ops.np(x)
    assert out.grad_fn.name() == "WarnNotImplemented"
    with pytest.warns(UserWarning, match="t_grad::np: an autograd kernel was not registered"):
        out.sum().backward()
    assert x.grad is None


def test_backward_through_what_such_a_call_gave_back_or_wrote_warns(lib):
    lib.define("same(Tensor x) -> Tensor")
    lib.impl("same", lambda x: x, "CPU")
    lib.define("write(Tensor(a!) x) -> Tensor(a!)")
    lib.impl("write", lambda x: x, "CPU")
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="t_grad::same: an autograd kernel was not registered"):
        ops.same(x).sum().backward()
    assert x.grad.tolist() == [1, 1]
    whole = x.clone()
    part = whole[:1]
    ops.write(part)
    for t in (part, whole):
        with pytest.warns(UserWarning, match="t_grad::write: an autograd kernel was not registered"):
            t.sum().backward(retain_graph=True)


def test_a_graph_takes_a_call_that_would_warn(lib):
    lib.define("write_in_graphs(Tensor(a!) x) -> Tensor(a!)")
    lib.impl("write_in_graphs", lambda x: x.add_(5), "CPU")
    lib.impl("write_in_graphs", lambda x: x, "Meta")

    def f(x):
        y = x * 2
        ops.write_in_graphs(y)
        return y * y

    x = torch.ones(2, requires_grad=True)
    torch.compile(f, backend="aot_eager", fullgraph=True)(x).sum().backward()
    assert x.grad.tolist() == [28, 28]


def test_the_fallback_mode(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2, "CPU")
    x = torch.ones(2, requires_grad=True)
    before = get_fallback_mode()
    try:
        set_fallback_mode("nothing")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ops.f(x).sum().backward()
        set_fallback_mode("error")
        with pytest.raises(RuntimeError, match="autograd kernel was not registered"):
            ops.f(x).sum().backward()
        with pytest.raises(RuntimeError, match="Unsupported"):
            set_fallback_mode("other")
    finally:
        set_fallback_mode(before)


def test_an_autograd_kernel(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2, "CPU")

    class Tripled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with AutoDispatchBelowAutograd():
                return ops.f(x)

        @staticmethod
        def backward(ctx, g):
            return g * 3

    lib.impl("f", Tripled.apply, "Autograd")
    x = torch.ones(1, requires_grad=True)
    out = ops.f(x)
    out.backward()
    assert out.item() == 2 and x.grad.item() == 3
    lib.impl("f", lambda x: x.detach(), "AutogradCPU")
    assert not ops.f(x).requires_grad


def test_refused_backwards(lib):
    lib.define("w(Tensor(a!) x) -> ()")
    lib.define("k(*, Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        register_autograd("t_grad::w", lambda ctx: None, lib=lib)
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        register_autograd("t_grad::k", lambda ctx, g: g, lib=lib)
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        register_autograd("t_grad::nope", lambda ctx, g: g, lib=lib)


def test_no_gradients_need_be_returned_for_numbers_at_the_end():
    with torch.library._scoped_library("_numbers_at_the_end", "FRAGMENT") as lib:
        lib.define("foo(Tensor w, int x = 2, *, int y = 3) -> Tensor")
        lib.impl("foo", lambda w, x=2, *, y=3: w * x * y, "CPU")

        def setup_context(ctx, inputs, keyword_only_inputs, output):
            ctx.factor = inputs[1] * keyword_only_inputs["y"]

        backward = lambda ctx, g: g * ctx.factor
        torch.library.register_autograd("_numbers_at_the_end::foo", backward, setup_context=setup_context, lib=lib)
        w = torch.ones(2, requires_grad=True)
        torch.ops._numbers_at_the_end.foo(w, y=5).sum().backward()
        assert w.grad.tolist() == [10, 10]
