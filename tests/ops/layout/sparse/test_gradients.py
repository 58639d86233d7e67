"""Sparse gradients of look-ups, and how leaves accumulate them."""

import pytest

import pullback as torch
from pullback.nn import functional as F


def weight():
    return torch.arange(10, dtype=torch.float64).reshape(5, 2).requires_grad_()


LOOKUPS = {
    "embedding": lambda w, sparse: F.embedding(torch.tensor([[0, 3], [3, 1]]), w, sparse=sparse),
    "padded": lambda w, sparse: F.embedding(torch.tensor([0, 3, 3]), w, padding_idx=3, sparse=sparse),
    "bag": lambda w, sparse: F.embedding_bag(torch.tensor([0, 3, 3]), w, torch.tensor([0, 1]), sparse=sparse),
    "gather": lambda w, sparse: w.gather(0, torch.tensor([[0, 4], [4, 4]]), sparse_grad=sparse),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_sparse_gradients_are_the_dense_ones(name):
    result = []
    for sparse in (False, True):
        w = weight()
        (LOOKUPS[name](w, sparse) ** 2).sum().backward()
        assert w.grad.is_sparse is sparse
        result.append(w.grad.to_dense())
    assert torch.allclose(*result)


def test_accumulation_of_sparse_and_dense():
    w = weight()
    loss = lambda: LOOKUPS["embedding"](w, True).sum()
    loss().backward()
    first = w.grad
    loss().backward()
    assert w.grad is first and w.grad.is_sparse
    w.sum().backward()
    assert not w.grad.is_sparse
    assert w.grad.tolist() == [[3, 3], [3, 3], [1, 1], [5, 5], [1, 1]]
    loss().backward()
    assert w.grad.tolist() == [[4, 4], [4, 4], [1, 1], [7, 7], [1, 1]]


def test_sums_within_one_backward():
    w = weight()
    (LOOKUPS["embedding"](w, True).sum() + w.sum()).backward()
    assert w.grad.tolist() == [[2, 2], [2, 2], [1, 1], [3, 3], [1, 1]]


def test_a_gradient_given_by_the_user_is_copied():
    w = torch.ones(2, requires_grad=True)
    given = torch.sparse_coo_tensor([[1]], [2.0], (2,))
    w.backward(given)
    given._values().zero_()
    assert w.grad.to_dense().tolist() == [0, 2]
