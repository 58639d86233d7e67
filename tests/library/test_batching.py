"""vmap over library operators."""

import pytest

import pullback as torch
from pullback.library import _scoped_library, custom_op, register_vmap


@pytest.fixture
def lib():
    with _scoped_library("t_vmap", "FRAGMENT") as result:
        yield result


ops = torch.ops.t_vmap


def test_the_loop(lib):
    lib.define("f(Tensor x, Tensor[] ys) -> (Tensor, Tensor)")
    lib.impl("f", lambda x, ys: (x + ys[0], x.sum()), "CPU")
    a, b = torch.vmap(lambda x, y: ops.f(x, [y]), in_dims=(0, None))(torch.ones(3, 2), torch.ones(2))
    assert a.tolist() == [[2, 2]] * 3 and b.tolist() == [2, 2, 2]


def test_a_rule(lib):
    lib.define("f(Tensor x, Tensor y, int n=2) -> (Tensor, Tensor)")
    lib.impl("f", lambda x, y, n=2: (x + y, y * n), "CPU")
    seen = []

    @register_vmap("t_vmap::f", lib=lib)
    def rule(info, in_dims, x, y, n=2):
        seen.append((info.batch_size, info.randomness, in_dims))
        return (x + y + 100, y * n), (0, None)

    out = torch.vmap(ops.f, in_dims=(0, None), out_dims=(0, None), randomness="same")(torch.ones(3, 2), torch.ones(2))
    assert out[0].tolist() == [[102, 102]] * 3 and out[1].tolist() == [2, 2]
    assert seen == [(3, "same", (0, None))]


def test_a_rule_that_returns_something_else(lib):
    lib.define("f(Tensor x) -> Tensor")
    register_vmap("t_vmap::f", lambda info, dims, x: x, lib=lib)
    with pytest.raises(RuntimeError, match="Expected the vmap staticmethod to have two returns"):
        torch.vmap(ops.f)(torch.ones(3))
    register_vmap("t_vmap::f", lambda info, dims, x: (x, (0, 1)), lib=lib)
    with pytest.raises(RuntimeError, match="returned an incompatible"):
        torch.vmap(ops.f)(torch.ones(3))


def test_a_rule_and_gradients():
    op = custom_op("t_vmap2::f", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    op.register_autograd(lambda ctx, g: g * 2)
    op.register_vmap(lambda info, dims, x: (op(x), dims[0]))
    grads = torch.vmap(torch.func.grad(lambda x: (op(x) ** 2).sum()))(torch.ones(3, 2))
    assert grads.tolist() == [[8, 8]] * 3


def test_what_the_loop_cannot_do():
    write = custom_op("t_vmap2::w", lambda x: None, mutates_args=("x",), schema="(Tensor(a!) x) -> ()")
    with pytest.raises(RuntimeError, match="Batching rule not implemented for t_vmap2::w; the fallback path"):
        torch.vmap(write)(torch.ones(3, 2))
    number = custom_op("t_vmap2::n", lambda x: 3, mutates_args=(), schema="(Tensor x) -> int")
    with pytest.raises(RuntimeError, match="t_vmap2::n. We could not generate a fallback"):
        torch.vmap(number, out_dims=None)(torch.ones(3, 2))
