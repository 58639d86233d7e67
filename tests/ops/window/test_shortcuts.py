"""Plain convolutions and poolings give what the general path gives, are recorded as it records them, and leave errors to it."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.ops.window import shortcuts
from pullback.runtime import network

F = torch.nn.functional
built = pytest.mark.skipif(network.kernels() is None, reason="the extension is not built, or there is no BLAS")
CALLS = {
    "conv2d": lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=1),
    "conv2d by name": lambda x, w, b: F.conv2d(x, w, padding="same"),
    "conv2d, a list": lambda x, w, b: F.conv2d(x, w, b, [1, 2], [0, 1], [2, 1]),
    "conv2d, one image": lambda x, w, b: F.conv2d(x[0], w, b),
    "conv1d": lambda x, w, b: F.conv1d(x[:, :, 0], w[:, :, 0], b),
    "conv2d, other memory": lambda x, w, b: F.conv2d(x.transpose(2, 3), w, b),
    "max_pool2d": lambda x, w, b: F.max_pool2d(x, 2),
    "max_pool2d, all": lambda x, w, b: F.max_pool2d(x, (3, 2), stride=[2, 1], padding=1, dilation=1, ceil_mode=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_general_path_agrees(name, monkeypatch):
    torch.manual_seed(0)
    given = [torch.randn(*s, requires_grad=True) for s in ((2, 3, 7, 6), (4, 3, 3, 3), (4,))]

    def results() -> list:
        out = CALLS[name](*given)
        return [out, *torch.autograd.grad(out.square().sum(), given, allow_unused=True)]

    ours = results()
    for function in ("convolution", "max_pool2d"):
        monkeypatch.setattr(shortcuts, function, lambda *args: None)
    theirs = results()
    assert ours[0].grad_fn.name() == theirs[0].grad_fn.name()
    for a, b in zip(ours, theirs, strict=True):
        if a is None:
            assert b is None
            continue
        torch.testing.assert_close(a, b)
        assert a.stride() == b.stride()


@built
def test_plain_calls_take_the_shortcut():
    x, w = torch.randn(1, 3, 8, 8), torch.randn(4, 3, 3, 3)
    assert shortcuts.convolution(x, w, None, 1, 0, 1, 1) is not None
    assert shortcuts.max_pool2d(x, 2, None, 0, 1, False) is not None
    assert shortcuts.convolution(x, w.double(), None, 1, 0, 1, 1) is None  # dtypes differ: the general path says so
    assert shortcuts.convolution(x, w, None, 0, 0, 1, 1) is None
    assert shortcuts.max_pool2d(x, 2, None, 2, 1, False) is None


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x, w: F.conv2d(x, w, stride=0), "non-positive stride"),
        (lambda x, w: F.conv2d(x, w[:, :2]), "to have 2 channels"),
        (lambda x, w: F.conv2d(x, w, padding=-1), "negative padding"),
        (lambda x, w: F.max_pool2d(x, 2, padding=2), "pad should be at most half"),
    ],
)
def test_errors_are_those_of_the_general_path(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(torch.randn(1, 3, 8, 8), torch.randn(4, 3, 3, 3))
