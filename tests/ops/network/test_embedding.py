"""Rows by index: embedding, bags of them, renormalization."""

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.autograd import gradcheck, gradgradcheck


def _table(rows=5, size=3):
    return torch.randn(rows, size, dtype=torch.float64, requires_grad=True)


def test_rows_and_their_gradient():
    weight, index = _table(), torch.tensor([[0, 2], [2, 4]])
    out = F.embedding(index, weight)
    assert np.array_equal(out.detach().numpy(), weight.detach().numpy()[index.numpy()])
    out.sum().backward()
    assert weight.grad[:, 0].tolist() == [1, 0, 2, 0, 1]
    assert gradcheck(lambda w: F.embedding(index, w), (weight,))
    assert gradgradcheck(lambda w: F.embedding(index, w), (weight,))


def test_the_padding_row_gets_no_gradient_and_frequent_rows_less():
    weight, index = _table(), torch.tensor([1, 1, 2])
    F.embedding(index, weight, padding_idx=-3).sum().backward()
    assert weight.grad[:, 0].tolist() == [0, 2, 0, 0, 0]
    weight.grad = None
    F.embedding(index, weight, scale_grad_by_freq=True).sum().backward()
    assert weight.grad[:, 0].tolist() == [0, 1, 1, 0, 0]


def test_max_norm_shortens_the_rows_that_are_used():
    weight = torch.full((3, 4), 2.0)
    F.embedding(torch.tensor([0, 2]), weight, max_norm=1.0)
    assert torch.allclose(weight.norm(dim=1), torch.tensor([1.0, 4.0, 1.0]))


@pytest.mark.parametrize("many", [1, 200])
@pytest.mark.parametrize("bad", [-1, 5])
def test_indices_outside_the_table(bad, many):
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding(torch.tensor([0] * many + [bad]), _table())


def test_indices_are_integers():
    with pytest.raises(RuntimeError, match=r"one of the following scalar types: Long, Int; but got torch.FloatTensor"):
        F.embedding(torch.ones(2), _table())


def test_sparse_gradients_hold_the_rows_that_were_used():
    weight = _table()
    F.embedding(torch.tensor([1, 1]), weight, sparse=True).sum().backward()
    assert weight.grad.is_sparse and weight.grad.to_dense()[:, 0].tolist() == [0, 2, 0, 0, 0]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_bags_are_reductions_of_rows(mode, padding):
    weight, index, offsets = _table(), torch.tensor([0, 2, 2, 4, 1, 2]), torch.tensor([0, 2, 2, 5])
    got = F.embedding_bag(index, weight, offsets, mode=mode, padding_idx=padding)
    bags = [[0, 2], [], [2, 4, 1], [2]]
    for row, bag in zip(got, bags, strict=True):
        kept = [i for i in bag if i != padding]
        rows = weight[torch.tensor(kept, dtype=torch.int64)]
        want = (
            {"sum": rows.sum(0), "mean": rows.mean(0), "max": rows.amax(0) if kept else None}[mode]
            if kept
            else torch.zeros(3)
        )
        assert torch.allclose(row, want.double())
    if padding is None:
        assert gradcheck(lambda w: F.embedding_bag(index, w, offsets, mode=mode), (weight,))


def test_bags_of_one_size_and_weights_of_samples():
    weight, index = _table(), torch.tensor([[0, 2], [1, 1]])
    samples = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    got = F.embedding_bag(index, weight, mode="sum", per_sample_weights=samples)
    assert torch.allclose(got, (weight[index] * samples.unsqueeze(-1)).sum(1))
    assert gradcheck(lambda w, s: F.embedding_bag(index, w, mode="sum", per_sample_weights=s), (weight, samples))


@pytest.mark.parametrize(
    "kwargs, error, words",
    [
        ({}, ValueError, "offsets has to be a 1D Tensor but got None"),
        ({"offsets": [1, 2]}, RuntimeError, r"offsets\[0\] has to be 0"),
        ({"offsets": [0, 9]}, RuntimeError, r"offsets\[-1\] can not be greater than input's length 3"),
        ({"offsets": [0], "mode": "foo"}, ValueError, "mode has to be one of sum, mean or max"),
        ({"offsets": [0], "mode": "max", "scale_grad_by_freq": True}, ValueError, "max mode does not support scaling"),
    ],
)
def test_errors_of_bags(kwargs, error, words):
    if "offsets" in kwargs:
        kwargs = {**kwargs, "offsets": torch.tensor(kwargs["offsets"])}
    with pytest.raises(error, match=words):
        F.embedding_bag(torch.tensor([0, 1, 2]), _table(), **kwargs)


def test_bags_of_one_size_with_the_end_among_the_offsets():
    weight, bags = torch.arange(8.0).reshape(4, 2), torch.tensor([[0, 1], [2, 3]])
    out = F.embedding_bag(bags, weight, mode="sum", include_last_offset=True)
    assert out.tolist() == [[2.0, 4.0], [10.0, 12.0]]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 1])
def test_indices_behind_the_last_offset_take_no_part(mode, padding_idx):
    weight = torch.arange(12.0, dtype=torch.float64).reshape(4, 3).requires_grad_()
    indices, offsets = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 1, 3])
    options = dict(mode=mode, padding_idx=padding_idx, include_last_offset=True)
    F.embedding_bag(indices, weight, offsets, **options).sum().backward()
    got, weight.grad = weight.grad, None
    F.embedding_bag(indices[:3], weight, offsets, **options).sum().backward()
    assert torch.equal(got, weight.grad) and not got[3].any()


def test_samples_behind_the_last_offset_have_no_gradient():
    weight, factors = torch.ones(4, 3), torch.ones(4, requires_grad=True)
    bags = F.embedding_bag(
        torch.tensor([0, 1, 2, 3]), weight, torch.tensor([0, 2]), mode="sum", per_sample_weights=factors,
        include_last_offset=True,
    )  # fmt: skip
    bags.sum().backward()
    assert factors.grad.tolist() == [3.0, 3.0, 0.0, 0.0]


@pytest.mark.parametrize(("rows", "indices"), [(0, []), (10, [[0, 2], [4, 3]])])
def test_a_table_without_columns_has_a_sparse_gradient(rows, indices):
    table = torch.nn.Embedding(rows, 0, sparse=True)
    table(torch.tensor(indices, dtype=torch.int64)).sum().backward()
    assert table.weight.grad.is_sparse and table.weight.grad.shape == (rows, 0)


@pytest.mark.parametrize(
    ("weight", "indices", "offsets", "words"),
    [
        ((2, 6), (2, 0, 3), (2,), "input has to be a 1D or 2D Tensor"),
        ((2, 2), (2,), (2, 1), "offsets has to be a 1D Tensor"),
        ((2, 2, 2), (2,), (2,), "weight has to be a 2D Tensor"),
    ],
)
def test_bags_name_the_argument_of_a_wrong_rank(weight, indices, offsets, words):
    indices, offsets = (torch.zeros(shape, dtype=torch.int64) for shape in (indices, offsets))
    with pytest.raises(RuntimeError, match=words):
        torch.embedding_bag(torch.zeros(weight), indices, offsets)


def test_bags_of_indices_in_another_order_of_memory():
    weight, at, factors = torch.arange(30.0).reshape(10, 3), torch.arange(8).reshape(4, 2).T, torch.rand(4, 2).T
    expected = F.embedding_bag(at.contiguous(), weight, per_sample_weights=factors.contiguous(), mode="sum")
    assert torch.equal(F.embedding_bag(at, weight, per_sample_weights=factors, mode="sum"), expected)
    assert torch.equal(F.embedding_bag(at, weight), F.embedding_bag(at.contiguous(), weight))
