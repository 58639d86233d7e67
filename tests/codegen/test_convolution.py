"""Convolutions in native graphs: calls of the kernels in C, in all three forms, with what operators give."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import compile_graph
from pullback.runtime import network

F = torch.nn.functional
CALLS = {
    "an axis": (F.conv1d, (3, 4, 20), (6, 4, 3), {"padding": 1}),
    "strided": (F.conv2d, (3, 4, 9, 8), (6, 2, 3, 3), {"stride": 2, "padding": 1, "groups": 2}),
    "dilated": (F.conv2d, (2, 4, 9, 8), (6, 4, 3, 2), {"dilation": (2, 3), "padding": (0, 2)}),
    "each channel": (F.conv2d, (2, 6, 9, 8), (6, 1, 3, 3), {"padding": 1, "groups": 6}),
    "three axes": (F.conv3d, (2, 3, 5, 6, 4), (6, 3, 3, 2, 1), {"padding": 1}),
    "transposed": (F.conv_transpose2d, (2, 4, 5, 6), (4, 6, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    "transposed, groups": (F.conv_transpose1d, (2, 4, 9), (4, 3, 4), {"stride": 3, "groups": 2}),
}


def tensors(shape: tuple, filters: tuple, kind, order) -> list:
    x = torch.randn(shape, dtype=kind)
    if order is not None:
        x = x.contiguous(memory_format=order)
    return [x, torch.randn(filters, dtype=kind), torch.randn(6, dtype=kind)]


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("turned", [False, True])
def test_values_and_gradients(name, kind, turned):
    call, shape, filters, rest = CALLS[name]
    order = {4: torch.channels_last, 5: torch.channels_last_3d}.get(len(shape)) if turned else None
    given = tensors(shape, filters, kind, order)

    def f(x, w, b):
        leaves = [t.detach().requires_grad_() for t in (x, w, b)]
        y = call(leaves[0] * 2, *leaves[1:], **rest)
        return y, *torch.autograd.grad((y * y.tanh()).sum(), leaves)

    result = compile_graph(make_fx(f, tracing_mode="fake")(*given))
    close = {"rtol": 1e-5, "atol": 1e-4 if kind is torch.float32 else 1e-11}  # tanh is another one in loops
    for ours, theirs in zip(result(*given), f(*given), strict=True):
        torch.testing.assert_close(ours, theirs, **close)
        assert ours.stride() == theirs.stride()


@pytest.mark.skipif(not network.address(), reason="the extension is not built, or there is no BLAS")
def test_the_kernels_are_called():
    x, w, b = tensors((2, 4, 6, 6), (6, 4, 3, 3), torch.float32, None)
    f = lambda x, w, b: F.conv2d(x.relu(), w, b).relu()
    result = compile_graph(make_fx(f, tracing_mode="fake")(x, w, b))
    assert result.native and any("convolution of" in k for k in result.kernels)
    torch.testing.assert_close(result(x, w, b), f(x, w, b), rtol=0, atol=0)


def test_without_the_kernels_there_are_loops(monkeypatch):
    monkeypatch.setattr(network, "address", lambda: 0)
    x, w, b = tensors((2, 4, 6, 6), (6, 4, 3, 3), torch.float32, None)
    f = lambda x, w, b: F.conv2d(x.relu(), w, b, padding=1).relu()
    result = compile_graph(make_fx(f, tracing_mode="fake")(x, w, b))
    assert result.native and not any("convolution of" in k for k in result.kernels)
    torch.testing.assert_close(result(x, w, b), f(x, w, b))
