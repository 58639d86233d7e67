"""Masked tensors: construction, arithmetic, shapes, reductions, layouts, and gradients under the input's mask."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.masked import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

DATA = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]
MASK = [[True, False, False, True], [False, True, False, True]]


def sample(requires_grad=False) -> MaskedTensor:
    return masked_tensor(torch.tensor(DATA), torch.tensor(MASK), requires_grad=requires_grad)


def check(t: MaskedTensor, data, mask) -> None:
    mask = torch.tensor(mask)
    assert is_masked_tensor(t) and torch.equal(t.get_mask(), mask)
    torch.testing.assert_close(t.to_tensor(0), torch.tensor(data).masked_fill(~mask, 0))


# ---- construction
@pytest.mark.parametrize(
    ("data", "mask", "kind", "words"),
    [
        (lambda: 0, lambda: torch.tensor(True), TypeError, "data must be a Tensor"),
        (sample, lambda: torch.tensor(MASK), TypeError, "data must be a Tensor"),
        (lambda: torch.ones(2, 4), sample, TypeError, "mask must be a Tensor"),
        (lambda: torch.ones(2), lambda: torch.ones(2), TypeError, "mask must have dtype bool"),
        (lambda: torch.ones(2, 2), lambda: torch.tensor([True, True]), ValueError, r"data.dim\(\) must equal"),
        (lambda: torch.ones(3), lambda: torch.tensor([True, True]), ValueError, r"data.size\(\) must equal"),
        (lambda: torch.ones(2).to_sparse(), lambda: torch.tensor([True, True]), TypeError, "same layout"),
        (lambda: torch.eye(2).to_sparse_csc(), lambda: (torch.eye(2) > 0).to_sparse_csc(), TypeError, "not supported"),
    ],
)
def test_what_makes_no_masked_tensor_is_refused(data, mask, kind, words):
    with pytest.raises(kind, match=words):
        masked_tensor(data(), mask())


def test_a_masked_tensor_has_memory_of_its_own_and_is_a_leaf():
    data = torch.tensor(DATA)
    t = masked_tensor(data, torch.tensor(MASK), requires_grad=True)
    data.zero_()
    check(t, DATA, MASK)
    assert t.is_leaf and t.requires_grad
    with pytest.warns(UserWarning, match="not recommended to create a MaskedTensor"):
        masked_tensor(torch.ones(1, requires_grad=True), torch.tensor([True]))


def test_the_text_leaves_out_what_is_missing():
    assert str(sample()[0]) == "MaskedTensor(\n  [  1.0000,       --,       --,   4.0000]\n)"
    assert str(sample()[0, 1]) == "MaskedTensor(--, False)"


# ---- operators
def test_arithmetic_keeps_the_mask():
    t = sample()
    check(t + t, (2 * torch.tensor(DATA)).tolist(), MASK)
    check(t * 3 + 1, (3 * torch.tensor(DATA) + 1).tolist(), MASK)
    check(t / torch.full((4,), 2.0), (torch.tensor(DATA) / 2).tolist(), MASK)
    check(t.exp_(), torch.tensor(DATA).exp().tolist(), MASK)


def test_different_masks_do_not_go_together():
    t = sample()
    with pytest.raises(ValueError, match="Input masks must match"):
        t + masked_tensor(torch.tensor(DATA), ~torch.tensor(MASK))
    with pytest.raises(ValueError, match="without a mask"):
        torch.ones(2, 4).add_(t)


def test_shapes_change_for_data_and_mask_alike():
    t = sample()
    check(t.t(), torch.tensor(DATA).t().tolist(), torch.tensor(MASK).t().tolist())
    check(t.reshape(8), torch.tensor(DATA).reshape(8).tolist(), torch.tensor(MASK).reshape(8).tolist())
    check(torch.cat([t, t]), DATA + DATA, MASK + MASK)
    check(t[:, 1:3], [r[1:3] for r in DATA], [r[1:3] for r in MASK])
    first, second = t.unbind(0)
    check(first, DATA[0], MASK[0])


def test_an_operator_without_a_rule_says_so():
    with pytest.raises(TypeError, match=r"torch._ops.aten.max.default"):
        sample().max()


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "amin", "var", "std"])
@pytest.mark.parametrize("dim", [None, 0, 1])
def test_reductions_take_what_is_there(name, dim):
    got = getattr(sample(), name)() if dim is None else getattr(sample(), name)(dim=dim)
    want = getattr(torch.masked, name)(torch.tensor(DATA), dim, mask=torch.tensor(MASK))
    there = torch.tensor(MASK).any() if dim is None else torch.tensor(MASK).any(dim)
    assert torch.equal(got.get_mask(), there)
    torch.testing.assert_close(got.get_data()[there], want[there], equal_nan=True)


def test_truths_and_numbers():
    t = masked_tensor(torch.tensor([True, False]), torch.tensor([True, False]))
    assert t.all().item() is True and t.any().item() is True and t._is_any_true().item() is True
    with pytest.raises(ValueError, match="masked out"):
        t[1].item()
    with pytest.raises(ValueError, match="expected a boolean tensor"):
        sample()._is_any_true()


def test_softmax_is_over_what_is_there():
    got = sample().softmax(-1)
    want = torch.masked.softmax(torch.tensor(DATA), -1, mask=torch.tensor(MASK))
    torch.testing.assert_close(got.to_tensor(0), want.masked_fill(~torch.tensor(MASK), 0))


def test_casts_and_copies():
    t = sample()
    assert t.double().dtype is torch.float64 and t.double().get_mask().dtype is torch.bool
    copy = t.clone()
    copy.get_data().zero_()
    check(t, DATA, MASK)
    assert torch.zeros_like(t).get_mask().equal(t.get_mask())


# ---- gradients
FUNCTIONS = {
    "sum": lambda t: t.sum(),
    "mean": lambda t: t.mean(),
    "mean of rows": lambda t: t.mean(1).sum(),
    "largest": lambda t: t.amax(),
    "product": lambda t: t.prod(),
    "square": lambda t: (t * t).sum(),
    "exponential": lambda t: (t.sin().exp() * 2).sum(),
    "softmax": lambda t: t.softmax(-1).square().sum(),
    "windows": lambda t: t.unfold(1, 2, 1).sum(),
    "slices": lambda t: (t[:, 1:] * 2).sum(),
    "reshaped": lambda t: t.reshape(4, 2).sum(0).sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_the_elements_that_are_there(name):
    t = sample(requires_grad=True)
    FUNCTIONS[name](t).backward()
    mask = torch.tensor(MASK)
    assert is_masked_tensor(t.grad)
    step = 1e-6
    for i, j in mask.nonzero().tolist():

        def value(by, i=i, j=j):
            data = torch.tensor(DATA, dtype=torch.float64)
            data[i, j] += by
            return FUNCTIONS[name](masked_tensor(data, mask)).item()

        slope = (value(step) - value(-step)) / (2 * step)
        if bool(t.grad.get_mask()[i, j]):
            assert t.grad.get_data()[i, j].item() == pytest.approx(slope, rel=1e-3, abs=1e-3)
        else:
            assert slope == pytest.approx(0, abs=1e-6)


def test_what_is_missing_does_not_touch_a_gradient():
    data = torch.tensor([2.0, float("nan"), 3.0])
    t = masked_tensor(data, torch.tensor([True, False, True]), requires_grad=True)
    t.prod().backward()
    check(t.grad, [3.0, 0.0, 2.0], [True, False, True])


def test_where_takes_both_masks():
    data, mask = torch.tensor([-2.0, -1.0, 1.0, 2.0]), torch.tensor([True, True, False, False])
    x = masked_tensor(data, mask, requires_grad=True)
    y = masked_tensor(torch.ones(4), ~mask, requires_grad=True)
    out = torch.where(mask, x.exp(), y)
    out.sum().backward()
    assert bool(out.get_mask().all())
    check(x.grad, data.exp().tolist(), mask.tolist())
    check(y.grad, [1.0] * 4, (~mask).tolist())


def test_as_masked_tensor_is_a_function_of_the_data():
    x = torch.tensor(DATA, requires_grad=True)
    t = as_masked_tensor(x, torch.tensor(MASK))
    assert not t.is_leaf
    t.sum().backward()
    check(x.grad, torch.ones(2, 4).tolist(), MASK)


# ---- layouts
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_layouts_convert_both_ways_with_gradients(layout):
    t = sample(requires_grad=True)
    sparse = getattr(t, layout)()
    assert sparse.get_data().layout is sparse.get_mask().layout is sparse.layout
    check(sparse.to_dense(), DATA, MASK)
    sparse.to_dense().sum().backward()
    check(t.grad, torch.ones(2, 4).tolist(), MASK)
    check((sparse * 2).to_dense(), (2 * torch.tensor(DATA)).tolist(), MASK)
    with pytest.raises(ValueError, match="do not have is_contiguous"):
        sparse.is_contiguous()


def test_sparse_data_and_mask_have_the_same_places():
    data = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    mask = torch.sparse_coo_tensor([[0, 1], [1, 1]], [True, True], (2, 2))
    with pytest.raises(ValueError, match="do not have the same indices"):
        masked_tensor(data, mask)


def test_operators_have_the_names_of_their_aliases():
    assert torch.equal(torch.ops.aten.absolute(torch.tensor([-1.0])), torch.tensor([1.0]))
    assert torch.ops.aten.arccos_.__name__ == "arccos_" and torch.ops.aten.true_divide_.overloads()
    assert not hasattr(torch.ops.aten, "not_an_operator")
