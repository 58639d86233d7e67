"""Convolutions of one window that is the whole image are products of matrices, and what the kernels of convolutions give."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.ops.window.kernels import whole
from pullback.runtime import network

F = torch.nn.functional
built = pytest.mark.skipif(network.kernels() is None, reason="the extension is not built, or there is no BLAS")
CALLS = {
    "conv1d": (F.conv1d, (5, 3, 7), (4, 3, 7), {}),
    "conv2d": (F.conv2d, (5, 3, 4, 6), (2, 3, 4, 6), {}),
    "conv2d, one row": (F.conv2d, (1, 8, 3, 3), (1, 8, 3, 3), {"stride": 2}),
    "conv3d": (F.conv3d, (2, 3, 2, 3, 4), (5, 3, 2, 3, 4), {}),
    "conv2d, dilation of one tap": (F.conv2d, (3, 4, 1, 5), (2, 4, 1, 5), {"dilation": (3, 1)}),
    "transposed": (F.conv_transpose2d, (5, 4, 1, 1), (4, 3, 4, 4), {}),
    "transposed, strided": (F.conv_transpose2d, (2, 4, 1, 1), (4, 3, 3, 2), {"stride": 2}),
}
OTHERS = {
    "a border": (F.conv2d, (2, 3, 4, 4), (2, 3, 4, 4), {"padding": 1}),
    "groups": (F.conv2d, (2, 4, 3, 3), (4, 2, 3, 3), {"groups": 2}),
    "taps apart": (F.conv2d, (2, 3, 5, 5), (2, 3, 3, 3), {"dilation": 2}),
    "room for more": (F.conv_transpose2d, (2, 4, 1, 1), (4, 3, 3, 3), {"stride": 2, "output_padding": 1}),
    "several places": (F.conv_transpose2d, (2, 4, 2, 2), (4, 3, 3, 3), {}),
}


def results(call, dtype=torch.float64, biased: bool = True) -> list:
    f, x, w, options = call
    torch.manual_seed(0)
    channels = w[1] if "transpose" in f.__name__ else w[0]
    shapes = (x, w, (channels * (options.get("groups", 1) if "transpose" in f.__name__ else 1),))
    given = [torch.randn(*s, dtype=dtype, requires_grad=True) for s in (shapes if biased else shapes[:2])]
    out = f(*given, **options)
    g = torch.randn_like(out)
    return [out, *torch.autograd.grad(out, given, g)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("name", [*CALLS, *OTHERS])
def test_the_kernels_of_convolutions_agree(name, biased, dtype, monkeypatch):
    found = results((CALLS | OTHERS)[name], dtype, biased)
    monkeypatch.setattr(whole, "is_whole", lambda *args: False)
    for a, b in zip(found, results((CALLS | OTHERS)[name], dtype, biased), strict=True):
        torch.testing.assert_close(a, b)
        assert a.stride() == b.stride() and a.dtype is b.dtype


@built
@pytest.mark.parametrize("name", [*CALLS, *OTHERS])
def test_who_computes(name, monkeypatch):
    """A product does, for all three forms, where one window is the image; not under deterministic algorithms."""
    done = []
    for form in ("convolution", "convolution_input", "convolution_weight"):
        own = getattr(whole, form)
        monkeypatch.setattr(whole, form, lambda *args, own=own, form=form: done.append(form) or own(*args))
    results((CALLS | OTHERS)[name])
    assert sorted(done) == (["convolution", "convolution_input", "convolution_weight"] if name in CALLS else [])
    torch.use_deterministic_algorithms(True)
    try:
        done.clear()
        results((CALLS | OTHERS)[name])
        assert not done
    finally:
        torch.use_deterministic_algorithms(False)


def test_orders_of_memory_and_numbers_that_are_none():
    x, w = torch.randn(3, 4, 5, 5, dtype=torch.float64), torch.randn(2, 4, 5, 5, dtype=torch.float64)
    expected = torch.einsum("nchw,ochw->no", x, w)[..., None, None]
    for a in (x, x.to(memory_format=torch.channels_last), x.mT.contiguous().mT, x.flip(0).contiguous().flip(0)):
        torch.testing.assert_close(F.conv2d(a, w), expected)
        torch.testing.assert_close(F.conv2d(a, w.to(memory_format=torch.channels_last)), expected)
    x[1, 2, 3, 4] = float("nan")
    assert F.conv2d(x, w).isnan().flatten(1).all(1).tolist() == [False, True, False]
    assert F.conv2d(x[:0], w).shape == (0, 2, 1, 1)


def test_gradients_of_gradients():
    x, w = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((2, 3, 2, 2), (2, 3, 2, 2)))
    assert torch.autograd.gradgradcheck(F.conv2d, (x, w))
    x = torch.randn(2, 3, 1, 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(F.conv_transpose2d, (x, torch.randn(3, 2, 2, 2, dtype=torch.float64)))
