"""Strides of results as PyTorch 2.13 gives them: of tensors with numbers, of fakes, and of what compiled code gives."""

from __future__ import annotations

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.capture.fake.mode import FakeTensorMode

A = torch.arange(1 << 12, dtype=torch.float32).sin()


def plain(*shape):
    return A[: torch.Size(shape).numel()].reshape(shape)


def last(*shape):
    """Channels last."""
    return plain(*shape).contiguous(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)


IMAGE, VOLUME, ROWS = last(2, 4, 6, 6), last(2, 3, 6, 6, 4), plain(4, 6).t()
FILTER = plain(5, 4, 3, 3)
SQUARE = plain(3, 3) + 3 * torch.eye(3)

CASES = {
    "conv2d": (lambda x: F.conv2d(x, FILTER), IMAGE, (80, 1, 20, 5)),
    "conv2d by the filter": (lambda w: F.conv2d(plain(2, 4, 6, 6), w), last(5, 4, 3, 3), (80, 1, 20, 5)),
    "conv2d in groups": (lambda x: F.conv2d(x, plain(4, 1, 3, 3), groups=4), IMAGE, (64, 1, 16, 4)),
    "conv_transpose2d": (lambda x: F.conv_transpose2d(x, plain(4, 5, 3, 3)), IMAGE, (320, 1, 40, 5)),
    "conv3d": (lambda x: F.conv3d(x, plain(4, 3, 3, 3, 3)), VOLUME, (128, 1, 32, 8, 4)),
    "conv1d": (lambda x: F.conv1d(x, plain(5, 4, 3)), plain(2, 6, 4).transpose(1, 2), (20, 4, 1)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), IMAGE, (144, 1, 24, 4)),
    "batch_norm of a slice": (lambda x: F.batch_norm(x, None, None, training=True), IMAGE[:, :, ::2], (72, 1, 24, 4)),
    "group_norm": (lambda x: F.group_norm(x, 2), IMAGE, (144, 1, 24, 4)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), IMAGE, (36, 1, 12, 4)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), VOLUME, (54, 1, 18, 6, 3)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), IMAGE, (36, 1, 12, 4)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), VOLUME, (54, 18, 6, 2, 1)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 2), IMAGE, (16, 1, 8, 4)),
    "adaptive_avg_pool2d to one": (lambda x: F.adaptive_avg_pool2d(x, 1), IMAGE, (4, 1, 4, 4)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), IMAGE, (16, 1, 8, 4)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2), IMAGE, (576, 1, 48, 4)),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), IMAGE, (576, 1, 48, 4)),
    "trilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), VOLUME, (3456, 1, 288, 24, 3)),
    "pad": (lambda x: F.pad(x, (1, 1, 1, 1)), IMAGE, (256, 1, 32, 4)),
    "pad by nothing": (lambda x: F.pad(x, (0, 0)), ROWS, (1, 6)),
    "crop": (lambda x: F.pad(x, (-1, -1)), ROWS, (1, 6)),
    "reflect": (lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"), IMAGE, (256, 1, 32, 4)),
    "circular": (lambda x: F.pad(x, (1, 1, 1, 1), mode="circular"), IMAGE, (256, 64, 8, 1)),
    "flip": (lambda x: x.flip(0), ROWS, (1, 6)),
    "roll": (lambda x: x.roll(1, 2), IMAGE, (144, 1, 24, 4)),
    "roll as one row": (lambda x: x.roll(1), IMAGE, (144, 36, 6, 1)),
    "stack in front": (lambda x: torch.stack([x, x]), IMAGE, (288, 144, 1, 24, 4)),
    "stack of channels": (lambda x: torch.stack([x, x], 1), IMAGE, (288, 4, 1, 48, 8)),
    "stack at the end": (lambda x: torch.stack([x, x], 4), IMAGE, (288, 72, 12, 2, 1)),
    "glu": (lambda x: F.glu(x, 1), IMAGE, (72, 1, 12, 2)),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), IMAGE, (144, 1, 12, 1)),
    "index_fill": (lambda x: x.index_fill(1, torch.tensor([0]), 1.0), ROWS, (1, 6)),
    "index_put": (lambda x: x.index_put((torch.tensor([0]),), plain(4)), ROWS, (1, 6)),
    "slice_scatter": (lambda x: x.slice_scatter(plain(2, 4), 0, 1, 3), ROWS, (1, 6)),
    "rows": (lambda x: x[torch.tensor([0, 1])], IMAGE, (144, 1, 24, 4)),
    "columns": (lambda x: x[:, torch.tensor([0, 1])], plain(2, 4, 6).permute(2, 0, 1), (1, 6, 12)),
    "index laid out": (lambda i: plain(2, 4, 6)[:, i], torch.tensor([[0, 1], [1, 2]]).t(), (24, 6, 12, 1)),
    "mse": (lambda x: F.mse_loss(x, x, reduction="none"), ROWS, (1, 6)),
    "inv": (torch.linalg.inv, SQUARE, (1, 3)),
    "solve": (lambda a: torch.linalg.solve(a, plain(2, 3, 2)), SQUARE, (6, 1, 3)),
    "solve a vector": (lambda a: torch.linalg.solve(a, plain(2, 3)), SQUARE.expand(2, 3, 3), (3, 1)),
    "cholesky": (torch.linalg.cholesky, SQUARE @ SQUARE.t(), (1, 3)),
    "eigh of a stack": (lambda a: torch.linalg.eigh(a)[0], SQUARE.expand(2, 3, 3), (3, 1)),
    "svd": (lambda a: torch.linalg.svd(a, full_matrices=False)[0], plain(2, 4, 3), (12, 1, 4)),
    "fft of rows": (lambda x: torch.fft.fft(x, dim=0), plain(3, 4), (1, 3)),
    "rfftn": (lambda x: torch.fft.rfftn(x, dim=(2, 0)), plain(3, 4, 5), (1, 10, 2)),
    "irfftn": (lambda x: torch.fft.irfftn(x, dim=(0, 1)), torch.complex(plain(3, 4, 5), plain(3, 4, 5)), (6, 1, 18)),
    "einsum, transposed": (lambda x: torch.einsum("ij,jk->ki", x, plain(3, 4)), plain(2, 3), (2, 1)),
    "einsum, one by one": (lambda x: torch.einsum("i,jk->kij", x, plain(4, 5)), plain(3), (1, 5, 15)),
    "einsum, in the middle": (lambda x: torch.einsum("ijl,jk->lki", x, plain(3, 4)), plain(2, 3, 5), (8, 1, 4)),
    "einsum, one sum": (lambda x: torch.einsum("ijk->kj", x), plain(3, 4, 5), (4, 1)),
    "attention": (
        lambda q: F.scaled_dot_product_attention(q, q, q),
        plain(2, 4, 3, 5).transpose(1, 2),
        (60, 5, 15, 1),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_strides(name):
    function, x, stride = CASES[name]
    assert function(x).stride() == stride


@pytest.mark.parametrize("name", CASES)
def test_fakes_have_the_strides_of_real_tensors(name):
    function, x, stride = CASES[name]
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert function(mode.from_tensor(x)).stride() == stride


def test_numbers_do_not_depend_on_the_format():
    for name, (function, x, _) in CASES.items():
        if x.ndim >= 4 and x is not FILTER:
            torch.testing.assert_close(function(x), function(x.contiguous()), msg=name)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("svd", "eigh of a stack")])
def test_compiled_code_lays_results_out_as_eager_calls_do(name):
    function, x, stride = CASES[name]
    result = torch.compile(lambda x: function(x * 1) + 0, fullgraph=True)(x)
    expected = function(x * 1) + 0
    assert result.stride() == expected.stride()
    torch.testing.assert_close(result, expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: F.conv2d(x, w),
        lambda x, w: F.max_pool2d(F.conv2d(x, w), 2),
        lambda x, w: F.avg_pool2d(F.batch_norm(F.conv2d(x, w), None, None, training=True), 2),
        lambda x, w: F.group_norm(F.interpolate(F.conv2d(x, w), scale_factor=2), 5),
    ],
)
def test_gradients_are_channels_last_too(function):
    x, w = IMAGE.clone().requires_grad_(), FILTER.clone().requires_grad_()
    gx, gw = torch.autograd.grad(function(x, w).pow(3).sum(), (x, w))
    assert gx.stride() == IMAGE.stride() and gw.is_contiguous(memory_format=torch.channels_last)
    cx, cw = x.detach().contiguous().requires_grad_(), w.detach().clone().requires_grad_()
    expected = torch.autograd.grad(function(cx, cw).pow(3).sum(), (cx, cw))
    torch.testing.assert_close((gx, gw), expected, rtol=1e-3, atol=1e-3)


def test_a_network_stays_channels_last():
    parts = torch.nn.Conv2d(4, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2)
    net = torch.nn.Sequential(*parts).to(memory_format=torch.channels_last)
    out = net(plain(2, 4, 6, 6))
    assert out.stride() == (32, 1, 16, 8)
    out.square().sum().backward()
    assert net[0].weight.grad.is_contiguous(memory_format=torch.channels_last)
    compiled = torch.compile(net)(plain(2, 4, 6, 6))
    assert compiled.stride() == out.stride()


@pytest.mark.parametrize(
    ("view", "stride"),
    [
        (lambda x: x.t(), (1, 3)),
        (lambda x: x.unsqueeze(0), (0, 3, 1)),
        (lambda x: x.transpose(0, 1).clone(), (1, 3)),
        (lambda x: x.as_strided((0, 3), (5, 2)), (5, 2)),
        (lambda x: plain(2, 3)[:, :0], (3, 1)),
    ],
)
def test_views_without_elements_have_strides(view, stride):
    assert view(torch.empty(0, 3)).stride() == stride


def test_a_dimension_of_one_keeps_its_stride():
    assert torch.zeros_like(plain(2, 1, 3).transpose(0, 2)).stride() == (1, 3, 3)
    assert plain(3, 1, 4).transpose(0, 1).clone().stride() == (4, 4, 1)
