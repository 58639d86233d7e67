"""Compressed layouts: slices of batches, values in the same places, products, copies and refusals."""

import pytest

import pullback as torch

LAYOUTS = {
    "csr": lambda d: d.to_sparse_csr(),
    "csc": lambda d: d.to_sparse_csc(),
    "bsr": lambda d: d.to_sparse_bsr((2, 1)),
    "bsc": lambda d: d.to_sparse_bsc((2, 1)),
}
MATRIX = torch.tensor([[0.0, 2, 0], [1, 0, 0], [0, 0, 3], [4, 0, 5]], dtype=torch.float64)
BATCH = torch.stack([MATRIX, MATRIX * 2])


@pytest.mark.parametrize("name", LAYOUTS)
def test_slices_of_a_batch_keep_their_layout(name):
    sparse = LAYOUTS[name](BATCH)
    one = sparse.select(0, 1)
    assert one.layout is sparse.layout and torch.equal(one.to_dense(), BATCH[1])
    assert torch.equal(sparse[1].to_dense(), BATCH[1])
    with pytest.raises(RuntimeError, match="selecting sparse dimensions is not supported for batched"):
        sparse.select(1, 0)
    with pytest.raises(IndexError, match="out of range"):
        sparse.select(0, 2)
    assert torch.equal(LAYOUTS[name](MATRIX).select(0, 3).to_dense(), MATRIX[3])


@pytest.mark.parametrize("name", LAYOUTS)
def test_like_keeps_the_places(name):
    sparse = LAYOUTS[name](MATRIX)
    for made in (torch.empty_like(sparse), torch.randn_like(sparse), torch.rand_like(sparse, dtype=torch.float32)):
        assert made.layout is sparse.layout and made._nnz() == sparse._nnz()
        by_row = sparse.layout in (torch.sparse_csr, torch.sparse_bsr)
        for part in ("crow_indices", "col_indices") if by_row else ("ccol_indices", "row_indices"):
            assert torch.equal(getattr(made, part)(), getattr(sparse, part)())
    assert torch.zeros_like(sparse)._nnz() == 0
    with pytest.raises(RuntimeError, match="empty_like with different sparse layout is not supported"):
        torch.empty_like(sparse, layout=torch.sparse_coo)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_matrix_and_a_vector_are_added_to_another(name):
    v, x = torch.tensor([1.0, 2, 3], dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    got = torch.addmv(x, LAYOUTS[name](MATRIX), v, beta=2, alpha=3)
    assert torch.allclose(got, 2 * x + 3 * (MATRIX @ v))
    assert torch.allclose(torch.addmv(x, LAYOUTS[name](MATRIX), v, beta=0), MATRIX @ v)


def test_triangular_systems():
    a = torch.tensor([[2.0, 1], [0, 4]], dtype=torch.float64)
    b = torch.tensor([[3.0], [8]], dtype=torch.float64)
    got = torch.triangular_solve(b, a.to_sparse_csr(), upper=True).solution
    assert torch.allclose(a @ got, b)


@pytest.mark.parametrize("sparse", [MATRIX.to_sparse(), MATRIX.to_sparse_csr()], ids=["coo", "csr"])
def test_elements_cannot_be_assigned(sparse):
    with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
        sparse[0, 0] = 9.0
    assert torch.equal(sparse.to_dense(), MATRIX)


def test_copies_need_one_layout_and_as_many_elements():
    sparse = MATRIX.to_sparse_csr()
    target = (MATRIX * 7).to_sparse_csr()
    assert torch.equal(target.copy_(sparse).to_dense(), MATRIX)
    with pytest.raises(RuntimeError, match="having different layouts is not supported"):
        target.copy_(MATRIX)
    with pytest.raises(RuntimeError, match="same number of specified elements"):
        target.copy_(torch.ones(4, 3, dtype=torch.float64).to_sparse_csr())
    with pytest.raises(RuntimeError, match="having different block sizes"):
        MATRIX.to_sparse_bsr((2, 1)).copy_(MATRIX.to_sparse_bsr((1, 3)))


def test_parts_are_checked():
    good = torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0])
    torch._validate_sparse_compressed_tensor_args(*good, (1, 1), torch.sparse_csr)
    torch._validate_sparse_csc_tensor_args(*good, (1, 1))
    torch._validate_sparse_coo_tensor_args(torch.tensor([[0]]), torch.tensor([1.0]), (1,))
    with pytest.raises(RuntimeError):
        torch._validate_sparse_csr_tensor_args(torch.tensor([0, 2]), *good[1:], (1, 1))
    with pytest.raises(RuntimeError):
        torch._validate_sparse_coo_tensor_args(torch.tensor([[3]]), torch.tensor([1.0]), (1,))


def test_dimensions_of_different_kinds_are_not_exchanged():
    with pytest.raises(RuntimeError, match=r"of the same type .* got 0\(Batch\) and 1\(Sparse\)"):
        BATCH.to_sparse_csr().transpose(0, 1)
