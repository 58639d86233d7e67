"""Operators that leave elements out: against the elements that take part, one slice at a time."""

from __future__ import annotations

import math

import pytest

import pullback as torch

X = torch.tensor([[0.5, -1.0, 2.0, 0.25], [3.0, 1.0, -2.0, 4.0], [1.0, 2.0, 3.0, 4.0]])
MASK = torch.tensor([[True, False, True, True], [True, True, False, False], [False, True, True, True]])
REDUCTIONS = {
    "sum": lambda t: t.sum(),
    "prod": lambda t: t.prod(),
    "amax": lambda t: t.amax(),
    "amin": lambda t: t.amin(),
    "mean": lambda t: t.mean(),
    "median": lambda t: t.median(),
    "logsumexp": lambda t: t.logsumexp(0),
    "var": lambda t: t.var(),
    "std": lambda t: t.std(),
    "norm": lambda t: t.norm(),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_see_the_elements_that_take_part(name):
    expected = torch.stack([REDUCTIONS[name](row[m]) for row, m in zip(X, MASK, strict=True)])
    function = getattr(torch.masked, name)
    torch.testing.assert_close(function(X, dim=1, mask=MASK), expected)
    torch.testing.assert_close(function(X, dim=1, mask=MASK, keepdim=True), expected[:, None])
    whole = function(X, dim=1)
    torch.testing.assert_close(whole, torch.stack([REDUCTIONS[name](row) for row in X]))


def test_gradients_of_elements_left_out_are_zero():
    x = X.clone().requires_grad_()
    torch.masked.mean(x, 1, mask=MASK).sum().backward()
    assert x.grad.tolist()[1] == [0.5, 0.5, 0, 0]


def test_where_no_element_takes_part():
    none = torch.zeros(3, 4, dtype=torch.bool)
    assert torch.masked.sum(X, 1, mask=none).tolist() == [0, 0, 0]
    assert torch.masked.prod(X, 1, mask=none).tolist() == [1, 1, 1]
    assert torch.masked.amax(X, 1, mask=none).tolist() == [-math.inf] * 3
    assert torch.masked.amax(X.int(), 1, mask=none).tolist() == [-(2**31)] * 3
    assert all(map(math.isnan, torch.masked.mean(X, 1, mask=none).tolist()))
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        torch.masked.mean(X.int(), 1, mask=MASK)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
def test_softmaxes(name):
    result = getattr(torch.masked, name)(X, 1, mask=MASK)
    for row, m, r in zip(X, MASK, result, strict=True):
        own = -row[m] if name == "softmin" else row[m]
        expected = own.log_softmax(0) if name == "log_softmax" else own.softmax(0)
        torch.testing.assert_close(r[m], expected)
        assert set(r[~m].tolist()) <= {0.0, -math.inf}


def test_running_sums_and_places():
    assert torch.masked.cumsum(X, 1, mask=MASK)[0].tolist() == [0.5, 0.5, 2.5, 2.75]
    assert torch.masked.cumprod(X, 1, mask=MASK)[1].tolist() == [3, 3, 3, 3]
    assert torch.masked.argmax(X, 1, mask=MASK).tolist() == [2, 0, 3]
    assert torch.masked.argmin(X, 1, mask=MASK).tolist() == [3, 1, 1]
    unit = torch.masked.normalize(X, 2, 1, mask=MASK)
    torch.testing.assert_close(torch.masked.norm(unit, 2, 1), torch.ones(3))
    assert torch.masked.logaddexp(X, X, other_mask=torch.zeros(3, 4, dtype=torch.bool)).tolist() == X.tolist()


@pytest.mark.parametrize("correction", [0, 1, 2])
def test_spread_by_correction(correction):
    got = torch.masked.var(X, dim=1, correction=correction, mask=MASK)
    want = torch.stack([x[m].var(correction=correction) for x, m in zip(X, MASK)])
    rows = MASK.sum(1) > correction
    assert torch.allclose(got[rows], want[rows])
    assert torch.equal(torch.masked.std(X, dim=1, correction=0, mask=MASK), torch.masked.std(X, 1, False, mask=MASK))
    with pytest.raises(AssertionError, match="Only one of unbiased and correction"):
        torch.masked.var(X, 1, True, correction=correction, mask=MASK)


def test_where_of_sparse_tensors_is_specified_where_the_mask_is_true():
    mask = torch.tensor([[True, True], [False, True], [False, False]])
    dense = torch.tensor([[1, 0], [2, 3], [4, 5]])
    fill = torch.tensor(9)
    assert torch.masked._where(mask, dense, fill).tolist() == [[1, 0], [9, 3], [9, 9]]
    for sparse in (lambda t: t.to_sparse(2), lambda t: t.to_sparse_csr()):
        result = torch.masked._where(sparse(mask), sparse(dense), fill)
        assert result.layout is sparse(mask).layout
        assert result.values().tolist() == [1, 0, 3] and result.to_dense().tolist() == [[1, 0], [0, 3], [0, 0]]
    rows = torch.masked._where(mask.to_sparse(1), dense.to_sparse(1), fill)
    assert rows.values().tolist() == [[1, 0], [9, 3]] and rows.indices().tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="of one layout"):
        torch.masked._where(mask, dense.to_sparse(), fill)


def test_a_dtype_is_for_results_and_integers_stay_what_they_are():
    x = torch.tensor([[1, 2], [3, 4]], dtype=torch.int16)
    assert torch.masked.logsumexp(x, 1).tolist() == [2, 4] and torch.masked.logsumexp(x, 1).dtype is torch.int16
    assert torch.masked.amax(torch.tensor([1.7, 2.9]), 0, dtype=torch.int64).item() == 2
    assert torch.masked.argmax(torch.tensor([1.2, 1.9]), 0, dtype=torch.int64).item() == 1
    assert torch.masked.var(x, 1).dtype is torch.float32


def test_complex_numbers_keep_their_dtype():
    z = torch.tensor([1 + 1j, 3 - 1j])
    assert torch.masked.var(z, 0).item() == 4 + 0j
    mask = torch.tensor([True, False])
    assert torch.masked.logsumexp(z, 0, mask=mask).item() == pytest.approx(1 + 1j)


def test_an_empty_list_of_dimensions_reduces_nothing_in_prod():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert torch.masked.prod(x, []).tolist() == x.tolist() and torch.masked.prod(x, ()).item() == 24.0


def test_identities_and_masks_of_results():
    x = torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8)
    assert torch.masked._reduction_identity("masked.amin", x).item() == 255
    assert torch.masked._reduction_identity("mean", x) is None
    mask = torch.tensor([[True, False], [False, False]])
    assert torch.masked._output_mask(torch.masked.sum, x, 1, mask=mask).tolist() == [True, False]
    with pytest.raises(NotImplementedError, match="identity of amax on torch.complex64 input"):
        torch.masked._reduction_identity("amax", torch.tensor(1j))


ENTRIES = torch.tensor([[0.0, 1, 2, 0], [3, 4, 0, 0], [0, 0, 0, 0]])
TAKING = torch.tensor([[True, False, True, False], [True, True, False, True], [False, False, False, False]])


@pytest.mark.parametrize(
    "name, expected",
    [
        ("sum", [[2.0], [7.0]]),
        ("prod", [[0.0], [0.0]]),
        ("amax", [[2.0], [4.0]]),
        ("amin", [[0.0], [0.0]]),
    ],
)
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_tensors_are_reduced_where_the_mask_is_true(name, expected, layout):
    """An element of the mask that is not specified counts as zero, and a row without any has no result."""
    result = getattr(torch.masked, name)(
        ENTRIES.to_sparse(layout=layout), 1, keepdim=True, mask=TAKING.to_sparse(layout=layout)
    )
    assert result.layout is layout and result.shape == (3, 1) and result._nnz() == 2
    assert result.to_dense().tolist() == [*expected, [0.0]]


def test_without_a_mask_specified_elements_are_added():
    result = torch.masked.sum(ENTRIES.to(torch.int8).to_sparse(), 0)
    assert result.layout is torch.sparse_coo and result.dtype is torch.int64
    assert result._indices().tolist() == [[0, 1, 2]] and result._values().tolist() == [3, 5, 2]
    assert torch.masked.sum(ENTRIES.to_sparse()).item() == 10.0
    with pytest.raises(ValueError, match="masked prod expects explicit mask for sparse_coo tensor input"):
        torch.masked.prod(ENTRIES.to_sparse(), 1)


def test_a_sparse_mean_of_rows():
    result = torch.masked.mean(ENTRIES.to_sparse_csr(), 1, keepdim=True, mask=TAKING.to_sparse_csr())
    assert result.to_dense().flatten().tolist() == pytest.approx([1.0, 7 / 3, 0.0])


@pytest.mark.parametrize("name", ["argmax", "median", "logsumexp", "norm"])
def test_other_reductions_take_dense_tensors(name):
    with pytest.raises(ValueError, match=f"masked {name} expects strided tensor \\(got torch.sparse_coo tensor\\)"):
        getattr(torch.masked, name)(ENTRIES.to_sparse(), dim=1)


def test_a_sparse_reduction_has_a_gradient():
    x = ENTRIES.to_sparse().requires_grad_()
    (2 * torch.masked.sum(x, 1, mask=TAKING).to_dense()).sum().backward()
    assert x.grad.to_dense().tolist() == (2 * TAKING * (ENTRIES != 0)).tolist()


def test_one_number_of_all_elements_is_specified_where_it_is_not_zero():
    entries, taking = ENTRIES.to_sparse(), TAKING.to_sparse()
    assert torch.masked.amax(entries, mask=taking)._values().tolist() == [4.0]
    assert torch.masked.amin(entries, mask=taking)._nnz() == 0
    assert torch.masked.amin(entries, mask=taking, keepdim=True).shape == (1, 1)
