"""Padding, unfolding and shuffling against NumPy; transposes; and the public functions' words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as torch
from pullback.ops.system.operator import exports
from pullback.ops.window.kernels import pad, shuffle, unfold

F = exports["nn.functional"]
rng = np.random.default_rng(0)
NUMPY = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", NUMPY)
@given(low=st.tuples(st.integers(0, 3), st.integers(0, 3)), high=st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_index_pad(mode, low, high):
    x = rng.standard_normal((2, 3, 4, 5))
    y = pad.index_pad(np, x, low, high, mode)
    np.testing.assert_array_equal(y, np.pad(x, [(0, 0), (0, 0), *zip(low, high)], mode=NUMPY[mode]))
    g = rng.standard_normal(y.shape)
    gx = pad.index_pad_backward(np, g, x.shape[2:], low, high, mode)
    np.testing.assert_allclose((gx * x).sum(), (g * y).sum(), atol=1e-9)


@pytest.mark.parametrize("mode", NUMPY)
def test_negative_amounts_crop(mode):
    x = np.arange(5.0)[None, None]
    assert pad.index_pad(np, x, (-1,), (-2,), mode).tolist() == [[[1, 2]]]
    assert pad.constant_pad(np, x, (-1,), (1,), 9).tolist() == [[[1, 2, 3, 4, 9]]]
    want = {"reflect": [1, 2, 3, 4, 3, 2], "replicate": [1, 2, 3, 4, 4, 4], "circular": [1, 2, 3, 4, 1, 2]}
    assert pad.index_pad(np, x, (-1,), (2,), mode).tolist() == [[want[mode]]]


@pytest.mark.parametrize("mode", ["constant", *NUMPY])
def test_public_pad_is_the_kernel(mode):
    x = torch.arange(24.0).reshape(1, 2, 3, 4)
    got = F["pad"](x, (1, 2, -1, 1), mode)
    wanted = [(0, 0), (0, 0), (0, 1), (1, 2)]
    options = {"mode": NUMPY[mode]} if mode in NUMPY else {}
    np.testing.assert_array_equal(got.numpy(), np.pad(x.numpy()[:, :, 1:], wanted, **options))


def test_constant_of_other_dtypes():
    assert F["pad"](torch.ones(2, dtype=torch.bool), (1, 1), value=True).tolist() == [True] * 4
    assert F["pad"](torch.ones(2, dtype=torch.int64), (1, 0), value=1.5).tolist() == [1, 1, 1]
    assert F["pad"](torch.ones(2, 2), (0, 0)).tolist() == [[1.0, 1.0]] * 2


def test_fold_is_the_transpose_of_unfold():
    attributes = ((2, 3), (2, 1), (1, 2), (1, 2))  # kernel, dilation, padding, stride
    x = rng.standard_normal((2, 3, 6, 5))
    columns = unfold.unfold(np, x, *attributes)
    g = rng.standard_normal(columns.shape)
    back = unfold.fold(np, g, x.shape[2:], *attributes)
    np.testing.assert_allclose((back * x).sum(), (g * columns).sum())
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (2, 2)])
    np.testing.assert_array_equal(columns[0, :, 0], wide[0, :, 0:3:2, 0:3].ravel())


def test_shuffles_undo_each_other():
    x = rng.standard_normal((2, 18, 2, 3))
    y = shuffle.pixel_shuffle(np, x, 3)
    assert y.shape == (2, 2, 6, 9) and y[1, 1, 4, 5] == x[1, 9 + 1 * 3 + 2, 1, 1]
    np.testing.assert_array_equal(shuffle.pixel_unshuffle(np, y, 3), x)
    assert shuffle.channel_shuffle(np, np.arange(6).reshape(1, 6, 1), 2).ravel().tolist() == [0, 3, 1, 4, 2, 5]


ERRORS = [
    (lambda: F["pad"](torch.ones(2), (1,)), RuntimeError, "Padding length must be divisible by 2"),
    (lambda: F["pad"](torch.ones(2), (1, 1), "reflect"), NotImplementedError,
     "Padding size 2 is not supported for 1D input tensor."),
    (lambda: F["pad"](torch.ones(1, 2, 2), (2, 1), "reflect"), RuntimeError,
     "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (2, 1) at "
     "dimension 2 of input [1, 2, 2]"),
    (lambda: F["pad"](torch.ones(1, 2, 2), (3, 1), "circular"), RuntimeError,
     "Padding value causes wrapping around more than once."),
    (lambda: F["unfold"](torch.ones(1, 2, 2, 2), 3), RuntimeError,
     "calculated shape of the array of sliding blocks as (0, 0), but its components must be at least one."),
    (lambda: F["fold"](torch.ones(1, 3, 1), (2, 2), 2), RuntimeError,
     "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)=3"),
    (lambda: F["pixel_shuffle"](torch.ones(1, 3, 2, 2), 2), RuntimeError, "input.size(-3)=3 is not divisible by 4"),
    (lambda: F["channel_shuffle"](torch.ones(1, 3, 2, 2), 2), RuntimeError,
     "Number of channels must be divisible by groups. Got 3 channels and 2 groups."),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int16", "complex128"])
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_pixel_shuffle_is_the_rule_in_every_dtype(factor, dtype):
    for shape in ((factor**2, 1, 9), (2, 3 * factor**2, 5, 7), (2, 2, 2 * factor**2, 17, 33)):
        x = (torch.randn(shape) * 9).to(getattr(torch, dtype))
        np.testing.assert_array_equal(
            F["pixel_shuffle"](x, factor).numpy(), shuffle.pixel_shuffle(np, x.numpy(), factor)
        )


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS)
def test_words(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)


def test_what_a_negative_circular_pad_leaves_is_memory_of_its_own():
    x = torch.arange(5.0).reshape(1, 1, 5)
    torch.nn.functional.pad(x, (-1, -1), mode="circular").zero_()
    assert x.flatten().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
