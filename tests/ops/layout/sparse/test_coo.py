"""COO tensors: construction, conversion, arithmetic and gradients, against dense arithmetic on the same numbers."""

import copy
import pickle

import pytest

import pullback as torch
from pullback.ops.family.pointwise import POINTWISE
from pullback.ops.system.operator import registry

INDICES = [[0, 2, 2, 0], [1, 3, 3, 0]]  # one index twice
VALUES = [1.0, 2.0, 3.0, 4.0]


def coo(requires_grad=False):
    values = torch.tensor(VALUES, dtype=torch.float64, requires_grad=requires_grad)
    return values, torch.sparse_coo_tensor(INDICES, values, (3, 4))


def dense():
    out = torch.zeros(3, 4, dtype=torch.float64)
    out[0, 1], out[2, 3], out[0, 0] = 1.0, 5.0, 4.0
    return out


def close(a, b):
    a = a.to_dense() if a.layout is not torch.strided else a
    b = b.to_dense() if b.layout is not torch.strided else b
    assert a.shape == b.shape and a.dtype == b.dtype
    assert torch.allclose(a, b), (a, b)


def test_construction_infers_the_size_and_adds_up_duplicates():
    _, s = coo()
    assert not s.is_coalesced() and s._nnz() == 4
    close(s, dense())
    c = s.coalesce()
    assert c.is_coalesced() and c.indices().tolist() == [[0, 0, 2], [0, 1, 3]] and c.values().tolist() == [4, 1, 5]
    assert torch.sparse_coo_tensor([[0, 4]], [1.0, 2.0]).shape == (5,)
    hybrid = torch.sparse_coo_tensor([[0, 1]], [[1.0, 2.0], [3.0, 4.0]])
    assert (hybrid.sparse_dim(), hybrid.dense_dim(), tuple(hybrid.shape)) == (1, 1, (2, 2))
    assert torch.sparse_coo_tensor((2, 3))._nnz() == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0], (3,)), "indices and values must have same nnz"),
        (lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 3)), "len\\(size\\) == sparse_dim"),
        (lambda: torch.sparse_coo_tensor([0, 1], [1.0, 2.0]), "indices must be sparse_dim x nnz"),
        (lambda: torch.sparse_coo_tensor([[0, 3]], [1.0, 2.0], (3,), check_invariants=True), "size is inconsistent"),
        (lambda: torch.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,), check_invariants=True), "negative index -1"),
        (lambda: coo()[1].values(), "uncoalesced tensor"),
        (lambda: torch.ones(2).values(), "values expected sparse tensor layout but got Strided"),
        (lambda: coo()[1] + torch.ones(3, 4, dtype=torch.float64), "add\\(sparse, dense\\) is not supported"),
        (lambda: coo()[1] / dense(), "Sparse division requires a scalar"),
        (lambda: torch.ones(2, 2).to_sparse(3), "sparse_dim argument must be in \\[0,2\\]"),
        (lambda: torch.sparse.mm(coo()[1], torch.ones(3, 2, dtype=torch.float64)), "Expected dim 0 size 4, got 3"),
    ],
)
def test_refusals_use_the_words_that_users_search_for(call, words):
    with pytest.raises(RuntimeError, match=words):
        call()


def test_an_operator_without_a_sparse_rule_says_so():
    with pytest.raises(NotImplementedError, match="Could not run 'aten::exp' with arguments from the 'SparseCPU'"):
        coo()[1].exp()


@pytest.mark.parametrize("draw", ["rand_like", "randn_like"])
def test_nothing_random_is_drawn_like_a_tensor_of_which_most_is_zero(draw):
    with pytest.raises(NotImplementedError, match=f"Could not run 'aten::{draw}"):
        getattr(torch, draw)(coo()[1])
    with pytest.raises(NotImplementedError, match="Could not run 'aten::randint_like"):
        torch.randint_like(coo()[1], 5)


@pytest.mark.parametrize(
    "f",
    [
        lambda s: s * 2,
        lambda s: s / 4,
        lambda s: -s,
        lambda s: s + s,
        lambda s: s - s * 3,
        lambda s: s * s,
        lambda s: s.abs(),
        lambda s: s.sin(),
        lambda s: s.pow(2),
        lambda s: s.t(),
        lambda s: s.transpose(0, 1),
        lambda s: s[2],
        lambda s: s[:, 1:3],
        lambda s: s.unsqueeze(1),
        lambda s: s.sum(),
        lambda s: s.sum(0),
        lambda s: s.sum(1, keepdim=True),
        lambda s: s.norm(),
        lambda s: torch.cat([s, s], 1),
        lambda s: torch.stack([s, s]),
        lambda s: s.index_select(1, torch.tensor([3, 0, 3])),
        lambda s: s.to(torch.float32),
        lambda s: s.mm(torch.ones(4, 2, dtype=torch.float64)),
        lambda s: torch.ones(2, 3, dtype=torch.float64).mm(s),
        lambda s: s @ s.t(),
        lambda s: s.mv(torch.arange(4, dtype=torch.float64)),
        lambda s: torch.ones(3, 4, dtype=torch.float64) + s,
        lambda s: torch.addmm(torch.ones(3, 3, dtype=torch.float64), s, torch.ones(4, 3, dtype=torch.float64), alpha=2),
    ],
)
def test_arithmetic_agrees_with_dense(f):
    close(f(coo()[1]), f(dense()))


LOSSES = {
    "to_dense": lambda s: (s.to_dense() ** 2).sum(),
    "values": lambda s: (s.coalesce().values() ** 2).sum() if s.is_sparse else (s**2).sum(),
    "mul": lambda s: ((s * 3).to_dense() ** 2).sum(),
    "add": lambda s: ((s + s).to_dense() ** 2).sum(),
    "mm": lambda s: (s.mm(torch.arange(8, dtype=torch.float64).reshape(4, 2)) ** 2).sum(),
    "transposed": lambda s: (s.t().to_dense() ** 3).sum(),
    "selected": lambda s: (s[2].to_dense() ** 2).sum(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_reach_the_values(name):
    values, s = coo(True)
    (got,) = torch.autograd.grad(LOSSES[name](s), values)
    d = dense().requires_grad_()
    (full,) = torch.autograd.grad(LOSSES[name](d), d)
    assert torch.allclose(got, full[INDICES[0], INDICES[1]])


def test_sparse_products_give_masked_gradients():
    w = torch.arange(8, dtype=torch.float64).reshape(4, 2).requires_grad_()
    s = dense().to_sparse().requires_grad_()
    gs, gw = torch.autograd.grad((torch.sparse.mm(s, w) ** 2).sum(), (s, w))
    d = dense().requires_grad_()
    gd, gw2 = torch.autograd.grad((d.mm(w) ** 2).sum(), (d, w))
    assert gs.is_sparse and torch.allclose(gs.to_dense(), gd * (dense() != 0)) and torch.allclose(gw, gw2)


def test_softmax_skips_what_is_not_specified():
    _, s = coo()
    out = torch.sparse.softmax(s, 1).to_dense()
    row = torch.tensor([4.0, 1.0], dtype=torch.float64).softmax(0)
    assert torch.allclose(out[0, :2], row) and out[2, 3] == 1 and out[1].sum() == 0


def test_second_derivatives():
    values, s = coo(True)
    (g,) = torch.autograd.grad((s.to_dense() ** 3).sum(), values, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), values)
    assert gg.tolist() == [6, 60, 60, 24]


def test_in_place_writes_are_recorded():
    x = dense().requires_grad_()
    s = x.to_sparse()
    s.mul_(2)
    (g,) = torch.autograd.grad((s.to_dense() ** 2).sum(), x)
    assert torch.allclose(g, 8 * dense())
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        dense().to_sparse().requires_grad_().mul_(2)


def test_copies_and_pickles():
    s = dense().to_sparse().requires_grad_()
    for result in (copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        assert result.requires_grad and result.is_coalesced()
        close(result.detach(), dense())
    close(torch.nn.Parameter(dense().to_sparse()).detach(), dense())


def test_resizing():
    s = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2,))
    assert s.sparse_resize_((5,), 1, 0).shape == (5,) and s.to_dense().tolist() == [1, 2, 0, 0, 0]
    assert s.sparse_resize_and_clear_((3, 2), 1, 1)._nnz() == 0 and s.dense_dim() == 1


def test_invariants_switch():
    check = torch.sparse.check_sparse_tensor_invariants
    assert not check.is_enabled()
    with check(), pytest.raises(RuntimeError, match="size is inconsistent"):
        torch.sparse_coo_tensor([[9]], [1.0], (3,))
    assert not check.is_enabled()


def _claiming(word: str) -> list:
    return [op for op in registry.values() if op.family is POINTWISE and op.declared.zero == word]


def test_functions_that_keep_zero_do():
    """What a declaration says of f(0), on which the sparse rule rests."""
    for op in _claiming("kept") + _claiming("linear"):
        rest = [1 for a in op.schema.arguments[1:] if not a.has_default]
        assert not op(torch.zeros(2, dtype=torch.float64), *rest).any(), op


def test_linear_functions_are():
    a, b = torch.tensor([0.5, -1.25]), torch.tensor([2.0, 0.75])
    for op in _claiming("linear"):
        torch.testing.assert_close(op(a + b), op(a) + op(b))


def test_functions_that_keep_zero_take_sparse_tensors():
    i = torch.tensor([[0, 1, 1], [1, 0, 0]])  # the last index twice
    s = torch.sparse_coo_tensor(i, torch.tensor([0.5, 0.25, 0.125], dtype=torch.float64), (2, 3))
    for op in _claiming("kept") + _claiming("linear"):
        rest = [1 for a in op.schema.arguments[1:] if not a.has_default]
        torch.testing.assert_close(op(s, *rest).to_dense(), op(s.to_dense(), *rest))


def test_one_element_has_no_double():
    def made(places, **options):
        return torch.sparse_coo_tensor([places, places], [1.0] * len(places), (2, 2), **options)

    assert made([]).is_coalesced() and made([1]).is_coalesced() and not made([0, 1]).is_coalesced()
    assert made([0, 1], is_coalesced=True).is_coalesced() and made([1]).to_dense().tolist() == [[0, 0], [0, 1]]


def test_complex_numbers_are_seen_as_their_parts():
    pairs = torch.tensor([[2.0, 3.0], [4.0, 5.0]], requires_grad=True)
    s = torch.sparse_coo_tensor([[0, 2], [0, 1]], pairs, (3, 3, 2))
    numbers = torch.view_as_complex(s)
    assert numbers.shape == (3, 3) and numbers.to_dense()[2, 1].item() == 4 + 5j
    assert numbers._values().untyped_storage().data_ptr() == s._values().untyped_storage().data_ptr()
    assert numbers.real._values().tolist() == [2, 4] and numbers.imag._values().tolist() == [3, 5]
    assert torch.view_as_real(numbers).to_dense().equal(s.to_dense())
    (numbers.to_dense().abs() ** 2).sum().backward()
    torch.testing.assert_close(pairs.grad, 2 * pairs.detach())
    with pytest.raises(RuntimeError, match="last dim == 2 and dense_dim > 0"):
        torch.view_as_complex(torch.ones(2, 2).to_sparse())
