"""Integers that differ between the examples of a `vmap` select as the numbers do, in reads and in writes."""

import pytest

import pullback as torch
from pullback.func import vmap

TABLE, CUBES = torch.arange(60.0).view(20, 3), torch.arange(120.0).view(2, 3, 4, 5)
FEW, ALSO = torch.tensor([0, 2]), torch.tensor([3, 1])


@pytest.mark.parametrize(
    "index",
    [
        lambda k, j: k,
        lambda k, j: -k,
        lambda k, j: (k, j),
        lambda k, j: (k, slice(None), j),
        lambda k, j: (slice(1, 3), j),
        lambda k, j: (Ellipsis, j),
        lambda k, j: (None, k, Ellipsis, None),
        lambda k, j: (k, [0, 2, 1]),
        lambda k, j: (k, slice(None), [0, 2, 1]),
        lambda k, j: (slice(None), k, [0, 2, 1]),
        lambda k, j: ([1, 0], j, slice(0, 2)),
        lambda k, j: (k, True),
        lambda k, j: (k.int(), 1, j.short()),
    ],
)
def test_an_integer_of_each_example_selects_as_a_number_does(index):
    def read(x, k, j):
        return x[index(k, j)]

    def write(x, k, j):
        x = x.clone()
        x[index(k, j)] = x[index(k, j)] * 2 + k
        x[index(k, j)] += 1
        return x

    for f in (read, write):
        want = torch.stack([f(x, k, j) for x, k, j in zip(CUBES, FEW, ALSO, strict=True)])
        assert torch.equal(vmap(f)(CUBES, FEW, ALSO), want)
        one = torch.stack([f(CUBES[0], k, j) for k, j in zip(FEW, ALSO, strict=True)])
        assert f is write or torch.equal(vmap(f, (None, 0, 0))(CUBES[0], FEW, ALSO), one)
        square = torch.stack([torch.stack([f(CUBES[0], k, j) for j in ALSO]) for k in FEW])
        nested = vmap(vmap(f, (0, None, 0)), (0, 0, None))(CUBES[0].expand(2, 2, 3, 4, 5), FEW, ALSO)
        assert torch.equal(nested, square)


def test_a_row_that_an_example_picks_gets_its_gradient():
    picked = torch.func.grad(lambda t: vmap(lambda k: t[k])(FEW).sum())(TABLE)
    assert picked.sum(1).tolist() == [3.0, 0.0, 3.0] + [0.0] * 17
    with pytest.raises(IndexError, match="out of bounds"):
        vmap(lambda k: TABLE[k + 19])(FEW)
    with pytest.raises(RuntimeError, match="vmapped over but `self` not being vmapped"):
        vmap(lambda k: TABLE.clone().__setitem__(k, 1.0))(FEW)
