"""Sparse tensors of other shapes, layouts and index dtypes in one call: numbers as PyTorch gives them."""

import pytest

import pullback as torch

X = torch.tensor([[1.0, 0, 2], [0, 3, 0]])
ROW_MAJOR = torch.tensor([[1.0, 2, 3], [4, 5, 6]])


def _with_int32(t):
    return torch.sparse_csr_tensor(t.crow_indices().int(), t.col_indices().int(), t.values(), t.shape)


def test_alpha_goes_with_the_compressed_operand():
    sparse, ones = torch.tensor([[1.0, 0], [0, 2]]).to_sparse_csr(), torch.ones(2, 2)
    assert torch.add(sparse, ones, alpha=10).tolist() == [[11, 1], [1, 21]]
    assert torch.add(ones, sparse, alpha=10).tolist() == [[11, 1], [1, 21]]


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8, torch.bool])
def test_one_element_keeps_its_dtype(dtype):
    dense = torch.tensor([[1, 0], [0, 2]]).to(dtype)
    for sparse in (dense.to_sparse(), dense.to_sparse_csr()):
        assert sparse[0, 0].dtype is dtype and sparse[0, 0].item() == 1


def test_conversions_between_compressed_layouts_keep_the_dtype_of_indices():
    t = _with_int32(X.to_sparse_csr())
    assert t.to_sparse_csc().row_indices().dtype is torch.int32
    assert t.to_sparse_bsr((1, 1)).col_indices().dtype is torch.int32
    assert (t + _with_int32(torch.ones(2, 3).to_sparse_csr())).col_indices().dtype is torch.int32


def test_products_of_compressed_tensors_hold_what_both_hold():
    a, b = torch.tensor([[1.0, 2], [4, 0]]), torch.tensor([[1.0, 0], [4, 5]])
    for other in (b.to_sparse_csr(), b.to_sparse_csc()):
        product = a.to_sparse_csr() * other
        assert product.col_indices().tolist() == [0, 0] and product.values().tolist() == [1, 16]


def test_products_broadcast():
    two = torch.tensor(2.0).to_sparse()
    for product in (two * ROW_MAJOR.to_sparse(), ROW_MAJOR.to_sparse() * two, two * ROW_MAJOR):
        assert product.is_sparse and product.to_dense().tolist() == [[2, 4, 6], [8, 10, 12]]
    product = torch.tensor([1.0, 2, 3]).to_sparse() * ROW_MAJOR
    assert product.sparse_dim() == 2 and product.to_dense().tolist() == [[1, 4, 9], [4, 10, 18]]
    hybrid = ROW_MAJOR.to_sparse(1) * torch.tensor([[2.0], [3.0]]).to_sparse(1)
    assert hybrid.to_dense().tolist() == [[2, 4, 6], [12, 15, 18]]
    with pytest.raises(RuntimeError, match="shape of sparse dimensions"):
        ROW_MAJOR.to_sparse() * torch.ones(2, 1).to_sparse()


def test_nothing_can_be_added_whatever_its_dimensions():
    nothing = torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.int64), torch.zeros(0, 3), (2, 3))
    for total in (X.to_sparse() + nothing, nothing + X.to_sparse()):
        assert total.sparse_dim() == 2 and total.to_dense().tolist() == X.tolist()


def test_zeros_like_takes_the_layout_asked_for():
    csr = _with_int32(X.to_sparse_csr())
    csc = torch.zeros_like(csr, layout=torch.sparse_csc)
    assert csc.layout is torch.sparse_csc and csc.ccol_indices().tolist() == [0] * 4
    assert csc.row_indices().dtype is torch.int32
    assert torch.zeros_like(csr, layout=torch.sparse_coo).layout is torch.sparse_coo
    assert torch.zeros_like(X.to_sparse(), layout=torch.sparse_csr).crow_indices().tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="blocksize needs to be a tuple of size 2, but got 0"):
        torch.zeros_like(csr, layout=torch.sparse_bsr)
    images = torch.rand(2, 3, 4, 5).to_sparse()
    dense = torch.zeros_like(images, layout=torch.strided, memory_format=torch.channels_last)
    assert dense.stride() == (60, 1, 15, 3)


def test_batches_and_dense_dimensions_are_transposed():
    dense = torch.arange(1.0, 49).reshape(2, 3, 2, 4)
    csr = dense.to_sparse_csr()
    moved = csr.transpose(0, 1)
    assert moved.layout is torch.sparse_csr and moved.to_dense().tolist() == dense.transpose(0, 1).tolist()
    hybrid = dense.to_sparse_csr(dense_dim=2)
    assert hybrid.transpose(2, 3).to_dense().tolist() == dense.transpose(2, 3).tolist()
    blocks = dense.to_sparse_bsr((2, 2))
    assert blocks.transpose(2, 3).to_dense().tolist() == dense.transpose(2, 3).tolist()
