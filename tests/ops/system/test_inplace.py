"""Writes: in-place forms, `out=`, and how history follows memory."""

from __future__ import annotations

import warnings

import pytest

import pullback as torch


def test_a_write_to_a_view_is_in_the_history_of_its_base() -> None:
    x = torch.arange(1.0, 4.0, dtype=torch.float64, requires_grad=True)
    y = x.clone()
    y[1:].mul_(x[:2])
    (y * y).sum().backward()
    assert x.grad.tolist() == [2 + 2 * 2 * 1 * 2, 2 * 2 * 1 * 1 + 2 * 6 * 3, 2 * 6 * 2]


def test_a_saved_result_written_into_a_view_differentiates_twice() -> None:
    x = torch.arange(1.0, 4.0, dtype=torch.float64, requires_grad=True)
    y = x.clone()
    y[1:].exp_()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert h.tolist() == [0, *x[1:].exp().tolist()]


def test_out_is_resized_with_a_warning_only_if_it_held_numbers() -> None:
    x = torch.ones(2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.add(x, x, out=torch.empty(0)).shape == (2, 3)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(x, x, out=torch.empty(2))


def test_out_keeps_its_strides_and_casts() -> None:
    out = torch.empty(3, 2, dtype=torch.float64).t()
    assert torch.add(torch.ones(2, 3), 1, out=out) is out
    assert out.stride() == (1, 2) and out.tolist() == [[2.0] * 3] * 2


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_a_conjugate_given_as_out_is_resized_row_by_row_and_written_as_numbers_of_its_dtype() -> None:
    rows = torch.arange(6.0).view(3, 2).t()  # results of it lie column by column
    for view in (torch.conj, torch.adjoint):
        base = torch.full((3, 4), 9 + 1j)
        out = torch.add(rows, 1, out=view(base))
        assert out.stride() == (3, 1) and out.tolist() == [[1, 3, 5], [2, 4, 6]]
        assert str(base[0]) == "tensor([1.-0.j, 3.-0.j, 5.-0.j, 2.-0.j])" and base[1, 2] == 9 + 1j
    base = torch.full((3, 4), 9 + 1j)
    assert torch.add(rows, 1, out=base.real).stride() == (1, 2)
    assert torch.add(rows, 1, out=torch.conj(base).imag).stride() == (3, 1)


def test_out_does_not_record() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.mul(x, x, out=torch.empty(2))


def test_self_may_be_an_operand() -> None:
    t = torch.arange(4.0)
    assert t.add_(t).tolist() == [0, 2, 4, 6] and t.mul_(t.flip(0)).tolist() == [0, 8, 8, 0]


MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.mul_(y),
        lambda y: y.addcmul_(y, y),
        lambda y: y.mul_(y[:, :1]),
        lambda y: y[:, 1].mul_(y[:, 0]),
    ],
)
def test_an_operand_on_the_written_memory_was_saved_before_the_write(write) -> None:
    x = torch.arange(1.0, 5.0, dtype=torch.float64).reshape(2, 2).requires_grad_()
    y = x * 1
    write(y)
    with pytest.raises(RuntimeError, match=MODIFIED):
        y.sum().backward()


def test_an_operand_on_the_written_memory_that_is_not_saved_gives_its_gradient() -> None:
    x = torch.arange(1.0, 5.0, dtype=torch.float64).reshape(2, 2).requires_grad_()
    y = x * 1
    column = y[:, 0]
    y[:, 1].add_(column, alpha=3)
    (y[:, 1].sum() + column.sum()).backward()
    assert x.grad.tolist() == [[4, 1], [4, 1]]


def test_hooks_pack_an_operand_on_the_written_memory_as_it_was() -> None:
    x = torch.arange(1.0, 4.0, dtype=torch.float64).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x * 1
        y.mul_(y)
        y.sum().backward()
    assert x.grad.tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda y: y.fill_(1.0), "FillBackward2"),
        (lambda y: y.fill_(y.detach().sum()), "FillBackward3"),
        (lambda y: torch.nn.functional.elu(y, inplace=True), "EluBackward1"),
        (lambda y: torch.nn.functional.leaky_relu(y, inplace=True), "LeakyReluBackward1"),
        (lambda y: y.conj_physical_(), "ConjPhysicalBackward1"),
        (lambda y: y.mul_(2), "MulBackward0"),
    ],
)
def test_nodes_of_writes_have_the_names_of_their_own_rules(write, name) -> None:
    y = torch.ones(3, requires_grad=True) * 1
    write(y)
    assert y.grad_fn.name() == name


def test_one_element_of_the_written_memory_may_be_the_value() -> None:
    y = torch.tensor([3.0, 1.0, 2.0])
    y[:] = y[0]
    assert y.tolist() == [3, 3, 3]
    y = torch.tensor([3.0, 1.0, 2.0])
    y[torch.tensor([False, True, True])] = y[0]
    assert y.tolist() == [3, 3, 3]


OVERLAPPING = [
    lambda x: torch.add(x[:-1], 1, out=x[1:]),
    lambda x: torch.sin(x[:-1], out=x[1:]),
    lambda x: torch.where(x[:-1] > 0, x[:-1], x[1:], out=x[1:]),
    lambda x: torch.cat([x[:2], x[2:4]], out=x[:4]),
    lambda x: torch.gather(x[:4], 0, torch.tensor([3, 2, 1, 0]), out=x[:4]),
]


@pytest.mark.parametrize("call", OVERLAPPING)
def test_out_may_not_lie_across_what_is_read(call) -> None:
    x = torch.arange(6.0)
    with pytest.raises(
        RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single"
    ):
        call(x)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_out_may_be_the_tensor_that_is_read() -> None:
    x, m = torch.arange(4.0), torch.arange(4.0).reshape(2, 2)
    assert torch.add(x, 1, out=x).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert torch.mm(m, m, out=m).tolist() == [[2.0, 3.0], [6.0, 11.0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda out: torch.arange(0, 4, out=out),
        lambda out: torch.linspace(0, 3, 4, out=out),
        lambda out: torch.range(0, 3, out=out),
        lambda out: torch.logspace(0, 1.5, 4, base=4, out=out).log2_(),
    ],
)
def test_ranges_fill_a_view_of_as_many_elements(call) -> None:
    x = torch.zeros(2, 3)
    assert call(x.narrow(1, 1, 2)).shape == (2, 2)
    assert x.tolist() == [[0.0, 0.0, 1.0], [0.0, 2.0, 3.0]]


def test_out_would_lose_a_tangent() -> None:
    import pullback.autograd.forward_ad as forward

    with forward.dual_level():
        d, b = forward.make_dual(torch.ones(3), torch.ones(3)), torch.ones(3)
        for call in (lambda: torch.add(d, b, out=b), lambda: torch.add(b, b, out=d)):
            with pytest.raises(NotImplementedError, match="Trying to use forward AD with add_out"):
                call()


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.add_(1),
        lambda t: t.transpose_(0, 1),
        lambda t: t.resize_(6),
        lambda t: t.set_(torch.ones(3)),
        lambda t: torch.add(torch.ones(2, 3), 1, out=t),
        lambda t: torch.arange(6, out=t),
    ],
)
def test_inference_tensors_are_not_written_outside_the_mode(write) -> None:
    with torch.inference_mode():
        result = torch.ones(2, 3)
        write(result.clone())
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        write(result)
    assert result.tolist() == [[1.0, 1.0, 1.0]] * 2


@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "le_", "gt_", "ge_", "logical_and_", "logical_xor_"])
@pytest.mark.parametrize("part", [False, True])
def test_no_gradient_passes_what_a_comparison_wrote(name, part) -> None:
    x = torch.tensor([0.2, 0.7, 1.5], requires_grad=True)
    y = x * 2
    getattr(y[:2] if part else y, name)(torch.ones(2 if part else 3))
    assert y.requires_grad
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert gradient.tolist() == ([0, 0, 2] if part else [0, 0, 0])


def test_a_compiled_comparison_in_place_has_no_gradient_either() -> None:
    x = torch.tensor([0.2, 0.7], requires_grad=True)

    def run(x):
        y = x * 2
        y.lt_(1)
        return (y * x).sum()

    assert torch.autograd.grad(torch.compile(run)(x), x)[0].tolist() == [1.0, 0.0]


def test_writes_of_one_number_may_meet_an_element_several_times() -> None:
    y = torch.zeros(3).expand(2, 3)
    assert y.fill_(2).tolist() == [[2] * 3] * 2
    assert y.index_fill_(0, torch.tensor([0]), 5).tolist() == [[5] * 3] * 2
    assert y.index_put_((torch.tensor([0]), torch.tensor([2])), torch.tensor(9.0)).tolist() == [[5, 5, 9]] * 2
    assert y.zero_().tolist() == [[0] * 3] * 2
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        y.mul_(2)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, at: x.index_add_(0, at[0], x),
        lambda x, at: x.index_copy_(0, at[0], x),
        lambda x, at: x.index_reduce_(0, at[0], x, "prod"),
        lambda x, at: x.scatter_(0, at, x),
        lambda x, at: x.scatter_add_(0, at, x),
        lambda x, at: x.scatter_reduce_(0, at, x, "sum"),
        lambda x, at: x.put_(at, x),
        lambda x, at: torch.gather(x, 0, at, out=x),
        lambda x, at: torch.index_select(x, 0, at[0], out=x),
        lambda x, at: torch.take(x, at, out=x),
    ],
)
def test_what_is_picked_or_scattered_does_not_lie_on_what_is_written(write) -> None:
    x, at = torch.arange(4.0).reshape(2, 2), torch.tensor([[1, 0], [0, 1]])
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        write(x, at)
    assert x.tolist() == [[0, 1], [2, 3]]


def test_out_is_taken_where_there_is_no_gradient_to_lose() -> None:
    x = torch.tensor([0.2, 0.7], requires_grad=True)
    assert torch.gt(x, 0.5, out=torch.zeros(2, dtype=torch.bool)).tolist() == [False, True]
    assert torch.argmax(x, out=torch.tensor(0)).item() == 1
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.add(x, 1, out=torch.zeros(2))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.gt(torch.ones(2), 0.5, out=torch.zeros(2, requires_grad=True))


def test_only_leaves_are_told_to_require_grad() -> None:
    x = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        x.requires_grad = True
    assert x.requires_grad_() is x


def test_expanded_tensors_are_filled() -> None:
    row = torch.tensor([[1.0, 2.0]]).expand(3, 2)
    assert row.fill_(4.0) is row and row.tolist() == [[4.0, 4.0]] * 3 and row._version == 1
    assert row.zero_().tolist() == [[0.0, 0.0]] * 3
    for write in (lambda: row.fill_(torch.tensor(2.0)), lambda: row.add_(1)):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            write()
    assert row.tolist() == [[0.0, 0.0]] * 3


@pytest.mark.parametrize(
    ("name", "write", "result"),
    [
        ("index_fill_", lambda t, at, mask: t.index_fill_(0, at, 1.0), 1.0),
        ("index_fill_", lambda t, at, mask: t.index_fill_(0, at, torch.tensor(3.0)), 3.0),
        ("index_put_", lambda t, at, mask: t.index_put_((at,), torch.tensor([5.0, 6.0, 7.0])), 7.0),
        ("index_put_", lambda t, at, mask: t.index_put_((at,), torch.tensor([1.0, 2.0, 3.0]), accumulate=True), 6.0),
        ("index_put_", lambda t, at, mask: t.__setitem__(at, 9.0), 9.0),
        ("masked_fill_", lambda t, at, mask: t.masked_fill_(mask, 2.0), 2.0),
        ("masked_fill_", lambda t, at, mask: t.masked_fill_(mask, torch.tensor(4.0)), 4.0),
    ],
)
def test_indexed_writes_to_expanded_tensors_warn(name, write, result) -> None:
    t = torch.zeros(1).expand(6)
    with pytest.warns(UserWarning, match=f"Use of {name} on expanded tensors is deprecated"):
        write(t, torch.tensor([2, 1, 0]), torch.tensor([True, False, True, True, False, False]))
    assert t.tolist() == [result] * 6


def test_numbers_that_are_elements_of_what_is_written() -> None:
    x = torch.arange(6.0)
    assert x.clone().masked_fill_(x > 2, x[3]).tolist() == [0.0, 1.0, 2.0, 3.0, 3.0, 3.0]
    assert x.masked_fill_(x > 2, x[3]).tolist() == [0.0, 1.0, 2.0, 3.0, 3.0, 3.0]
    assert x.index_fill_(0, torch.tensor([0, 1]), x[2]).tolist() == [2.0, 2.0, 2.0, 3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    "write",
    [
        lambda y, i: i.index_add_(0, i, i.clone()),
        lambda y, i: i.index_copy_(0, i.clone(), i),
        lambda y, i: i.index_fill_(0, i, 0),
        lambda y, i: i.index_put_((i,), i.clone()),
        lambda y, i: y.index_put_((i,), y[0]),
        lambda y, i: y.index_put_((i,), y[0], accumulate=True),
        lambda y, i: y.__setitem__(i, y[5:]),
        lambda y, i: i.put_(i, i.clone()),
        lambda y, i: i.scatter_(0, i, 1),
        lambda y, i: i.scatter_reduce_(0, i, i.clone(), "sum"),
    ],
)
def test_scattered_writes_onto_their_own_operands(write):
    y, i = torch.arange(6.0), torch.tensor([2, 1, 0])
    with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input tensor"):
        write(y, i)
    assert y.tolist() == list(range(6)) and i.tolist() == [2, 1, 0]


def test_what_is_read_before_scattered_writes():
    y, i, mask = torch.arange(6.0), torch.tensor([2, 1, 0]), torch.tensor([True] * 3 + [False] * 3)
    assert y.clone().index_fill_(0, i, y[5]).tolist() == [5, 5, 5, 3, 4, 5]
    y[mask] = y[5]
    assert y.tolist() == [5, 5, 5, 3, 4, 5]
    mask[mask] = False
    assert not mask.any()
