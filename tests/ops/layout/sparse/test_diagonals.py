"""Sparse matrices by their diagonals: the places that PyTorch puts numbers in, and what it refuses."""

import pytest

import pullback as torch

D = torch.arange(9.0).reshape(3, 3)
WANTED = [[0, 0, 8, 0, 0], [3, 1, 0, 0, 0], [0, 4, 2, 0, 0], [0, 0, 5, 0, 0]]


@pytest.mark.parametrize("layout", [None, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_element_j_stands_in_column_j(layout):
    result = torch.sparse.spdiags(D, torch.tensor([0, -1, 2]), (4, 5), layout)
    assert result.layout is (layout or torch.sparse_coo)
    assert result._nnz() == 7 and result.to_dense().tolist() == WANTED


def test_one_diagonal_may_be_a_vector():
    below = torch.sparse.spdiags(D[0], torch.tensor(-1), (3, 3))
    assert below.to_dense().tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0]] and below._nnz() == 2


def test_gradients_reach_what_is_in_the_matrix():
    x = D.clone().requires_grad_()
    torch.sparse.spdiags(x, torch.tensor([0, -1, 2]), (4, 5)).to_dense().sum().backward()
    assert x.grad.tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 1]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((D, torch.tensor([0, 0, 1]), (3, 3)), "duplicate values"),
        ((D, torch.tensor([0, 1]), (3, 3)), r"diagonals \(3\) does not match the number of offsets \(2\)"),
        ((D, torch.tensor([0.0, 1.0, 2.0]), (3, 3)), "dtype Long but got Float"),
        ((D, torch.tensor([0, 1, 2]), (3,)), "Output shape must be 2d"),
        ((D[None], torch.tensor([0]), (3, 3)), "vector or matrix"),
        ((D, torch.tensor([0, 1, 2]), (3, 3), torch.strided), "Only output layouts"),
    ],
)
def test_what_is_refused(arguments, words):
    with pytest.raises(RuntimeError, match=words):
        torch.sparse.spdiags(*arguments)
