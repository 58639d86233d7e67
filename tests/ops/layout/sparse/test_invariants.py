"""What parts of compressed tensors are refused for, and the old constructors of sparse tensors."""

from __future__ import annotations

import pytest

import pullback as torch

C, P, V = torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.tensor([1.0, 2.0])
BAD = {
    "expected crow_indices to be a contiguous": (torch.tensor([0, 9, 1, 9, 2])[::2], P, V, (2, 2)),
    "crow_indices must have dimensionality >= 1": (torch.tensor(0), P, V, (2, 2)),
    "dimensionalities must be equal but got 2 and 1": (C[None], P, V, (2, 2)),
    r"sum of batch and block dimensionalities \(=0 \+ 0\) but got 0": (C, P, torch.tensor(1.0), (2, 2)),
    r"sum of batch, base, and dense dimensionalities \(=0 \+ 2 \+ 0\) but got 1": (C, P, V, (2,)),
    r"must be equal to tensor batch dimensions \(=\[2\]\)": (C[None], P[None], V[None], (2, 2, 2)),
    r"must have the same dtype, bot got Int and Long": (C.int(), P, V, (2, 2)),
    r"dtype must be Int or Long, but got Char": (C.to(torch.int8), P.to(torch.int8), V, (2, 2)),
    r"`0 <= col_indices < ncols` is not satisfied": (C, torch.tensor([0, 5]), V, (2, 2)),
}


@pytest.mark.parametrize("words", BAD)
def test_parts_that_make_no_tensor(words):
    with pytest.raises(RuntimeError, match=words):
        torch._validate_sparse_compressed_tensor_args(*BAD[words], torch.sparse_csr)
    with pytest.raises(RuntimeError, match=words):
        torch.sparse_csr_tensor(*BAD[words], check_invariants=True)


def test_blocks_of_no_rows_are_refused():
    with pytest.raises(RuntimeError, match="must be divisible with blocksize"):
        torch._validate_sparse_compressed_tensor_args(C[:2], P[:1], torch.ones(1, 0, 2), (2, 2), torch.sparse_bsr)
    with pytest.raises(RuntimeError, match="blocksize needs to be a tuple of size 2, but got 1"):
        torch.eye(4).to_sparse(layout=torch.sparse_bsr, blocksize=(2,))


def test_new_makes_sparse_tensors_of_sparse_ones():
    t = torch.eye(3).to_sparse()
    assert t.new().layout is torch.sparse_coo and t.new().shape == (0,)
    assert t.new(2, 3).shape == t.new(size=(2, 3)).shape == (2, 3)
    made = t.new(torch.tensor([[1]]), torch.tensor([4.0]), (2,))
    assert made.to_dense().tolist() == [0.0, 4.0]
    with pytest.raises(TypeError, match="invalid combination"):
        t.new(torch.ones(1))


def test_resize_as_takes_the_shape_of_a_sparse_tensor():
    assert torch.zeros(0).to_sparse().resize_as_(torch.eye(3).to_sparse()).shape == (3, 3)
    with pytest.raises(RuntimeError, match=r"size of sparse dimensions \(from \[3, 3\] to \[2, 2\]\)"):
        torch.eye(3).to_sparse().resize_as_(torch.eye(2).to_sparse())


def test_floor_division_has_words_of_its_own():
    with pytest.raises(RuntimeError, match="Sparse floor division requires a scalar"):
        torch.eye(3).to_sparse() // torch.eye(3).to_sparse()


def test_parts_made_in_inference_mode_are_dense():
    with torch.inference_mode():
        t = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1]]), torch.ones(3), (2,))
        assert t.to_dense().tolist() == [1.0, 2.0]
