"""vmap: equals a loop, for one level and for several."""

import numpy as np
import pytest

import pullback as torch
from pullback.func import chunk_vmap, vmap


@pytest.fixture
def x():
    return torch.arange(24, dtype=torch.float64).view(2, 3, 4)


def close(got, wanted):
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12)


def looped(function, x, dim=0, out_dim=0):
    return torch.stack([function(x.select(dim, i)) for i in range(x.shape[dim])], out_dim)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize(
    "function",
    [
        lambda a: a.sum(0),
        lambda a: a.softmax(-1),
        lambda a: a @ a.t(),
        lambda a: a.sort(-1)[0],
        lambda a: a.cumsum(0),
        lambda a: torch.cat([a, a * 2]),
        lambda a: a[1:],
        lambda a: a.transpose(0, 1).reshape(-1),
        lambda a: torch.where(a > 3, a, a * 0),
        lambda a: a.amax(),
    ],
)
def test_equals_a_loop(function, dim, x):
    close(vmap(function, in_dims=dim)(x), looped(function, x, dim))


def test_nests(x):
    got = vmap(vmap(lambda a: a * a.sum()))(x)
    close(got, x * x.sum(-1, keepdim=True))


def test_out_dims_and_unbatched_results(x):
    a, b = vmap(lambda row: (row.t(), torch.ones(2)), out_dims=(2, 0))(x)
    assert tuple(a.shape) == (4, 3, 2) and tuple(b.shape) == (2, 2)


def test_in_place_writes_reach_the_batch(x):
    def function(a):
        a = a.clone()
        a.mul_(2)
        a[0] += 1
        return a

    close(vmap(function)(x), looped(function, x))


def test_in_place_write_of_a_batched_tensor_into_an_unbatched_one_is_refused(x):
    target = torch.zeros(3, 4, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="vmapped over but `self` not being vmapped"):
        vmap(lambda a: target.add_(a))(x)
    assert not target.any()


def test_randomness(x):
    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(lambda a: torch.randn(3))(x)
    same = vmap(lambda a: torch.randn(3), randomness="same")(x)
    different = vmap(lambda a: torch.randn(3) + a.sum() * 0, randomness="different")(x)
    assert torch.equal(same[0], same[1])
    assert not torch.equal(different[0], different[1])


def test_chunks(x):
    wanted = vmap(lambda a: a * 2, in_dims=2)(x)
    close(vmap(lambda a: a * 2, in_dims=2, chunk_size=3)(x), wanted)
    close(chunk_vmap(lambda a: a * 2, in_dims=2, chunks=2)(x), wanted)


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda: vmap(lambda a, b: a + b)(torch.ones(3), torch.ones(4)),
            "Expected all tensors to have the same size in the mapped dimension",
        ),
        (lambda: vmap(lambda: 0)(), "got no inputs"),
        (lambda: vmap(lambda a: a)(3), "We cannot vmap over non-Tensor arguments"),
        (lambda: vmap(lambda a: a, in_dims=3)(torch.ones(2)), "so expected in_dim to satisfy"),
        (lambda: vmap(lambda a: 3)(torch.ones(2)), "must only return Tensors"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_gradients_flow_through(x):
    leaf = x.clone().requires_grad_()
    vmap(lambda a: (a * a).sum())(leaf).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), 2 * x.numpy())
