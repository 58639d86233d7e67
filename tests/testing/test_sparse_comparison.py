"""Comparing sparse tensors: counts, indices and values, each with its words."""

import pytest

import pullback as torch
from pullback.testing import assert_close

COO = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
CSR = torch.eye(3).to_sparse_csr()


def test_equal_ones_are_close():
    assert_close(COO, COO.clone())
    assert_close(CSR, CSR.clone())
    assert_close(torch.eye(3).to_sparse_csc(), torch.eye(3).to_sparse_csc())


def test_what_differs_is_named():
    with pytest.raises(AssertionError, match="number of specified values in sparse COO tensors does not match: 2 != 1"):
        assert_close(COO, torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2)))
    with pytest.raises(AssertionError, match="Sparse COO indices are not equal"):
        assert_close(COO, torch.sparse_coo_tensor([[0, 1], [1, 1]], [1.0, 2.0], (2, 2)))
    with pytest.raises(AssertionError, match="Sparse COO values are not close"):
        assert_close(COO, torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 3.0], (2, 2)))
    with pytest.raises(AssertionError, match="Sparse CSR values are not close"):
        assert_close(CSR, (torch.eye(3) * 2).to_sparse_csr())
    with pytest.raises(AssertionError, match="number of specified values in sparse CSR tensors does not match"):
        assert_close(CSR, torch.ones(3, 3).to_sparse_csr())


def test_layouts():
    with pytest.raises(AssertionError, match="layout"):
        assert_close(COO, COO.to_dense())
    assert_close(COO, COO.to_dense(), check_layout=False)
