"""Products that threads share give what one call of BLAS gives, for matrices that lie in any way; and nothing but the sizes decides how they are cut."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.core.threads import set_thread_count, thread_count
from pullback.runtime import network

from .test_network import KINDS, agree, both, numbers

pytestmark = pytest.mark.skipif(network.kernels() is None, reason="the extension is not built, or there is no BLAS")


@pytest.fixture(autouse=True)
def threads():
    before = thread_count()
    set_thread_count(2)
    yield
    set_thread_count(before)


def laid(a: np.ndarray, how: str) -> np.ndarray:
    """The same numbers in another order of memory."""
    if how == "turned":
        return np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    if how == "within rows":
        room = np.zeros((*a.shape[:-1], a.shape[-1] + 3), a.dtype)
        room[..., 1:-2] = a
        return room[..., 1:-2]
    return a


SIZES = [(512, 128, 96), (96, 128, 512), (33, 300, 65), (1, 600, 700), (700, 600, 1), (64, 64, 64), (5, 1, 7)]
ORDERS = ["by rows", "turned", "within rows"]


@KINDS
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("left", ORDERS)
@pytest.mark.parametrize("right", ORDERS)
def test_matrices(monkeypatch, kind, size, left, right):
    m, k, n = size
    a, b = laid(numbers(m, k, kind=kind), left), laid(numbers(k, n, kind=kind, seed=1), right)
    bias = numbers(2 * n, kind=kind, seed=2)
    for added in (None, bias[:n], bias[::2], bias[n - 1 :: -1]):
        agree(*both(monkeypatch, lambda: network.product(a, b, added)))  # noqa: B023 - called at once


@KINDS
def test_batches(monkeypatch, kind):
    a, b = numbers(7, 40, 60, kind=kind), laid(numbers(7, 60, 50, kind=kind, seed=1), "turned")
    agree(*both(monkeypatch, lambda: network.product(a, b)))
    agree(*both(monkeypatch, lambda: network.product(np.broadcast_to(a[:1], a.shape), b[::-1])))


@pytest.mark.parametrize(
    "a", [numbers(90, 90)[::-1], numbers(90, 180)[:, ::2], numbers(0, 90), np.ones((90, 90), complex)]
)
def test_what_is_left_to_the_array_library(a):
    """Rows that BLAS cannot read where they lie, none, complex numbers."""
    b = numbers(90, 60).astype(a.dtype)
    np.testing.assert_allclose(network.product(a, b), np.ascontiguousarray(a) @ b, rtol=1e-4, atol=1e-4)


def test_what_is_not_finite():
    a, b = numbers(128, 128), numbers(128, 64, seed=1)
    a[3, 5], a[70, 1], b[2, 7] = np.nan, np.inf, -np.inf
    ours, theirs = network.product(a, b), a @ b
    assert (np.isnan(ours) == np.isnan(theirs)).all() and (np.isinf(ours) == np.isinf(theirs)).all()


def test_results_are_the_same_from_run_to_run():
    a, b, bias = numbers(200, 300), numbers(300, 170, seed=1), numbers(170, seed=2)
    first = network.product(a, b, bias)
    assert all((network.product(a, b, bias) == first).all() for _ in range(20))


def test_without_dependence_on_threads(monkeypatch):
    """Under deterministic algorithms a product is one call of BLAS, whatever the number of threads."""
    a, b = torch.randn(300, 200), torch.randn(200, 100)
    monkeypatch.setattr(network, "kernels", lambda: pytest.fail("the product was shared"))
    torch.use_deterministic_algorithms(True)
    try:
        together = a @ b
        set_thread_count(1)
        assert torch.equal(together, a @ b)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("lead", [(400,), (4, 100)])
def test_operators(lead):
    """Large layers, forward and backward."""
    x, w, bias = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((*lead, 150), (130, 150), (130,)))
    out = torch.nn.functional.linear(x, w, bias)
    g = torch.randn_like(out)
    flat, weight, rows = x.detach().numpy().reshape(-1, 150), w.detach().numpy(), g.numpy().reshape(-1, 130)
    got = (out.detach(), *torch.autograd.grad(out, (x, w, bias), g))
    want = (flat @ weight.T + bias.detach().numpy(), rows @ weight, rows.T @ flat, rows.sum(0))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy().reshape(b.shape), b, atol=1e-10)
