"""Images that lie channels-last, in C: pools, joins, batch norm by running statistics, and row-major copies, as of row-major ones."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.core import small
from pullback.nn import functional as F

if "max_pool2d.default" not in small.table:
    pytest.skip("the extension is not built", allow_module_level=True)

SHAPES = [(2, 4, 8, 8), (1, 3, 7, 9), (3, 70, 5, 6), (2, 130, 16, 17)]
CALLS = {
    "max": lambda x: F.max_pool2d(x, 2),
    "max, overlapping": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max, gaps": lambda x: F.max_pool2d(x, 2, 1, 0, 2),
    "max, ceil": lambda x: F.max_pool2d(x, (3, 2), (2, 3), ceil_mode=True),
    "places": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)[1],
    "average": lambda x: F.avg_pool2d(x, 2),
    "average, padded": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "average, what is there": lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "average, by another number": lambda x: F.avg_pool2d(x, (2, 3), divisor_override=5),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, 3),
    "adaptive, one": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive, largest": lambda x: F.adaptive_max_pool2d(x, 2),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "reflect": lambda x: F.pad(x, (1, 2, 1, 1), mode="reflect"),
}


def images(shape, d, special: bool = False):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(d)
    if special:
        x.view(-1)[::7] = float("nan")
        x.view(-1)[1::11] = float("-inf")
        x.view(-1)[2::13] = 0.0
    return x, x.to(memory_format=torch.channels_last)


@pytest.fixture(params=[1, 3])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("d", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_rows_and_lie_channels_last(name: str, d, special: bool, threads: int):
    for shape in SHAPES:
        x, pixels = images(shape, d, special)
        expected, found = CALLS[name](x), CALLS[name](pixels)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6, equal_nan=True)
        if name.startswith(("max", "average", "places")):
            assert torch.equal(found.nan_to_num(7), expected.nan_to_num(7))
        assert found.is_contiguous(memory_format=torch.channels_last) and found.dtype is expected.dtype


@pytest.mark.parametrize("name", ["max", "average, padded"])
def test_gradients(name: str):
    x, pixels = images((2, 5, 8, 8), torch.float64)
    for t in (x, pixels):
        t.requires_grad_()
        (CALLS[name](t) ** 2).sum().backward()
    torch.testing.assert_close(x.grad, pixels.grad)


def test_volumes():
    x = torch.randn(2, 3, 6, 7, 8)
    pixels = x.to(memory_format=torch.channels_last_3d)
    for call in (lambda t: F.avg_pool3d(t, 2), lambda t: F.max_pool3d(t, 3, 2, 1)):
        torch.testing.assert_close(call(pixels), call(x))
        assert (
            call(pixels).stride() == call(x).to(memory_format=torch.channels_last_3d).stride()
            or call(pixels).is_contiguous()
        )


@pytest.mark.parametrize(
    "d", [torch.float32, torch.float64, torch.int64, torch.uint8, torch.complex64, torch.bfloat16], ids=str
)
def test_joins(d):
    x = images((3, 5, 6, 7), torch.float64)[0].mul(9).abs().to(d).to(memory_format=torch.channels_last)
    for dim in range(-4, 4):
        part = x.narrow(dim, 0, 2).contiguous(memory_format=torch.channels_last)
        found = torch.cat([x, part, x], dim)
        assert torch.equal(found, torch.cat([x.contiguous(), part.contiguous(), x.contiguous()], dim))
        assert found.is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="Sizes of tensors must match"):
        torch.cat([x, x[:, :, :3].contiguous(memory_format=torch.channels_last)], 1)
    many = torch.randn(2, 33, 90, 91).to(memory_format=torch.channels_last)
    assert torch.equal(torch.cat([many, many[:, :7]], 1)[:, 33:], many[:, :7])


@pytest.mark.parametrize("d", [torch.float32, torch.float64], ids=str)
def test_batch_norm_by_running_statistics(d, threads: int):
    for shape in ((2, 4, 8, 8), (2, 3, 5, 7), (3, 130, 9, 8), (2, 64, 64, 33)):
        x, pixels = images(shape, d)
        mean, variance, weight, bias = (torch.rand(shape[1], dtype=d) + 0.1 for _ in range(4))
        for w, b in ((weight, bias), (None, None), (weight, None), (None, bias)):
            column = lambda p: p[:, None, None]  # noqa: E731
            expected = (x.double() - column(mean)) / column((variance.double() + 1e-5).sqrt())
            expected = expected * (1 if w is None else column(w)) + (0 if b is None else column(b))
            for t in (x, pixels):
                found = F.batch_norm(t, mean, variance, w, b)
                torch.testing.assert_close(found, expected.to(d), rtol=1e-5, atol=1e-5)
                assert found.stride() == t.stride() and found._array.base is None
    assert F.batch_norm(x, mean, variance[:, None].expand(-1, 2)[:, 0], weight, bias).shape == x.shape


def test_row_major_copies():
    x, pixels = images((2, 4, 8, 8), torch.float32)
    assert torch.equal(pixels.contiguous(), x) and pixels.contiguous().stride() == x.stride()
    assert x.contiguous() is x and pixels[:0].contiguous().shape == (0, 4, 8, 8)
    t = torch.randn(3, 4, requires_grad=True)
    t.t().contiguous().sum().backward()
    assert torch.equal(t.grad, torch.ones(3, 4)) and t.t().contiguous().grad_fn is not None
