"""Compressed layouts: construction, checks, every conversion both ways, products and gradients."""

import itertools

import pytest

import pullback as torch

LAYOUTS = {
    torch.strided: None,
    torch.sparse_coo: None,
    torch.sparse_csr: None,
    torch.sparse_csc: None,
    torch.sparse_bsr: (2, 1),
    torch.sparse_bsc: (1, 2),
}
X = [[0.0, 2.0, 0.0, 1.0], [3.0, 0.0, 4.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 5.0, 6.0]]


def dense():
    return torch.tensor(X, dtype=torch.float64)


def test_parts():
    s = torch.sparse_csr_tensor([0, 1, 3], [1, 0, 2], [2.0, 3.0, 4.0], (2, 3))
    assert s.to_dense().tolist() == [[0, 2, 0], [3, 0, 4]] and s._nnz() == 3 and s.is_sparse_csr
    assert s.crow_indices().tolist() == [0, 1, 3] and s.col_indices().tolist() == [1, 0, 2]
    assert s.t().layout is torch.sparse_csc and s.t().ccol_indices().tolist() == [0, 1, 3]
    b = torch.sparse_bsr_tensor([0, 1, 2], [0, 1], [[[1.0, 2.0]], [[3.0, 4.0]]])
    assert b.to_dense().tolist() == [[1, 2, 0, 0], [0, 0, 3, 4]]
    with pytest.raises(RuntimeError, match="ccol_indices expected sparse column compressed tensor layout but got"):
        s.ccol_indices()


@pytest.mark.parametrize(
    ("compressed", "plain", "words"),
    [
        ([0, 1, 3], [0, 1], r"crow_indices\[..., -1\] == nnz"),
        ([1, 1, 2], [0, 1], r"crow_indices\[..., 0\] == 0"),
        ([0, 2, 2], [1, 0], "are sorted and distinct"),
        ([0, 1, 2], [0, 2], "0 <= col_indices < ncols"),
    ],
)
def test_invariants(compressed, plain, words):
    torch.sparse_csr_tensor(compressed, plain, [1.0, 2.0], (2, 2))  # unchecked by default
    with pytest.raises(RuntimeError, match=words):
        torch.sparse_csr_tensor(compressed, plain, [1.0, 2.0], (2, 2), check_invariants=True)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(LAYOUTS, LAYOUTS)))
def test_conversions_keep_numbers_and_gradients(source, target):
    start = dense().to_sparse(layout=source, blocksize=LAYOUTS[source]) if source is not torch.strided else dense()
    x = start.detach().clone().requires_grad_()
    result = x.to_dense() if target is torch.strided else x.to_sparse(layout=target, blocksize=LAYOUTS[target])
    assert result.layout is target and result.to_dense().tolist() == X
    (g,) = torch.autograd.grad((result.to_dense() ** 2).sum(), x)
    assert g.layout is source and torch.allclose(g.to_dense(), 2 * dense())


def test_batches_are_no_sparse_dimensions_of_a_conversion():
    x = torch.ones(2, 2, 2).to_sparse_csr()
    assert x.to_sparse_bsr((1, 1)).to_dense().equal(torch.ones(2, 2, 2))
    assert x.to_sparse(2).sparse_dim() == 3 and torch.equal(x.to_sparse(2).to_dense(), torch.ones(2, 2, 2))
    with pytest.raises(RuntimeError, match="sparse_dim argument !=2"):
        x.to_sparse(3)


def test_batches():
    x = torch.ones(2, 2, 3)
    s = x.to_sparse_csr()
    assert s.crow_indices().tolist() == [[0, 3, 6]] * 2 and torch.equal(s.to_dense(), x)
    assert torch.equal(s.to_sparse_csc().to_dense(), x)
    with pytest.raises(RuntimeError, match="same number of specified elements per batch"):
        torch.tensor([[[1.0, 0]], [[1, 1]]]).to_sparse_csr()
    with pytest.raises(RuntimeError, match="must be divisible by given blocksize"):
        torch.ones(2, 3).to_sparse_bsr((2, 2))


@pytest.mark.parametrize("layout", list(LAYOUTS)[2:])
def test_arithmetic_agrees_with_dense(layout):
    s, d = dense().to_sparse(layout=layout, blocksize=LAYOUTS[layout]), dense()
    for f in (
        lambda a: a * 2,
        lambda a: a + a,
        lambda a: a * d,
        lambda a: a.abs(),
        lambda a: a.t(),
        lambda a: a - a * 3,
    ):
        assert torch.allclose(f(s).to_dense(), f(d))
    assert torch.allclose(s @ d, d @ d) and torch.allclose(d @ s, d @ d) and s.sum() == d.sum()


def test_products():
    w = torch.arange(8, dtype=torch.float64).reshape(4, 2).requires_grad_()
    s = dense().to_sparse_csr().requires_grad_()
    gs, _ = torch.autograd.grad((torch.sparse.mm(s, w) ** 2).sum(), (s, w))
    d = dense().requires_grad_()
    (gd,) = torch.autograd.grad((d.mm(w) ** 2).sum(), d)
    assert gs.layout is torch.sparse_csr and torch.allclose(gs.to_dense(), gd * (dense() != 0))
    sampled = torch.sparse.sampled_addmm(s.detach(), w.detach(), w.detach().t(), beta=0.5)
    assert torch.allclose(sampled.to_dense(), (w @ w.t() + dense() / 2) * (dense() != 0))
    assert torch.sparse.mm(s.detach(), w.detach(), "amax")[0].tolist() == [6, 7]


@pytest.mark.parametrize("name", ["csr", "csc", "bsr", "bsc"])
def test_batches_of_nothing_are_no_compressed_tensor(name):
    layout, blocksize = getattr(torch, f"sparse_{name}"), (1, 1) if name[0] == "b" else None
    with pytest.raises(RuntimeError, match=f"to_sparse_{name}: Expected product of batch dimensions to be non-zero"):
        torch.ones(0, 2, 2).to_sparse(layout=layout, blocksize=blocksize)
