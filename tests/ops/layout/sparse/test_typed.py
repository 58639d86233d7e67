"""Sparse tensors made the old way, by dtype."""

import pytest

import pullback as torch
from pullback.ops.layout import sparse


def test_typed_constructors_make_coo_tensors():
    x = sparse.FloatTensor(torch.tensor([[0, 1], [2, 0]]), torch.tensor([3.0, 4.0]), torch.Size([2, 3]))
    assert x.layout is torch.sparse_coo and x.to_dense().tolist() == [[0, 0, 3], [4, 0, 0]]
    assert isinstance(x, sparse.FloatTensor) and not isinstance(x, sparse.DoubleTensor)
    assert not isinstance(x.to_dense(), sparse.FloatTensor)
    assert sparse.LongTensor(2, 3).shape == (2, 3) and sparse.LongTensor(2, 3).dtype is torch.int64
    assert sparse.DoubleTensor().shape == (0,)


def test_parts_of_compressed_tensors_as_operators():
    x = torch.eye(2)
    rows, columns = x.to_sparse_csr(), x.to_sparse_csc()
    assert (
        torch.ops.aten.crow_indices(rows).tolist() == [0, 1, 2] == torch.ops.aten.ccol_indices.default(columns).tolist()
    )
    assert torch.ops.aten.col_indices(rows).tolist() == [0, 1] == torch.ops.aten.row_indices(columns).tolist()
    assert torch.ops.aten._nnz(rows) == 2


I8 = torch.ones(2, 3, dtype=torch.int8)


@pytest.mark.parametrize(
    "product, dtype",
    [
        (lambda one: I8.to_sparse() * torch.tensor(2).to_sparse(), torch.int8),
        (lambda one: torch.tensor(2).to_sparse() * I8.to_sparse(), torch.int8),
        (lambda one: I8.to_sparse() * torch.tensor(1.5).to_sparse(), torch.float32),
        (lambda one: torch.tensor(3) * I8.to_sparse(), torch.int8),
        (lambda one: one * torch.tensor(2), torch.int64),
        (lambda one: torch.tensor(2) * one, torch.int64),
        (lambda one: one * 1.5, torch.float32),
    ],
)
def test_a_sparse_number_counts_as_a_number(product, dtype):
    result = product(torch.tensor(1, dtype=torch.int8).to_sparse())
    assert result.dtype is dtype and result.to_dense().dtype is dtype


def test_a_dense_number_and_a_sparse_one_are_added():
    assert (torch.tensor(1.0) + torch.tensor(2.0).to_sparse()).item() == 3.0
    assert (torch.tensor(1.0) - torch.tensor(2.0).to_sparse()).item() == -1.0
    with pytest.raises(RuntimeError, match="Use add\\(dense, sparse\\)"):
        torch.tensor(1.0) + torch.ones(2).to_sparse()


@pytest.mark.parametrize("make", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_truths_are_not_subtracted(make):
    truths = make(torch.ones(2, 2, dtype=torch.bool))
    with pytest.raises(RuntimeError, match="with two bool tensors is not supported"):
        truths - truths


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_zeros_like_a_dense_tensor_may_be_sparse(layout):
    result = torch.zeros_like(torch.ones(2, 3, dtype=torch.int16), layout=layout)
    assert (result.layout, result.dtype, result.shape, result._nnz()) == (layout, torch.int16, (2, 3), 0)


def test_a_layout_that_a_tensor_has_anyway_may_be_named():
    sparse = torch.eye(3).to_sparse_csr()
    full = torch.full_like(sparse, 2, layout=torch.sparse_csr)
    assert full.to_dense().tolist() == (2 * torch.eye(3)).tolist()
    assert torch.randn_like(sparse, layout=torch.sparse_csr)._nnz() == 3


def test_of_two_sparse_numbers_the_first_keeps_its_elements():
    twice = torch.sparse_coo_tensor(torch.zeros(0, 2, dtype=torch.int64), torch.tensor([1, 2]), ())
    product = twice * torch.tensor(3).to_sparse()
    assert product._nnz() == 2 and product.to_dense().item() == 9
