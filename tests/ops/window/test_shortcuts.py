"""Plain convolutions and poolings give what the general path gives, are recorded as it records them, and leave errors to it."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.ops.system.overrides import TorchDispatchMode
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
    "conv_transpose2d": lambda x, w, b: F.conv_transpose2d(x, w.transpose(0, 1), b, stride=2, padding=1),
    "conv_transpose2d, all": lambda x, w, b: F.conv_transpose2d(
        x, w.mT.reshape(3, 4, 3, 3), b, (2, 3), [0, 1], (1, 2), 1, (2, 1)
    ),
    "conv_transpose2d, other memory": lambda x, w, b: F.conv_transpose2d(x.mT, w.reshape(3, 4, 3, 3), b, 2, 0, 1),
    "conv_transpose2d, one image": lambda x, w, b: F.conv_transpose2d(x[0], w.reshape(3, 4, 3, 3), b),
    "conv_transpose1d": lambda x, w, b: F.conv_transpose1d(x[:, :, 0], w.reshape(3, 4, 3, 3)[:, :, 0], b),
    "conv2d, channels last": lambda x, w, b: F.conv2d(x.to(memory_format=torch.channels_last), w, b),
    "conv2d, filters channels last": lambda x, w, b: F.conv2d(x, w.to(memory_format=torch.channels_last), b),
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
    for function in ("convolution", "convolution_backward", "max_pool2d"):
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
    assert shortcuts.convolution(torch.randn(1, 4, 8, 8), w, None, 2, 0, 1, 1, 1) is not None
    attributes = ((1, 1), (0, 0), (1, 1), False, (0, 0), 1)
    with torch.no_grad():
        found = shortcuts.convolution_backward(torch.randn(1, 4, 6, 6), x, w, attributes, (True, False, True))
    assert found[0].shape == x.shape and found[1] is None and found[2].shape == (4,)
    assert shortcuts.max_pool2d(x, 2, None, 2, 1, False) is None


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x, w: F.conv2d(x, w, stride=0), "non-positive stride"),
        (lambda x, w: F.conv2d(x, w[:, :2]), "to have 2 channels"),
        (lambda x, w: F.conv2d(x, w, padding=-1), "negative padding"),
        (lambda x, w: F.conv_transpose2d(x, w), "to have 4 channels"),
        (lambda x, w: F.conv_transpose2d(x, w[:3], output_padding=1), "output padding must be smaller"),
        (lambda x, w: F.max_pool2d(x, 2, padding=2), "pad should be at most half"),
    ],
)
def test_errors_are_those_of_the_general_path(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(torch.randn(1, 3, 8, 8), torch.randn(4, 3, 3, 3))


@built
def test_gradients_are_heard_of():
    """Whoever listens while gradients are computed; those of gradients."""
    heard: list[str] = []

    class Heard(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            heard.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    x, w = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((2, 3, 5, 5), (3, 2, 3, 3)))
    out = F.conv_transpose2d(x, w, stride=2)
    with Heard():
        torch.autograd.grad(out.sum(), (x, w))
    assert "aten::convolution_backward" in heard
    f = lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1)
    assert torch.autograd.gradcheck(f, (x, w)) and torch.autograd.gradgradcheck(f, (x, w))
