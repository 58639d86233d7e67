"""Gradients of compiled functions that are differentiated again: as those of the function, whatever it hides from autograd."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.utils.checkpoint import checkpoint


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -3 * g


class Rounded(torch.autograd.Function):
    """Its gradient is not that of what it computes, and reads argument and result."""

    @staticmethod
    def forward(ctx, x):
        y = x.round()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * x * y


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.twice = x * 2
        return x * ctx.twice

    @staticmethod
    def backward(ctx, g):
        return g * ctx.twice * 2


def unrecorded(w):
    with torch.no_grad():
        s = w.sum()
    return w * w * s


def decorated(w):
    return w / torch.no_grad()(lambda t: t.norm())(w) * w


def switched(w):
    torch.set_grad_enabled(False)
    s = w.cumsum(0) * w
    torch.set_grad_enabled(True)
    return w * w * s


def written(w):
    u = torch.zeros(3)
    with torch.no_grad():
        u.copy_(w * 2)
    return w * w * u


def written_unseen(w):
    v = w * 2
    with torch.no_grad():
        v.mul_(w)
    return v * w * w


def written_detached(w):
    y = w * w
    y.detach().mul_(2)
    return y * 3 * w


def written_through_a_view(w):
    y = w * w
    with torch.no_grad():
        y[1:].mul_(2)
    return y * w


def detached_in_place(w):
    return w.clone().detach_() * w * w


def viewed(w):
    with torch.no_grad():
        y = w[1:]
    return w[:2] * y * w[1:]


def hooked(w):
    y = w * w
    y.register_hook(lambda g: g * 3)
    return y * y


def several(w):
    y = w * 2
    y.data.copy_(w.detach() ** 2)
    return (y * y * w + y[0] * w).sum()


def constant_gradient(w):
    (g,) = torch.autograd.grad((w**3).sum(), w)
    return g * w


def reverses(w):
    return Reversed.apply(w * 1) ** 3


def rounds(w):
    return Rounded.apply(w * 1.3) ** 2


def doubles(w):
    return Doubled.apply(w) * w


# (function, its second slopes along the sum of the first ones, at 1, 2, 3): recorded from PyTorch
CASES = [
    (unrecorded, [12.0, 12.0, 12.0]),
    (decorated, [0.5345224, 0.5345224, 0.5345224]),
    (switched, [2.0, 12.0, 36.0]),
    (written, [4.0, 8.0, 12.0]),
    (written_unseen, [12.0, 32.0, 60.0]),
    (written_detached, [18.0, 36.0, 54.0]),
    (written_through_a_view, [6.0, 12.0, 18.0]),
    (detached_in_place, [2.0, 4.0, 6.0]),
    (viewed, [2.0, 5.0, 3.0]),
    (hooked, [84.0, 336.0, 756.0]),
    (several, [24.0, 50.0, 98.0]),
    (constant_gradient, None),
    (reverses, [54.0, 108.0, 162.0]),
    (rounds, None),
    (doubles, [8.0, 16.0, 24.0]),
]


def second(f, w):
    (g,) = torch.autograd.grad(f(w).sum(), w, create_graph=True)
    return torch.autograd.grad(g.sum(), w, create_graph=True)[0] if g.requires_grad else None


def third(f, w):
    h = second(f, w)
    found = torch.autograd.grad((h * h).sum(), w, allow_unused=True) if h is not None and h.requires_grad else (None,)
    return found[0]


@pytest.mark.parametrize(("f", "recorded"), CASES, ids=[f.__name__ for f, _ in CASES])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_second_and_third_slopes_are_those_of_the_function(f, recorded, backend) -> None:
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    compiled = torch.compile(f, backend=backend)
    for order in (second, third):
        expected, got = order(f, w), order(compiled, w)
        assert (expected is None) == (got is None)
        if expected is not None:
            np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-5)
            if order is second and recorded is not None:
                np.testing.assert_allclose(expected.detach().numpy(), recorded, rtol=1e-5)


@pytest.mark.parametrize("f", [unrecorded, written, written_unseen, viewed], ids=lambda f: f.__name__)
def test_transforms_of_compiled_functions_give_them_too(f) -> None:
    w = torch.tensor([1.0, 2.0, 3.0])
    whole = lambda g: lambda v: g(v).sum()
    for transform in (lambda g: torch.func.jacrev(torch.func.jacrev(g))(w), lambda g: torch.func.hessian(g)(w)):
        expected, got = transform(whole(f)), transform(whole(torch.compile(f, backend="aot_eager")))
        np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), rtol=1e-5)


def test_parameters_whose_norm_is_followed_without_gradients() -> None:
    """The power iteration of a spectral norm moves its vectors at each call; a penalty on gradients differentiates through the last."""
    from pullback.nn.utils.parametrizations import spectral_norm

    found = []
    for compiles in (False, True):
        layer = torch.nn.Linear(3, 2)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([[0.1, 0.7, -0.3], [0.9, -0.2, 0.4]]))
            layer.bias.zero_()
        layer = spectral_norm(layer)
        norm = layer.parametrizations.weight[0]
        norm._u.data.copy_(torch.tensor([0.6, 0.8]))
        norm._v.data.copy_(torch.tensor([0.6, 0.0, 0.8]))
        run, weight = torch.compile(layer) if compiles else layer, layer.parametrizations.weight.original
        (g,) = torch.autograd.grad(run(torch.tensor([[1.0, 2, 3], [0.5, -1, 0.2]])).sum(), weight, create_graph=True)
        (g * torch.tensor([[1.0, 0.2, 0.3], [-1, 0.5, 2]])).sum().backward()
        found.append(weight.grad.numpy())
    expected = [[1.9488642, -0.3141602, 1.7137344], [-6.8383474, 3.1495824, -2.9123378]]  # recorded from PyTorch
    np.testing.assert_allclose(found[0], expected, rtol=1e-4)
    np.testing.assert_allclose(found[1], expected, rtol=1e-4)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_gradients_of_gradients_inside_a_checkpoint_and_hooks_see_no_tracing(backend):
    seen = []

    def pack(t):
        seen.append(type(t) is torch.Tensor)
        return t * 1

    def step_of(f):
        def step(u):
            u = u * 1
            (g,) = torch.autograd.grad(f(u).sum(), u, create_graph=True)
            return g * u

        return step

    def f(v):
        return torch.nn.functional.hardtanh(v, 0) * v.sin()

    def run(step):
        x = torch.linspace(-1, 2, 6, requires_grad=True)
        y = step(x)
        y.sum().backward()
        return y.detach(), x.grad

    want = run(step_of(f))
    compiled = step_of(torch.compile(f, backend=backend))
    for _ in range(2):  # what the first call traced, the second one runs
        torch.testing.assert_close(run(lambda x: checkpoint(compiled, x, use_reentrant=False)), want)
    torch.compiler.reset()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        torch.testing.assert_close(run(step_of(torch.compile(f, backend=backend))), want)
    assert seen and all(seen) and len(seen) < 20
