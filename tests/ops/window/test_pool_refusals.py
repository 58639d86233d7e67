"""What pooling refuses, in the words in which PyTorch does."""

import pytest

import pullback as torch

F, aten = torch.nn.functional, torch.ops.aten
IMAGE, VOLUME = torch.ones(1, 2, 7, 7), torch.ones(1, 2, 7, 7, 7)
DRAWS, DEEP_DRAWS = torch.full((1, 2, 2), 0.5), torch.full((1, 2, 3), 0.5)


def fractional(x=IMAGE, kernel=(2, 2), size=(3, 3), draws=DRAWS):
    return F.fractional_max_pool2d(x, kernel, output_size=size, _random_samples=draws)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": ()}, "kernel_size must either be a single Int or tuple of Ints"),
        ({"kernel": (1,)}, "kernel_size must either"),
        ({"size": (3,)}, "output_size must either be a single Int or tuple of Ints"),
        ({"size": (9, 3)}, "too large relative to input height"),
        ({"x": torch.ones(1, 0, 7, 7)}, "non-zero size for non-batch dimensions.*dimension 1 being empty"),
        ({"draws": DRAWS[:0]}, r"Expect _random_samples.size\(0\) no less then input batch size"),
        ({"draws": DRAWS[:, :1]}, r"Expect _random_samples.size\(1\) equals to input channel size"),
        ({"draws": DEEP_DRAWS}, r"Expect _random_samples.size\(2\) equals to 2; got 3"),
        ({"draws": DRAWS[0]}, "Expect _random_samples to have 3 dimensions, got 2"),
    ],
)
def test_fractional(options, words):
    with pytest.raises(RuntimeError, match=words):
        fractional(**options)


def test_fractional_windows_of_nothing():
    assert fractional(size=(0, 1)).shape == (1, 2, 0, 1)
    assert fractional(x=torch.ones(0, 2, 7, 7), draws=DRAWS[:0]).shape == (0, 2, 3, 3)
    assert F.fractional_max_pool3d(VOLUME, 2, output_size=(0, 1, 1), _random_samples=DEEP_DRAWS).shape == (
        1,
        2,
        0,
        1,
        1,
    )
    with pytest.raises(RuntimeError, match="kernel_size must either be a single Int or tuple of three Ints"):
        F.fractional_max_pool3d(VOLUME, (2, 2), output_size=(1, 1, 1))
    with pytest.raises(ValueError, match="kernel_size must be greater than 0"):
        torch.nn.FractionalMaxPool3d(0, output_size=1)


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_adaptive_maxima_of_no_channels(spatial):
    pool = getattr(F, f"adaptive_max_pool{spatial}d")
    shape = (4,) * spatial
    with pytest.raises(RuntimeError, match=rf"adaptive_max_pool{spatial}d\(\): Expected input to have non-zero size"):
        pool(torch.ones(1, 0, *shape), 3)
    assert pool(torch.ones(0, 1, *shape), 3).shape == (0, 1, *(3,) * spatial)
    assert pool(torch.ones(0, *shape), 3).shape == (0, *(3,) * spatial)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda at: aten.adaptive_max_pool2d_backward(IMAGE, IMAGE, at),
            r"expected sizes \[1, 2, 3, 3\] for `grad_output`",
        ),
        (lambda at: aten.adaptive_max_pool3d_backward(VOLUME, VOLUME, at), "expected dimensions 5 for `indices`"),
        (lambda at: aten._adaptive_avg_pool2d_backward(IMAGE, VOLUME), "Expected dimensions 5 for `grad_output`"),
        (
            lambda at: aten.fractional_max_pool2d_backward(IMAGE, IMAGE, (2, 2), (3, 3), at),
            "gradOutput sizes unexpected",
        ),
        (
            lambda at: aten.max_pool2d_with_indices_backward(IMAGE, IMAGE, (1, 1), (1, 1), (0, 0), (1, 1), False, at),
            r"tensor.size\[2\] == 7 but got: dimension 4 and tensor.size\[2\] = 3",
        ),
    ],
)
def test_gradients_of_other_shapes(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(torch.ones(1, 2, 3, 3, dtype=torch.int64))


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_adaptive_sizes_that_no_memory_has_are_refused_at_once(kind, spatial):
    pool = getattr(torch.nn.functional, f"adaptive_{kind}_pool{spatial}d")
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        pool(torch.ones(1, 2, *[2] * spatial), 2**62 if spatial == 1 else (2**31,) * spatial)
