"""Custom functions: gradients, contexts, outputs of every kind, in-place work, forward mode, vmap, refusals."""

import gc
import warnings
import weakref

import pytest

import pullback as torch
import pullback.autograd.forward_ad as forward_ad
from pullback.autograd import Function, gradcheck, gradgradcheck
from pullback.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * ctx.scale * x**2, None


class Sine(Function):
    """In the form with `setup_context`, with every rule stated."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()

    @staticmethod
    def jvp(ctx, t):
        return t * ctx.saved_tensors[0].cos()


def leaf(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_gradients_of_both_forms():
    assert gradcheck(lambda x: Cube.apply(x, 2.0), leaf(3)) and gradgradcheck(lambda x: Cube.apply(x, 2.0), leaf(3))
    assert gradcheck(Sine.apply, leaf(3), check_forward_ad=True, check_batched_grad=True)
    out = Cube.apply(leaf(2))
    assert out.grad_fn.name() == "CubeBackward" and out.grad_fn.needs_input_grad == (True,)
    assert [type(n).__name__ for n, _ in out.grad_fn.next_functions] == ["AccumulateGrad"]


def test_saved_tensors_are_freed_with_the_graph():
    x = leaf(2)
    out = Cube.apply(x)
    out.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        out.sum().backward()
    y = x * 1
    out = Cube.apply(y)
    with torch.no_grad():
        y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_nothing_outlives_the_outputs():
    def scope():
        out = Cube.apply(leaf(2))
        out.grad_fn.note = Note()
        return weakref.ref(out.grad_fn.note)

    class Note:
        pass

    gc.disable()
    try:
        assert scope()() is None
    finally:
        gc.enable()


class Kinds(Function):
    """One output of each kind."""

    @staticmethod
    def forward(ctx, x, y, word):
        fixed = x * 0 + 1
        ctx.mark_non_differentiable(fixed)
        return x * 2, y, word, None, fixed, x.argmax()

    @staticmethod
    def backward(ctx, *gs):
        Kinds.seen = gs
        return gs[0] * 2, gs[1], None


def test_outputs_of_every_kind():
    x, y = leaf(3), leaf(3)
    doubled, same, word, nothing, fixed, index = Kinds.apply(x, y, "w")
    assert word == "w" and nothing is None and same is not y and torch.equal(same, y)
    assert doubled.requires_grad and not fixed.requires_grad and index.dtype == torch.int64
    doubled.sum().backward()
    assert [None if g is None else tuple(g.shape) for g in Kinds.seen] == [(3,), (3,), None, None, (3,), ()]
    assert torch.equal(y.grad, torch.zeros(3)) and torch.equal(x.grad, 2 * torch.ones(3))


def test_gradients_that_nobody_sent():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            assert b is None
            return a

    x = leaf(2)
    Two.apply(x)[0].sum().backward()
    assert torch.equal(x.grad, torch.ones(2))


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda g: (g, g), "incorrect number of gradients (expected 1, got 2)"),
        (lambda g: 3.0, "expected Variable or None (got float)"),
        (lambda g: g.new_ones(7), "invalid gradient at index 0 - got [7] but expected shape compatible with [2]"),
    ],
)
def test_wrong_gradients(result, words):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return result(g)

    with pytest.raises(RuntimeError) as caught:
        Wrong.apply(leaf(2)).sum().backward()
    assert words in str(caught.value)


def test_missing_and_contradictory_methods():
    class Empty(Function):
        pass

    class OnlyForward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    class Both(OnlyForward):
        @staticmethod
        def backward(ctx, g):
            return g

        vjp = backward

    with pytest.raises(NotImplementedError, match="must implement the forward"):
        Empty.apply(leaf(1))
    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp"):
        OnlyForward.apply(leaf(1)).sum().backward()
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        Both.apply(leaf(1)).sum().backward()
    with warnings.catch_warnings(record=True), pytest.raises(RuntimeError, match="Legacy autograd function"):
        Empty()(leaf(1))


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_in_place():
    x = leaf(4)
    y = x.clone()
    assert Doubled.apply(y) is y
    y.sum().backward()
    assert torch.equal(x.grad, 2 * torch.ones(4))
    assert gradcheck(lambda x: Doubled.apply(x.clone()), leaf(3))
    assert gradcheck(lambda x: Doubled.apply(x.clone()[1:]).sum() * x, leaf(3))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place"):
        Doubled.apply(leaf(2))

    class Forgets(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 2

    with pytest.raises(RuntimeError, match="were not returned as output"):
        Forgets.apply(leaf(2) * 1)


def test_views_of_inputs_are_not_written():
    class First(Function):
        @staticmethod
        def forward(ctx, x):
            return x[0]

        @staticmethod
        def backward(ctx, g):
            return torch.stack((g, g * 0))

    assert gradcheck(First.apply, leaf(2, 3))
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        First.apply(leaf(2, 3) * 1).add_(1)


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not torch.is_grad_enabled()
            return 2 * g * ctx.saved_tensors[0]

    x = leaf(2)
    (g,) = torch.autograd.grad(Once.apply(x).sum() * x.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        g.sum().backward()


def test_forward_mode_needs_a_jvp():
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(leaf(2), torch.ones(2, dtype=torch.float64))
        with pytest.raises(NotImplementedError, match="must implement the jvp function"):
            Cube.apply(dual)


def test_transforms():
    x = leaf(4).detach()
    assert torch.allclose(torch.func.vmap(torch.func.grad(Sine.apply))(x), x.cos())
    assert torch.allclose(torch.func.grad(lambda x: torch.func.vmap(Sine.apply)(x).sum())(x), x.cos())
    assert torch.allclose(torch.func.jvp(Sine.apply, (x,), (torch.ones_like(x),))[1], x.cos())
    with pytest.raises(RuntimeError, match="must override the setup_context staticmethod"):
        torch.func.vmap(Cube.apply)(x)


def test_own_vmap_rule():
    class Scaled(Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor, None

        @staticmethod
        def vmap(info, in_dims, x, factor):
            assert info.batch_size == 3 and in_dims == (0, None)
            return Scaled.apply(x, factor), 0

    assert torch.equal(torch.func.vmap(lambda x: Scaled.apply(x, 2.0))(torch.ones(3, 2)), 2 * torch.ones(3, 2))


def test_words_for_writes_to_what_a_function_gave():
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.ones(2, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="Output 0 of SameBackward is a view and is being modified inplace"):
        Same.apply(x).add_(1)
    y = Same.apply(x)
    x.mul_(2)
    with pytest.raises(
        RuntimeError, match="Output 0 of SameBackward is a view and its base or another view of its base has been"
    ):
        y.sum().backward()


def test_forward_mode_is_off_inside_forward():
    said = []

    class Asks(Function):
        @staticmethod
        def forward(ctx, x):
            said.append(forward_ad._is_fwd_grad_enabled())
            with forward_ad.dual_level():
                said.append(forward_ad._is_fwd_grad_enabled())
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    Asks.apply(torch.ones(2, requires_grad=True))
    assert said == [False, True] and forward_ad._is_fwd_grad_enabled()
    with forward_ad._set_fwd_grad_enabled(False):
        assert not forward_ad._is_fwd_grad_enabled()
    assert forward_ad._is_fwd_grad_enabled()
