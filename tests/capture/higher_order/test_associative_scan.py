"""`associative_scan`: prefixes of an operation, for every length, forward and in reverse."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.autograd import gradcheck
from pullback.capture.higher_order import associative_scan


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_products(length, reverse):
    xs = torch.randn(2, length, dtype=torch.float64)
    got = associative_scan(lambda a, b: a * b, xs, 1, reverse, combine_mode="generic")
    want = xs.flip([1]).cumprod(1).flip([1]) if reverse else xs.cumprod(1)
    assert torch.allclose(got, want)


def test_order_matters_for_matrices():
    xs = torch.randn(6, 2, 2, dtype=torch.float64)
    got = associative_scan(lambda a, b: a @ b, xs, 0, combine_mode="generic")
    want = xs[0]
    for i in range(1, 6):
        want = want @ xs[i]
        assert torch.allclose(got[i], want)


def test_pairs_and_gradients():
    def f(a, b):
        combine = lambda x, y: {"a": x["a"] * y["a"], "b": x["b"] * y["a"] + y["b"]}  # noqa: E731
        return associative_scan(combine, {"a": a, "b": b}, 0, combine_mode="generic")["b"]

    a, b = (torch.randn(5, dtype=torch.float64, requires_grad=True) for _ in range(2))
    total, out = torch.zeros(()), f(a, b)
    for i in range(5):
        total = total * a[i] + b[i]
        assert torch.allclose(out[i], total.double())
    assert gradcheck(f, (a, b))


def test_refusals():
    xs = torch.randn(3)
    with pytest.raises(ValueError, match="need to be on CUDA or XPU"):
        associative_scan(torch.add, xs, 0)
    with pytest.raises(ValueError, match="Combine_mode must either"):
        associative_scan(torch.add, xs, 0, combine_mode="fast")
    with pytest.raises(ValueError, match="Combine_fn must be a callable"):
        associative_scan(1, xs, 0)
