"""Layers in C give what the array library gives for the same arrays, in any layout, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.ops.network import attention_kernels
from pullback.ops.window.kernels import conv, max_pool
from pullback.runtime import network

pytestmark = pytest.mark.skipif(network.kernels() is None, reason="the extension is not built, or there is no BLAS")
KINDS = pytest.mark.parametrize("kind", [np.float32, np.float64])


def numbers(*shape, kind=np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


def both(monkeypatch, f) -> tuple:
    """(by the kernels, by the array library), each as a tuple; the kernels must have done their part."""
    used = []
    kernels = network.kernels()

    class Watched:
        def __getattr__(self, name):
            def call(*args):
                used.append(getattr(kernels, name)(*args))
                return used[-1]

            return call

    with monkeypatch.context() as patch:
        patch.setattr(network, "kernels", Watched)
        ours = f()
    assert used and all(used)
    with monkeypatch.context() as patch:
        patch.setattr(network, "kernels", lambda: None)
        theirs = f()
    return tuple(r if isinstance(r, tuple) else (r,) for r in (ours, theirs))


def agree(ours: tuple, theirs: tuple) -> None:
    for a, b in zip(ours, theirs, strict=True):
        if b is None or a is None:
            assert a is b
            continue
        scale = max(np.abs(b[np.isfinite(b)]).max(initial=0), 1)
        np.testing.assert_allclose(a, b, rtol=0, atol=scale * (2e-5 if b.dtype == np.float32 else 1e-11))


CONVOLUTIONS = {
    "padded": ((2, 3, 8, 9), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "strides, groups": ((5, 4, 7, 7), (6, 2, 2, 3), (2, 1), (1, 0), (1, 2), 2),
    "one tap": ((1, 8, 16, 16), (8, 8, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    "one tap, strided": ((3, 8, 5, 5), (8, 2, 1, 1), (2, 2), (0, 0), (1, 1), 4),
    "rows of an image": ((2, 64, 70, 70), (8, 64, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    "images together": ((40, 6, 4, 4), (8, 3, 3, 3), (1, 1), (1, 1), (1, 1), 2),
    "each channel": ((3, 6, 9, 10), (6, 1, 3, 3), (1, 1), (1, 1), (1, 1), 6),
    "each channel, twice": ((3, 6, 9, 10), (12, 1, 3, 2), (2, 1), (0, 2), (1, 2), 6),
    "three axes": ((3, 4, 5, 7, 8), (6, 2, 2, 3, 2), (2, 1, 2), (0, 2, 1), (1, 2, 1), 2),
    "three axes, each channel": ((2, 4, 5, 7, 8), (4, 1, 3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 4),
    "an axis": ((3, 4, 30), (6, 4, 5), (2,), (2,), (2,), 1),
    "wide padding": ((1, 2, 3, 3), (2, 2, 3, 3), (3, 2), (4, 5), (2, 1), 1),
}


@KINDS
@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("turned", [False, True])
def test_convolution(monkeypatch, name, kind, turned):
    size, shape, *rest, groups = CONVOLUTIONS[name]
    x, w, b = numbers(*size, kind=kind), numbers(*shape, kind=kind, seed=1), numbers(shape[0], kind=kind, seed=2)
    x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1) if turned else x
    agree(*both(monkeypatch, lambda: conv.convolution(np, x, w, b, *rest, groups)))
    g = numbers(*conv.convolution(np, x, w, None, *rest, groups).shape, kind=kind, seed=3)
    g = np.moveaxis(np.ascontiguousarray(np.moveaxis(g, 1, -1)), -1, 1) if turned else g
    agree(*both(monkeypatch, lambda: conv.convolution_input(np, g, w, size[2:], *rest, groups)))
    agree(*both(monkeypatch, lambda: conv.convolution_weight(np, g, x, shape[2:], *rest, groups)))


@KINDS
@pytest.mark.parametrize(
    "rest",
    [
        ((2, 2), (2, 2), (0, 0), (1, 1), False), ((3, 3), (2, 2), (1, 1), (1, 1), True), ((3, 2), (1, 2), (1, 0), (2, 1), False),
        ((5, 4), (3, 3), (2, 2), (1, 1), False), ((2, 5), (1, 1), (1, 2), (1, 3), True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [(11, 13), (9, 40), (8, 600)])
def test_max_pool(monkeypatch, instructions, kind, rest, size):
    x = np.round(numbers(3, 4, *size, kind=kind), 1)  # with equal maxima
    x[0, 0, :4, :4], x[1, 1, 5, 5], x[1, 1, 6, 6] = -np.inf, np.nan, np.nan
    (values, places), (wanted, wanted_places) = both(monkeypatch, lambda: max_pool.max_pool(np, x, *rest))
    np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(places, wanted_places)
    g = numbers(*values.shape, kind=kind, seed=1)
    agree(*both(monkeypatch, lambda: max_pool.scatter_places(np, g, places, x.shape[2:])))


@pytest.mark.parametrize("disjoint", [False, True])
def test_values_are_added_or_put_at_places(monkeypatch, disjoint):
    g, places = numbers(2, 3), np.array([[1, 1, 0], [3, 2, 3]])
    agree(*both(monkeypatch, lambda: max_pool.scatter_places(np, g, places, (4,), disjoint)))


def test_places_outside_are_refused():
    assert network.scatter(numbers(2, 3), np.array([[0, 1, 2], [0, 1, 4]]), (4,)) is None


MASKS = {
    "none": lambda t, s, kind: None,
    "boolean": lambda t, s, kind: np.tril(np.ones((t, s), bool), 3)[None, None] & (np.arange(t) != 3)[:, None],
    "added": lambda t, s, kind: numbers(2, 1, t, s, kind=kind, seed=9),
}


@KINDS
@pytest.mark.parametrize("mask", [*MASKS, "causal"])
@pytest.mark.parametrize("lengths", [(10, 10), (100, 300), (130, 600), (70, 30)])
def test_attention(monkeypatch, kind, mask, lengths):
    t, s = lengths
    given = [numbers(2, n, 3, 8, kind=kind, seed=k).swapaxes(1, 2) for k, n in enumerate((t, s, s))]
    rest = (MASKS[mask](t, s, kind) if mask in MASKS else None, mask == "causal", 0.3)
    agree(*both(monkeypatch, lambda: attention_kernels.forward(np, *given, *rest)))
    out, lse = attention_kernels.forward(np, *given, *rest)
    g = numbers(*out.shape, kind=kind, seed=5)
    agree(*both(monkeypatch, lambda: attention_kernels.backward(np, g, *given, out, lse, *rest)))


def test_results_do_not_depend_on_threads():
    x, w = numbers(9, 8, 20, 20), numbers(16, 8, 3, 3, seed=1)
    q = numbers(2, 4, 200, 16)
    before = torch.get_num_threads()

    def results() -> list:
        y = conv.convolution(np, x, w, None, (1, 1), (1, 1), (1, 1), 1)
        out, lse = attention_kernels.forward(np, q, q, q, None, True, 0.25)
        grads = attention_kernels.backward(np, q, q, q, q, out, lse, None, True, 0.25)
        return [y, conv.convolution_input(np, y, w, (20, 20), (1, 1), (1, 1), (1, 1), 1), out, lse, *grads]

    try:
        torch.set_num_threads(1)
        alone = results()
        torch.set_num_threads(3)
        for a, b in zip(alone, results(), strict=True):
            np.testing.assert_array_equal(a, b)
    finally:
        torch.set_num_threads(before)
