"""Convolution kernels against sums written out, in every path they take; and the public functions' words."""

from itertools import product

import ml_dtypes
import numpy as np
import pytest

import pullback as torch
from pullback.ops.system.operator import exports, registry
from pullback.ops.window.kernels import conv, depthwise, planes

F = exports["nn.functional"]
rng = np.random.default_rng(0)


def direct(x, w, stride, padding, dilation, groups):
    """The definition, one output entry at a time."""
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)])
    out = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation)]
    y = np.zeros((x.shape[0], w.shape[0], *out), x.dtype)
    share = w.shape[0] // groups
    for o, at in product(range(w.shape[0]), product(*map(range, out))):
        channels = slice(o // share * w.shape[1], (o // share + 1) * w.shape[1])
        picks = [slice(a * s, a * s + d * (k - 1) + 1, d) for a, s, d, k in zip(at, stride, dilation, w.shape[2:])]
        y[(slice(None), o, *at)] = (x[(slice(None), channels, *picks)] * w[o]).sum(tuple(range(1, x.ndim)))
    return y


# size, kernel, stride, padding, dilation, groups, channels per group, outputs per group
CASES = {
    "1d": ((9,), (3,), (1,), (1,), (1,), 1, 3, 4),
    "1d strided": ((11,), (4,), (3,), (2,), (2,), 2, 2, 3),
    "2d": ((6, 7), (3, 2), (1, 1), (1, 0), (1, 1), 1, 3, 5),
    "2d few outputs": ((6, 7), (3, 3), (1, 1), (2, 1), (1, 2), 1, 6, 2),
    "2d many outputs": ((5, 5), (3, 3), (1, 1), (1, 1), (1, 1), 1, 1, 8),
    "2d strided": ((7, 8), (3, 3), (2, 3), (1, 1), (1, 1), 1, 4, 4),
    "2d pointwise": ((17, 16), (1, 1), (1, 1), (0, 0), (1, 1), 2, 3, 2),
    "2d pointwise strided": ((5, 6), (1, 1), (2, 2), (1, 0), (1, 1), 1, 3, 2),
    "2d depthwise": ((6, 7), (3, 3), (1, 1), (1, 1), (1, 1), 4, 1, 1),
    "2d depthwise strided": ((7, 6), (3, 2), (2, 3), (1, 2), (2, 1), 3, 1, 2),
    "3d": ((4, 5, 4), (2, 3, 2), (1, 2, 1), (0, 1, 1), (2, 1, 1), 2, 2, 2),
    "3d depthwise": ((4, 5, 4), (2, 3, 2), (1, 2, 1), (0, 1, 1), (1, 1, 2), 2, 1, 2),
}


@pytest.fixture(params=["in one block", "in many blocks"])
def blocks(request, monkeypatch):
    """Blocks of a few columns, so that their seams are tested too."""
    if request.param == "in many blocks":
        monkeypatch.setattr(conv, "COLUMN_BYTES", 400)
        monkeypatch.setattr(conv, "COLUMN_LIMIT", 1000)
        monkeypatch.setattr(planes, "BLOCK_ENTRIES", 40)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("case", CASES)
def test_three_faces_of_one_form(case):
    size, kernel, stride, padding, dilation, groups, inputs, outputs = CASES[case]
    x = rng.standard_normal((3, groups * inputs, *size))
    w = rng.standard_normal((groups * outputs, inputs, *kernel))
    settings = (stride, padding, dilation, groups)
    y = conv.convolution(np, x, w, None, *settings)
    np.testing.assert_allclose(y, direct(x, w, *settings), atol=1e-12)
    g = rng.standard_normal(y.shape)
    gx, gw = conv.convolution_input(np, g, w, size, *settings), conv.convolution_weight(np, g, x, kernel, *settings)
    assert gx.shape == x.shape and gw.shape == w.shape
    for dx, dw in ((rng.standard_normal(x.shape), rng.standard_normal(w.shape)) for _ in range(3)):
        np.testing.assert_allclose((gx * dx).sum(), (g * direct(dx, w, *settings)).sum(), atol=1e-9)
        np.testing.assert_allclose((gw * dw).sum(), (g * direct(x, dw, *settings)).sum(), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_summed_in_float32(dtype):
    x, w = np.ones((1, 300, 3, 3), dtype), np.full((2, 300, 3, 3), 1 / 16, dtype)
    y = conv.convolution(np, x, w, np.ones(2, dtype), (1, 1), (0, 0), (1, 1), 1)
    assert y.dtype == dtype and float(y[0, 0, 0, 0]) == pytest.approx(2700 / 16 + 1, rel=4e-3)


@pytest.mark.parametrize("dtype", [np.int64, np.complex128])
def test_other_dtypes(dtype):
    x, w = rng.integers(-5, 5, (2, 4, 5, 5)).astype(dtype), rng.integers(-5, 5, (4, 2, 3, 3)).astype(dtype)
    settings = ((2, 1), (1, 1), (1, 1), 2)
    np.testing.assert_array_equal(conv.convolution(np, x, w, None, *settings), direct(x, w, *settings))


def test_not_a_number_stays_in_its_window():
    x = np.ones((1, 1, 6, 6))
    x[0, 0, 0, 0] = np.nan
    for channels in (1, 3):
        tall = np.repeat(x, channels, 1)
        y = conv.convolution(np, tall, np.ones((channels, 1, 3, 3)), None, (1, 1), (0, 0), (1, 1), channels)
        assert np.isnan(y[:, :, 0, 0]).all() and np.isfinite(y[:, :, 0, 1:]).all() and np.isfinite(y[:, :, 1:]).all()


def test_depthwise_planes_are_undone():
    x = rng.standard_normal((2, 3, 6, 9))
    parts, shape = planes.split(np, x, (2, 3))
    np.testing.assert_array_equal(planes.merge(np, parts, shape, (2, 3)), x)
    assert depthwise.forward(np, x, np.ones((3, 1, 1, 1)), (2, 3), (1, 1), (3, 3)).tolist() == x[..., ::2, ::3].tolist()


# ---- public functions
def test_same_padding_keeps_the_size():
    x = torch.ones(1, 2, 5, 6)
    for kernel, dilation in (((3, 3), 1), ((3, 5), 2)):
        assert F["conv2d"](x, torch.ones(1, 2, *kernel), padding="same", dilation=dilation).shape == (1, 1, 5, 6)
    with pytest.warns(UserWarning, match="even kernel lengths"):
        assert F["conv2d"](x, torch.ones(1, 2, 2, 4), padding="same").shape == (1, 1, 5, 6)


def test_unbatched_input():
    x, w = torch.ones(2, 5), torch.ones(3, 2, 2)
    assert F["conv1d"](x, w).tolist() == F["conv1d"](x.unsqueeze(0), w).squeeze(0).tolist()
    assert F["conv_transpose1d"](torch.ones(3, 5), w, stride=2).shape == (2, 10)


def test_transposed_output_padding_and_its_backward():
    x = torch.ones(1, 2, 4, dtype=torch.float64).requires_grad_()
    w = torch.ones(2, 1, 2, dtype=torch.float64)
    y = F["conv_transpose1d"](x, w, dilation=3, output_padding=2)
    assert y.shape == (1, 1, 9)
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [[[2.0] * 4] * 2]


ERRORS = [
    (((1, 3, 4, 4), (2, 4, 3, 3)), {},
     "Given groups=1, weight of size [2, 4, 3, 3], expected input[1, 3, 4, 4] to have 4 channels, but got 3 "
     "channels instead"),
    (((1, 3, 2, 2), (2, 3, 3, 3)), {},
     "Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3). Kernel size can't be greater than "
     "actual input size"),
    (((3, 4), (2, 3, 3, 3)), {},
     "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [3, 4]"),
    (((1, 4, 4, 4), (3, 2, 3, 3)), {"groups": 2}, "expected weight to be divisible by 2 at dimension 0"),
    (((1, 3, 4, 4), (2, 3, 3, 3)), {"stride": 0}, "non-positive stride is not supported"),
    (((1, 3, 4, 4), (2, 3, 3, 3)), {"padding": "sme"}, "Invalid padding string: 'sme'"),
    (((1, 3, 4, 4), (2, 3, 3, 3)), {"padding": "same", "stride": 2}, "padding='same' is not supported for strided"),
    (((1, 3, 4, 4), (2, 3, 3, 3)), {"stride": (1, 1, 1)},
     "expected stride to be a single integer value or a list of 2 values"),
]  # fmt: skip


@pytest.mark.parametrize(("shapes", "options", "words"), ERRORS)
def test_words(shapes, options, words):
    with pytest.raises(RuntimeError) as caught:
        F["conv2d"](*(torch.ones(*s) for s in shapes), **options)
    assert words in str(caught.value)


def test_words_on_dtypes():
    x, w = torch.ones(1, 1, 3), torch.ones(1, 1, 2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        F["conv1d"](x, w)
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        F["conv1d"](x.bool(), x.bool())


def test_backward_gives_only_what_is_wanted():
    x, w = torch.ones(1, 1, 3), torch.ones(1, 1, 2)
    backward = registry["convolution_backward.default"]
    gx, gw, gb = backward(torch.ones(1, 1, 2), x, w, None, (1,), (0,), (1,), False, (0,), 1, (False, True, False))
    assert gx is None and gb is None and gw.tolist() == [[[2.0, 2.0]]]


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("bias", [False, True])
def test_transposed_convolutions_are_compiled(rank, bias):
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(*s, *[3] * rank, generator=generator) for s in ((2, 4), (4, 3)))
    b = torch.tensor([1.0, -2.0, 3.0]) if bias else None
    f = F[f"conv_transpose{rank}d"]
    compiled = torch.compile(lambda x, w: f(x, w, b, stride=2, padding=1, output_padding=1), fullgraph=True)
    torch.testing.assert_close(compiled(x, w), f(x, w, b, stride=2, padding=1, output_padding=1))


def test_a_compiled_transposed_convolution_with_more_output_padding_than_stride():
    """There are places in the result that no place of the input reaches."""
    settings = {"stride": (3, 2), "padding": (1, 2), "output_padding": (2, 3), "groups": 2, "dilation": (4, 4)}
    x, w = torch.randn(2, 4, 4, 5).requires_grad_(), torch.randn(4, 4, 3, 3).requires_grad_()
    call = lambda x, w: torch.nn.functional.conv_transpose2d(x, w, **settings)
    want, got = call(x, w), torch.compile(call)(x, w)
    torch.testing.assert_close(got, want)
    seed = torch.randn_like(want)
    for a, b in zip(torch.autograd.grad(got, (x, w), seed), torch.autograd.grad(want, (x, w), seed), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["conv1d", "conv_transpose1d"])
def test_padding_that_no_size_can_hold(name):
    function = getattr(torch.nn.functional, name)
    with pytest.raises(RuntimeError, match="expected padding to be at most 4611686018427387903"):
        function(torch.ones(1, 2, 5), torch.ones(2, 2, 3), padding=2**63 - 5)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("turned", list(product((False, True), repeat=3)))
def test_results_lie_as_tensors_without_data_say(transposed, turned):
    """Channels-last where input or weight is, whatever the gradient that comes in is like."""
    x, w, g = [
        t.contiguous(memory_format=torch.channels_last) if last else t
        for t, last in zip((torch.randn(2, 4, 6, 7), torch.randn(4, 4, 3, 3), torch.randn(2, 4, 6, 7)), turned)
    ]
    attributes = ([1, 1], [1, 1], [1, 1], transposed, [0, 0], 1)

    def run(device):
        given = [t.to(device) for t in (x, w, g)]
        y = torch.ops.aten.convolution(*given[:2], None, *attributes)
        back = torch.ops.aten.convolution_backward(given[2], *given[:2], [4], *attributes, [True, True, True])
        return [t.stride() for t in (y, *back)]

    assert run("cpu") == run("meta")


@pytest.mark.parametrize(("channels", "size", "groups"), [((2, 4), 3, 2), ((4, 4), 1, 1), ((1, 3), 2, 1)])
def test_results_lie_channels_last_where_the_filter_alone_does(channels, size, groups) -> None:
    """A filter of one channel for each group, or of one pixel, is row-major as well."""
    layer = torch.nn.Conv2d(*channels, size, groups=groups).to(memory_format=torch.channels_last)
    x = torch.ones(2, channels[0], 6, 5)
    assert layer(x).is_contiguous(memory_format=torch.channels_last)
    assert layer(x.contiguous(memory_format=torch.channels_last)).is_contiguous(memory_format=torch.channels_last)
