"""Rules of nested tensors: what each gives is what its components give, values and gradients."""

import io

import pytest

import pullback as torch
import pullback.nn.functional as F

LENGTHS = (3, 1, 4)


def parts(*rest, requires_grad=False):
    gen = torch.Generator().manual_seed(0)
    made = [torch.randn(n, *rest, dtype=torch.float64, generator=gen) for n in LENGTHS]
    return [p.requires_grad_(requires_grad) for p in made]


def same(nested, expected):
    got = nested.unbind()
    assert len(got) == len(expected)
    for g, e in zip(got, expected):
        assert g.shape == e.shape and torch.allclose(g, e)


# name: (what is done with a nested tensor of shape (B, *, 4, 6), what is done with one component)
EACH = {
    "transpose": (lambda t: t.transpose(2, 3), lambda p: p.transpose(1, 2)),
    "transpose_ragged": (lambda t: t.transpose(1, 2), lambda p: p.transpose(0, 1)),
    "permute": (lambda t: t.permute(0, 3, 1, 2), lambda p: p.permute(2, 0, 1)),
    "unsqueeze": (lambda t: t.unsqueeze(1), lambda p: p.unsqueeze(0)),
    "unsqueeze_last": (lambda t: t.unsqueeze(-1), lambda p: p.unsqueeze(-1)),
    "flatten": (lambda t: t.flatten(2), lambda p: p.flatten(1)),
    "unflatten": (lambda t: t.unflatten(-1, (2, 3)), lambda p: p.unflatten(-1, (2, 3))),
    "slice": (lambda t: t[:, :, 1:3], lambda p: p[:, 1:3]),
    "select": (lambda t: t.select(3, 1), lambda p: p.select(2, 1)),
    "chunk": (lambda t: t.chunk(2, -1)[1], lambda p: p.chunk(2, -1)[1]),
    "split": (lambda t: t.split([1, 5], -1)[1], lambda p: p.split([1, 5], -1)[1]),
    "softmax": (lambda t: t.softmax(-1), lambda p: p.softmax(-1)),
    "log_softmax_ragged": (lambda t: t.log_softmax(1), lambda p: p.log_softmax(0)),
    "cumsum_ragged": (lambda t: t.cumsum(1), lambda p: p.cumsum(0)),
    "layer_norm": (lambda t: F.layer_norm(t, (4, 6)), lambda p: F.layer_norm(p, (4, 6))),
    "gelu": (lambda t: F.gelu(t), lambda p: F.gelu(p)),
    "clamp": (lambda t: t.clamp(min=0), lambda p: p.clamp(min=0)),
    "where": (lambda t: torch.where(t > 0, t, t * 2), lambda p: torch.where(p > 0, p, p * 2)),
    "twice": (lambda t: t + t.transpose(2, 3).transpose(2, 3), lambda p: p * 2),
}
JAGGED = {
    "view": (lambda t: t.view(3, -1, 2, 2, 6), lambda p: p.view(-1, 2, 2, 6)),
    "reshape": (lambda t: t.reshape(3, t.shape[1], 24), lambda p: p.reshape(-1, 24)),
    "cat": (lambda t: torch.cat([t, t * 2], 2), lambda p: torch.cat([p, p * 2], 1)),
    "stack": (lambda t: torch.stack([t, t * 2], 2), lambda p: torch.stack([p, p * 2], 1)),
    "sum": (lambda t: t.sum(-1), lambda p: p.sum(-1)),
    "mean_keep": (lambda t: t.mean(2, keepdim=True), lambda p: p.mean(1, keepdim=True)),
    "amax": (lambda t: t.amax(-1), lambda p: p.amax(-1)),
    "max": (lambda t: t.max(2).values, lambda p: p.max(1).values),
    "matmul": (
        lambda t: t @ torch.ones(6, 2, dtype=torch.float64),
        lambda p: p @ torch.ones(6, 2, dtype=torch.float64),
    ),
    "linear": (
        lambda t: F.linear(t, torch.ones(2, 6, dtype=torch.float64), torch.ones(2, dtype=torch.float64)),
        lambda p: F.linear(p, torch.ones(2, 6, dtype=torch.float64), torch.ones(2, dtype=torch.float64)),
    ),
    "attention": (
        lambda t: F.scaled_dot_product_attention(*[t.transpose(1, 2)] * 3).transpose(1, 2),
        lambda p: F.scaled_dot_product_attention(*[p.transpose(0, 1)] * 3).transpose(0, 1),
    ),
    "expand": (lambda t: t.unsqueeze(2).expand(-1, -1, 2, -1, -1), lambda p: p.unsqueeze(1).expand(-1, 2, -1, -1)),
    "squeeze": (lambda t: t.unsqueeze(2).squeeze(2) * 3, lambda p: p * 3),
}


CASES = [(name, torch.jagged) for name in (*EACH, *JAGGED)] + [(name, torch.strided) for name in EACH]


@pytest.mark.parametrize("name, layout", CASES)
def test_components_and_their_gradients(name, layout):
    of_nested, of_part = (EACH | JAGGED)[name]
    ours, theirs = parts(4, 6, requires_grad=True), parts(4, 6, requires_grad=True)
    out = of_nested(torch.nested.as_nested_tensor(ours, layout=layout))
    expected = [of_part(p) for p in theirs]
    same(out, expected)
    got = torch.autograd.grad([(c * c).sum() for c in out.unbind()], ours)
    want = torch.autograd.grad([(e * e).sum() for e in expected], theirs)
    for g, w in zip(got, want):
        assert torch.allclose(g, w)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "prod", "argmax", "any", "logsumexp"])
def test_along_the_ragged_dimension_results_are_dense(name):
    ours = [(p * 2).round() if name == "any" else p for p in parts(5)]
    nt = torch.nested.nested_tensor(ours, layout=torch.jagged)
    got = getattr(nt, name)(1)
    assert not got.is_nested and torch.allclose(got, torch.stack([getattr(p, name)(0) for p in ours]))


def test_everything_is_reduced_without_holes():
    values = torch.arange(10.0)
    nt = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 4, 10]), lengths=torch.tensor([2, 3]))
    assert nt.sum() == values[0:2].sum() + values[4:7].sum() and nt.amax() == 6
    with pytest.raises(RuntimeError, match="nested tensors with holes"):
        nt.unsqueeze(-1).sum(1)


def test_tensors_with_one_offsets_meet():
    offsets = torch.tensor([0, 2, 5])
    a, b = (torch.nested.nested_tensor_from_jagged(torch.rand(5, 2), offsets) for _ in range(2))
    assert torch.equal((a + b).values(), a.values() + b.values()) and a.shape == b.shape
    per_component = torch.tensor([[10.0], [20.0]]).unsqueeze(1)
    got = a + per_component
    assert torch.equal(got.values(), a.values() + torch.tensor([10.0, 10, 20, 20, 20]).unsqueeze(1))
    t = a.transpose(1, 2)
    assert torch.equal((t * t).values(), (a.values() ** 2).t()) and not t.is_contiguous()
    assert t.contiguous().is_contiguous()


def test_a_padded_operand_needs_components_of_its_length():
    nt = torch.nested.as_nested_tensor(torch.rand(2, 3, 4), layout=torch.jagged)
    dense = torch.rand(2, 3, 4)
    assert torch.equal((nt * dense).values(), nt.values() * dense.reshape(6, 4))
    ragged = torch.nested.nested_tensor([torch.rand(3, 4), torch.rand(2, 4)], layout=torch.jagged)
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function mul.Tensor"):
        ragged * dense


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_in_place_writes_reach_values_and_history(layout):
    leaf = parts(4, requires_grad=True)
    nt = torch.nested.as_nested_tensor(leaf, layout=layout) * 1
    nt.mul_(3).add_(nt)
    same(nt, [p * 6 for p in leaf])
    g = torch.autograd.grad([c.sum() for c in nt.unbind()], leaf)
    assert all((x == 6).all() for x in g)
    plain = torch.nested.nested_tensor(parts(4), layout=layout)
    view = plain.transpose(1, 2)
    view.zero_()
    assert not any(c.any() for c in plain.unbind())
    plain.copy_(plain.clone().fill_(2.0))
    assert all((c == 2).all() for c in view.unbind())


def test_strided_views_share_memory_and_are_saved_as_they_lie():
    nt = torch.nested.nested_tensor(parts(4))
    for view in (nt.transpose(1, 2), nt.chunk(2, -1)[1], nt.split([1, 3], -1)[1]):
        assert not view.is_contiguous()
        same(view.contiguous(), view.unbind())
        buffer = io.BytesIO()
        torch.save(view, buffer)
        buffer.seek(0)
        same(torch.load(buffer), view.unbind())
        with pytest.raises(RuntimeError, match="must be contiguous"):
            view.values()
    nt.zero_()
    assert not view.unbind()[0].any()


def test_jagged_tensors_are_saved_with_their_ragged_dimension():
    nt = torch.nested.nested_tensor(parts(4, 2), layout=torch.jagged).transpose(1, 2)
    buffer = io.BytesIO()
    torch.save(nt, buffer)
    buffer.seek(0)
    again = torch.load(buffer)
    assert again._ragged_idx == 2
    same(again, nt.unbind())


def test_tables_are_looked_up_by_nested_indices():
    table = torch.rand(7, 3, requires_grad=True)
    rows = [torch.tensor([1, 2]), torch.tensor([6])]
    for layout in (torch.jagged, torch.strided):
        same(F.embedding(torch.nested.nested_tensor(rows, layout=layout), table), [table[r] for r in rows])


def test_rows_by_mask_and_out_of_padding():
    data = torch.arange(12.0).reshape(2, 3, 2)
    nt = torch._nested_tensor_from_mask(data, torch.tensor([[True, True, False], [True, True, True]]))
    same(nt, [data[0, :2], data[1]])
    same(torch._nested_from_padded(data, torch.tensor([[1, 2], [3, 1]])), [data[0, :1], data[1, :, :1]])
    with pytest.raises(RuntimeError, match="left-aligned"):
        torch._nested_tensor_from_mask(data, torch.tensor([[True, False, True], [True, True, True]]))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda t: t.transpose(0, 1), "batch dimension"),
        (lambda t: t.split(1, 1), "split.*ragged dim"),
        (lambda t: t.unsqueeze(0), "dim=0"),
        (lambda t: t.sum(0), "batch dimension but not the ragged"),
        (lambda t: t.sum((1, 2)), "ragged and non-batch"),
        (lambda t: t.softmax(0), "across the batch dimension"),
        (lambda t: t.transpose(1, 2).softmax(2), "ragged_idx > 1"),
        (lambda t: t.view(2, -1, 5), "cannot view"),
        (lambda t: torch.cat([t, t]), "dim=0"),
        (lambda t: t[:, 1:2], "ragged dim"),
    ],
)
def test_refusals(call, words):
    nt = torch.nested.nested_tensor(parts(4), layout=torch.jagged)
    with pytest.raises((RuntimeError, ValueError), match=words):
        call(nt)


def test_sizes_that_differ_are_symbols():
    nt = torch.nested.nested_tensor(parts(4), layout=torch.jagged)
    j = nt.shape[1]
    assert j == nt.transpose(1, 2).shape[2] and j != 3 and j >= 2 and (2 * j) != j
    assert nt.stride() == (4 * j, 4, 1)
    with pytest.raises(ValueError, match="cannot be compared"):
        j > 5


def test_products_with_dense_matrices_and_words():
    right = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(2, 4)])
    result = torch.full((2, 5, 2), 2.0).bmm(right)
    assert [p.tolist() for p in result.unbind()] == [torch.full((5, 3), 4.0).tolist(), torch.full((5, 4), 4.0).tolist()]
    nt = torch.nested.nested_tensor([torch.ones(1, 2), torch.ones(2, 2)])
    with pytest.raises(RuntimeError, match="last_dim = 2, and weight.size\\(1\\) = 4"):
        torch.nn.functional.linear(nt, torch.ones(2, 4))
    with pytest.raises(RuntimeError, match="does not support nested weight"):
        torch.nn.functional.linear(nt, nt)
    with pytest.raises(RuntimeError, match="called clone with memory format: ChannelsLast"):
        nt.clone(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="The shape at dimension 0"):
        square = torch.nested.nested_tensor([torch.ones(2, 3, 4)] * 2)
        torch.nn.functional.layer_norm(square, (3, 3, 4))
    assert torch.softmax(torch.nested.nested_tensor([]), 1).unbind() == ()


def test_same_sizes_and_facts():
    a, b = (torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged) for _ in range(2))
    assert torch.is_same_size(a, a * 2) and not torch.is_same_size(a, b)
    assert torch.ops.aten.is_same_size(a, a * 2) and not torch.ops.aten.is_same_size(a, b)
    assert torch.ops.aten.dim(a) == 3 and torch.ops.aten.sym_numel(a) == 9
    assert a.data_ptr() == a.values().data_ptr() and a._values.grad_fn is None


def test_attention_ragged_in_front_of_the_matrices():
    q = torch.nested.nested_tensor([torch.randn(2, 4, 8), torch.randn(3, 4, 8)], layout=torch.jagged)
    result = torch.nn.functional.scaled_dot_product_attention(q, q * 2, q * 3)
    for got, p in zip(result.unbind(), q.unbind(), strict=True):
        assert torch.allclose(got, torch.nn.functional.scaled_dot_product_attention(p, p * 2, p * 3), atol=1e-6)


def test_functions_of_components_that_lie_apart_and_joins_of_several_ragged_dimensions():
    nt = torch.nested.nested_tensor([torch.ones(2, 3), -torch.ones(1, 3)])
    for got, p in zip(torch.relu(nt.transpose(1, 2)).unbind(), nt.unbind(), strict=True):
        assert got.equal(p.t().relu())
    ragged = torch.nested.nested_tensor([torch.ones(2, 3, 2), torch.ones(1, 4, 2)])
    for got, p in zip(torch.cat([ragged, ragged], dim=-1).unbind(), ragged.unbind(), strict=True):
        assert got.equal(torch.cat([p, p], -1))


def test_truths_are_of_all_packed_values():
    mask = torch.tensor([[True, True, False], [True, True, False]])
    nt = torch.nested.narrow(mask, 1, torch.zeros(2, dtype=torch.int64), torch.tensor([2, 2]), layout=torch.jagged)
    assert not torch.ops.aten._is_all_true(nt).item() and torch.ops.aten._is_any_true(nt).item()


def test_nested_tensors_are_no_arrays():
    for components in ([torch.ones(2)], []):
        with pytest.raises(RuntimeError, match="numpy.. is not supported for NestedTensor.*unbind"):
            torch.nested.nested_tensor(components).numpy()
