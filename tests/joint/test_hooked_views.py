"""Results of compiled functions that are views of arguments and have a backward of their own: hooks, custom functions."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.core.tree import tree_leaves

BACKENDS = ("aot_eager", "inductor")


def doubled(view):
    view.register_hook(lambda g: g * 2)
    return view


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return g * 3


FUNCTIONS = {
    "part": lambda x: doubled(x[1:]),
    "whole": lambda x: doubled(x.view(3)),
    "part of a part": lambda x: doubled(x[1:])[1:],
    "beside its base": lambda x: (y := x * 2, doubled(y[1:])),
    "custom": lambda x: Tripled.apply(x),
}


def gradient(f) -> list:
    x = torch.ones(3, requires_grad=True)
    torch.cat([t.reshape(-1) for t in tree_leaves(f(x))]).sum().backward()
    return x.grad.tolist()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hooks_on_views_run(name: str, backend: str) -> None:
    f = FUNCTIONS[name]
    assert gradient(torch.compile(f, backend=backend)) == gradient(f)


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_that_the_argument_would_not_hear_of_are_refused(backend: str) -> None:
    for name in ("part", "custom"):
        x = torch.ones(3, requires_grad=True) * 1
        out = torch.compile(FUNCTIONS[name], backend=backend)(x)
        assert out._is_view() and out.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        with pytest.raises(RuntimeError, match="view of an argument and is being modified inplace"):
            out.mul_(3)
        assert x.tolist() == [1, 1, 1]
