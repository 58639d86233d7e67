"""flip, roll, repeat, triangles, diagonals, classes as rows: agreement with NumPy, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch


def counting(*shape):
    return torch.arange(float(np.prod(shape, dtype=int))).reshape(shape).clone()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda x: x.flip(0, -1), lambda a: np.flip(a, (0, 2))),
        (lambda x: torch.fliplr(x), lambda a: np.fliplr(a)),
        (lambda x: x.roll(1), lambda a: np.roll(a, 1)),
        (lambda x: x.roll((1, -1), (0, 2)), lambda a: np.roll(a, (1, -1), (0, 2))),
        (lambda x: torch.rot90(x, 3, (1, 2)), lambda a: np.rot90(a, 3, (1, 2))),
        (lambda x: x.repeat(2, 1, 1, 3), lambda a: np.tile(a, (2, 1, 1, 3))),
        (lambda x: x.tile(2), lambda a: np.tile(a, 2)),
        (lambda x: x.repeat_interleave(2, 1), lambda a: np.repeat(a, 2, 1)),
        (lambda x: x.repeat_interleave(torch.tensor([0, 1, 2]), 1), lambda a: np.repeat(a, [0, 1, 2], 1)),
        (lambda x: x.tril(-1), lambda a: np.tril(a, -1)),
        (lambda x: x.triu(1), lambda a: np.triu(a, 1)),
        (lambda x: torch.diag(x[0], 1), lambda a: np.diag(a[0], 1)),
        (lambda x: torch.diag(x[0, 0], -1), lambda a: np.diag(a[0, 0], -1)),
        (lambda x: torch.diagflat(x, 1), lambda a: np.diagflat(a, 1)),
        (lambda x: torch.vander(x[0, 0], 3), lambda a: np.vander(a[0, 0], 3)),
    ],
)
def test_values(ours, theirs):
    x = counting(2, 3, 4)
    result = ours(x)
    assert np.array_equal(result.numpy(), theirs(x.numpy()))
    assert tuple(ours(x.to("meta")).shape) == tuple(result.shape) if not _reads_data(ours) else True


def _reads_data(function) -> bool:
    try:
        function(counting(2, 3, 4).to("meta"))
    except NotImplementedError:
        return True
    return False


def test_triangles_by_place():
    for offset in (-2, 0, 1, 5):
        rows, columns = np.nonzero(np.tri(3, 4, offset))
        assert torch.tril_indices(3, 4, offset).tolist() == [rows.tolist(), columns.tolist()]
        rows, columns = np.nonzero(1 - np.tri(3, 4, offset - 1))
        assert torch.triu_indices(3, 4, offset).tolist() == [rows.tolist(), columns.tolist()]
    assert torch.tril_indices(2, 2, dtype=torch.int32).dtype is torch.int32


def test_diagonals_in_place_and_embedded():
    assert torch.zeros(4, 2).fill_diagonal_(1.0, wrap=True).nonzero().tolist() == [[0, 0], [1, 1], [3, 0]]
    result = torch.diag_embed(counting(2, 3), 1, 0, 2)
    assert result.shape == (4, 2, 4)
    assert result.diagonal(1, 0, 2).tolist() == counting(2, 3).tolist()


def test_classes_as_rows():
    one_hot = torch.nn.functional.one_hot
    assert one_hot(torch.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert one_hot(torch.tensor(1), 3).tolist() == [0, 1, 0]
    with pytest.raises(RuntimeError, match="Class values must be smaller than num_classes."):
        one_hot(torch.tensor([2]), 2)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: x.flip(0, 0), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda x: x.roll((1, 2)), RuntimeError, "shifts and dimensions must align. shifts: 2, dims:0"),
        (lambda x: torch.rot90(x, 1, (0, 0)), RuntimeError, "expected rotation dims to be different"),
        (lambda x: x.repeat(2), RuntimeError, "Number of dimensions of repeat dims can not be smaller"),
        (lambda x: x[0, 0].tril(), RuntimeError, "tril: input tensor must have at least 2 dimensions"),
        (lambda x: torch.diag(x), RuntimeError, "diag(): Supports 1D or 2D tensors. Got 3D"),
        (
            lambda x: x.repeat_interleave(torch.tensor([1, 2]), 2),
            RuntimeError,
            "repeats must have the same size as input",
        ),
        (lambda x: torch.tril_indices(-1, 2), RuntimeError, "row must be non-negative, got-1"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error) as caught:
        call(counting(2, 3, 4))
    assert words in str(caught.value)


def test_gradients_sum_over_copies():
    x = counting(2, 3).requires_grad_()
    weights = counting(2, 2, 6)
    (g,) = torch.autograd.grad(x.repeat(2, 1, 2), x, weights)
    assert np.array_equal(g.numpy(), weights.numpy().reshape(2, 2, 2, 3).sum((0, 2)))
    (g,) = torch.autograd.grad(x.flip(0).roll(1, 1).tril(), x, counting(2, 3))
    expected = np.flip(np.roll(np.tril(counting(2, 3).numpy()), -1, 1), 0)
    assert np.array_equal(g.numpy(), expected)


def test_powers_of_integers_are_long() -> None:
    assert torch.vander(torch.tensor([1, 2], dtype=torch.int8)).dtype is torch.int64
    assert torch.vander(torch.tensor([True, False])).tolist() == [[1, 1], [0, 1]]


def test_a_diagonal_of_one_element_is_new_memory():
    x = torch.ones(1, 3)
    assert x.diag().stride() == (1,) and torch.ones(3, 4).diag().stride() == (1,)


def test_results_that_are_no_views_may_be_cut_off_in_place() -> None:
    x = torch.arange(6.0, requires_grad=True)
    for result in (torch.rot90(x.view(2, 3)), torch.rot90(x.view(2, 3), 3), x @ torch.ones(6, 2)):
        assert result._base is None and not result.detach_().requires_grad


def test_rotations_keep_the_order_of_memory_that_a_flip_keeps() -> None:
    x = torch.arange(35.0).view(5, 7)
    strides = [((7, 1), (5, 1)), ((1, 7), (7, 1)), ((7, 1), (1, 7)), ((1, 7), (7, 1))]
    for k, (rows, columns) in enumerate(strides):
        assert torch.rot90(x, k).stride() == rows and torch.rot90(x.t(), k).stride() == columns
    images = torch.arange(24.0).view(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)
    assert images.rot90(1, (2, 3)).stride() == (24, 1, 2, 8) and images.flip(2).stride() == (24, 1, 8, 2)
    assert torch.rot90(x.requires_grad_(), 1).grad_fn.name() == "Rot90Backward0"
