"""Nested tensors: both layouts, arithmetic on packed values, gradients through components."""

import pickle

import pytest

import pullback as torch

LAYOUTS = (torch.jagged, torch.strided)


def parts(requires_grad=False):
    a = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    b = torch.ones(1, 3, dtype=torch.float64)
    return [a.requires_grad_(requires_grad), b.requires_grad_(requires_grad)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_components_come_out_as_they_went_in(layout):
    nt = torch.nested.nested_tensor(parts(), layout=layout)
    assert nt.is_nested and nt.layout is layout and nt.numel() == 9 and nt.size(0) == 2
    for got, want in zip(nt.unbind(), parts()):
        assert torch.equal(got, want)
    padded = nt.to_padded_tensor(-1.0)
    assert padded.shape == (2, 2, 3) and padded[1, 1].tolist() == [-1, -1, -1]
    assert nt._nested_tensor_size().tolist() == [[2, 3], [1, 3]]
    for got, want in zip(pickle.loads(pickle.dumps(nt)).unbind(), parts()):
        assert torch.equal(got, want)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_reach_components(layout):
    f = lambda x, w: torch.relu((x * 2).sin() @ w)
    w = torch.arange(6, dtype=torch.float64).reshape(3, 2).requires_grad_()
    ours = parts(True)
    out = f(torch.nested.as_nested_tensor(ours, layout=layout), w).unbind()
    got = torch.autograd.grad((out[0] ** 2).sum() + out[1].sum(), [*ours, w])
    theirs = parts(True)
    out = [f(x, w) for x in theirs]
    want = torch.autograd.grad((out[0] ** 2).sum() + out[1].sum(), [*theirs, w])
    for g, h in zip(got, want):
        assert torch.allclose(g, h)


def test_leaf_gradients_bias_and_softmax():
    nt = torch.nested.nested_tensor(parts(), layout=torch.jagged, requires_grad=True)
    bias = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    ((nt + bias).softmax(-1).values() ** 2).sum().backward()
    x = torch.cat(parts()).requires_grad_()
    (x.softmax(-1) ** 2).sum().backward()
    assert torch.allclose(nt.grad.values(), x.grad) and torch.allclose(bias.grad, x.grad.sum(0))
    (ragged,) = torch.autograd.grad(nt.softmax(1).unbind()[0][0].sum(), nt)
    assert ragged.is_nested


def test_sums():
    nt = torch.nested.nested_tensor(parts(), layout=torch.jagged)
    assert (
        nt.sum() == 18 and nt.sum(1).tolist() == [[3, 5, 7], [1, 1, 1]] and nt.sum(-1).values().tolist() == [3, 12, 3]
    )


def test_jagged_views():
    values = torch.arange(8, dtype=torch.float64).requires_grad_()
    nt = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 1, 8]))
    assert nt.offsets().tolist() == [0, 1, 8] and [len(c) for c in nt.unbind()] == [1, 7]
    part = torch.nested.narrow(values.reshape(2, 4), 1, torch.tensor([0, 1]), torch.tensor([2, 3]), layout=torch.jagged)
    assert [c.tolist() for c in part.unbind()] == [[0, 1], [5, 6, 7]] and part.sum() == 19
    (g,) = torch.autograd.grad(part.sum(), values)
    assert g.tolist() == [1, 1, 0, 0, 0, 1, 1, 1]


def test_refusals():
    a, b = (torch.nested.nested_tensor(parts(), layout=torch.jagged) for _ in range(2))
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function add.Tensor"):
        a + b
    with pytest.raises(RuntimeError, match="jagged layout only allows for a single ragged dimension"):
        torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 4)], layout=torch.jagged)
    with pytest.raises(RuntimeError, match="must have the same dimension"):
        torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1)])
    with pytest.raises(NotImplementedError, match="NestedTensorCPU"):
        a.sort(1)


def test_sizes_of_the_strided_layout_are_those_that_components_share():
    nt = torch.nested.nested_tensor([torch.ones(3, 4), torch.ones(5, 4)])
    assert (nt.size(0), nt.size(2), nt.size(-1), nt.dim()) == (2, 4, 4, 3)
    for call, words in (
        (lambda: nt.size(1), "Given dimension 1 is irregular and does not have a size"),
        (nt.size, "NestedTensorImpl doesn't support sizes"),
        (nt.stride, "NestedTensorImpl doesn't support strides"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(IndexError):
        nt.size(3)
    assert torch.nested.nested_tensor(parts(), layout=torch.jagged).size(-1) == 3


def test_products_that_do_not_fit_say_so_in_their_own_words():
    nt = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
    with pytest.raises(RuntimeError, match="matmul: Nested tensors cannot be matrix multiplied"):
        nt.matmul(nt)
    with pytest.raises(RuntimeError, match="0-th nested matrices in batch cannot be multiplied"):
        nt.bmm(nt)


def test_multiples_of_a_ragged_size_compare():
    j = torch.nested.nested_tensor(parts(), layout=torch.jagged).size(1)
    assert 2 * j > j and j < 2 * j and j <= j and not j > j and not j < j and j > 1 and not j <= 1
    for compare in (lambda: j > 2, lambda: 3 <= j, lambda: j < 5):
        with pytest.raises(ValueError, match="cannot be compared"):
            compare()
    assert torch.SymInt(j) is j


def test_components_without_holes_between_them_are_contiguous():
    base = torch.arange(12).reshape(3, 4)
    for starts, lengths, packed in (([1, 0, 0], [3, 4, 2], True), ([0, 0, 0], [3, 4, 4], False)):
        nt = torch.nested.narrow(base, 1, torch.tensor(starts), torch.tensor(lengths), layout=torch.jagged)
        assert nt.is_contiguous() is packed
        assert [c.tolist() for c in nt.contiguous().unbind()] == [
            row[s : s + n].tolist() for row, s, n in zip(base, starts, lengths, strict=True)
        ]


def test_components_that_lie_in_a_buffer():
    buffer = torch.arange(6.0, requires_grad=True)
    sizes, strides = torch.tensor([[2, 2], [1, 2]]), torch.tensor([[1, 2], [2, 1]])
    nt = torch._nested_view_from_buffer(buffer, sizes, strides, torch.tensor([0, 4]))
    assert [c.tolist() for c in nt.unbind()] == [[[0, 2], [1, 3]], [[4, 5]]]
    for bad, words in (([[2, 2], [1, 3]], "does not lie in a buffer of 6"), ([[2**63 - 1, 9], [1, 2]], "overflowed")):
        with pytest.raises(RuntimeError, match=words):
            torch._nested_view_from_buffer(buffer, torch.tensor(bad), strides, torch.tensor([0, 4]))


def test_memory_of_nested_tensors_is_shared():
    nt = torch.nested.nested_tensor(parts(), layout=torch.jagged)
    assert not nt.is_shared() and nt.share_memory_() is nt and nt.is_shared()
    assert nt.sum() == 18
