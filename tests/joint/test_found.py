"""What random programs found wrong, made small: each program behaves the same in every form, and as it should."""

import numpy as np
import pytest

import pullback as torch
from pullback.joint.aot import aot_function
from tests.joint.programs import Line, Program
from tests.joint.targets import TARGETS

LEAF = ("a1 = torch.randn(3, 3)", "a1.requires_grad_()")
INNER = (*LEAF, "a2 = a1 * 2")


def program(result, arguments, body, results) -> Program:
    return Program(0, tuple(map(Line, result)), arguments, tuple(map(Line, body)), results)


FOUND = {
    "views of a tensor whose shape is changed in place": program(
        INNER, ("a2",), ("v3 = a2[0:1]", "a2.t_()", "v3.mul_(2)"), ("v3", "a2")
    ),
    "a shape changed in place, by which the root of written memory is known": program(
        ("a1 = torch.randn(2, 3)",), ("a1",), ("v2 = a1.view(-1)", "v2[1:3].mul_(2)", "a1.t_()", "v3 = a1 + 1"), ("v2", "v3")
    ),
    "a view that was written, read, and changed in shape": program(
        INNER, ("a2",), ("v3 = a2.permute(0, 1)", "v3 *= 0.5", "v4 = v3.reshape(-1)", "v3.squeeze_()"), ("v4", "v3")
    ),
    "a write through data to what backward reads": program(LEAF, ("a1",), ("v2 = torch.sigmoid(a1)", "v2.data.add_(1)"), ("v2",)),
    "a square input, written and transposed": program(("a1 = torch.randn(2, 2)",), ("a1",), ("a1.mul_(2)", "a1.t_()"), ("a1",)),
    "a write whose operands were saved": program(INNER, ("a2",), ("v3 = a2.sin()", "a2.detach().mul_(0.5)"), ("v3",)),
    "as_strided of a view of written memory": program(
        ("a1 = torch.randn(4, 2)",), ("a1",), ("v2 = a1[2]", "v3 = v2.as_strided((2,), (1,), 4)", "v2.add_(1)", "v4 = v3 * 2"), ("v4", "v3")
    ),
    "a write to a part of an expanded input": program(
        ("a1 = torch.randn(2)", "a2 = a1.expand(3, 2)"), ("a2",), ("a2[1].add_(1)",), ("a2",)
    ),
    "inputs at one place in memory": program(
        (*INNER, "a3 = a2[...]"), ("a3", "a2"), ("a3[0] = 0.5", "a2.neg_()"), ("a2",)
    ),
    "a complex input and its real parts": program(
        ("a1 = torch.randn(3, dtype=torch.complex64)", "a2 = torch.view_as_real(a1)"), ("a1", "a2"), ("a2[0].add_(1)", "v3 = a1 * 2"), ("v3",)
    ),
    "a view made under no_grad of an input": program(
        INNER, ("a2",), ("torch.set_grad_enabled(False)", "v3 = a2[0]", "torch.set_grad_enabled(True)", "v4 = v3[0:2]"), ("v3", "v4")
    ),
    "the layout of a tensor with gaps": program(
        ("a1 = torch.randn(2, 3, 2)", "a2 = a1.diagonal()"), ("a2",), ("a2.add_(1)", "v3 = torch.zeros_like(a2)"), ("v3",)
    ),
    "the conjugate of a conjugate that was written": program(
        ("a1 = torch.randn(3, dtype=torch.complex64)", "a2 = a1.conj()"), ("a2",), ("a2.mul_(2)", "v3 = a2.conj()", "v4 = torch.view_as_real(v3)"), ("v4",)
    ),
    "a conjugate whose shape was changed in place": program(
        ("a1 = torch.randn(4, 2, dtype=torch.complex64)",), ("a1",), ("v2 = a1.conj()", "v2.t_()", "v3 = v2[0:1]"), ("v3", "v2")
    ),
    "a result detached from another one, and its shape changed in place": program(
        LEAF, ("a1",), ("v2 = a1 * 2", "v3 = v2.detach()", "v3.squeeze_()"), ("v3", "v2")
    ),
    "out= into a view": program(("a1 = torch.randn(2, 3)",), ("a1",), ("v2 = a1.t()", "torch.sin(v2, out=v2)"), ("v2",)),
    "statistics that nothing but the arguments shows": program(
        ("a1 = torch.randn(4, 2)", "a2 = torch.zeros(2)", "a3 = torch.ones(2)"),
        ("a1", "a2", "a3"),
        ("torch.nn.functional.batch_norm(a1, a2, a3, training=True)",),
        (),
    ),
    "a gradient whose layout shows an element twice": program(
        ("a1 = torch.randn(1)", "a1.requires_grad_()", "a2 = a1 * 2"), ("a2",), ("v3 = torch.cat([a2, a2])", "v4 = v3.as_strided((2,), (0,))"), ("v4",)
    ),
    "writes that count on a part of memory that an input only spans": program(
        ("a1 = torch.randn(2, 2, 2)", "a2 = a1[..., 0:1]"), ("a2",), ("a2[0] = 0.5", "v3 = a2.as_strided((3,), (1,), 0)", "v3.add_(1)"), ("a2",)
    ),
    "a tensor without elements that is its own contiguous copy": program(
        ("a1 = torch.randn(2, 3, 0)",), ("a1",), ("v2 = a1 * 2", "v2.swapaxes_(0, -1)", "v3 = v2.contiguous()"), ("v3", "v2")
    ),
    "a product that was written through data": program(LEAF, ("a1",), ("v2 = a1.prod(0)", "v2.data.fill_(0.5)"), ("v2",)),
    "factors that were written through data": program(INNER, ("a2",), ("v3 = a2.prod()", "a2.data.neg_()"), ("v3",)),
    "running products that were written through data": program(LEAF, ("a1",), ("v2 = a1.cumprod(0)", "v2.data.add_(1)"), ("v2",)),
    "a written tensor with a dimension of size 1, seen as complex numbers": program(
        ("a1 = torch.randn(2, 1, 2)",), ("a1",), ("a1.mT.zero_()", "v2 = torch.view_as_complex(a1)"), ("v2",)
    ),
    "windows, of which there is one in each row, seen as complex numbers": program(
        ("a1 = torch.randn(2, 2)", "a2 = a1.unfold(1, 2, 1)"), ("a2",), ("v3 = torch.view_as_complex(a2.unsqueeze(0))",), ("v3",)
    ),
    "nothing, seen as complex numbers": program(
        ("a1 = torch.randn(2, 0, 3)",), ("a1",), ("v2 = a1.mT[:, 0:2]", "v3 = v2.mT", "v4 = torch.view_as_complex(v3)"), ("v4",)
    ),
    "a tensor added to itself, seen with another stride where its size is 1": program(
        ("a1 = torch.randn(2, 3, 2)", "a2 = a1[::2]"), ("a2",), ("v3 = a2.view(1, 3, 2)", "a2.add_(v3)"), ("a2",)
    ),
    "a view of a view, its shape changed in place under no_grad": program(
        (*INNER, "a3 = a2[0:2]"), ("a2", "a3"), ("torch.set_grad_enabled(False)", "a3.t_()", "torch.set_grad_enabled(True)", "v4 = a3.sin()"), ("v4", "a3")
    ),
    "a view of a leaf, its shape changed in place under no_grad": program(
        (*LEAF, "a2 = a1[0:2]"), ("a2",), ("torch.set_grad_enabled(False)", "a2.t_()", "torch.set_grad_enabled(True)", "v3 = a2 * a2"), ("v3", "a2")
    ),
    "a view that is written and changed in shape, both under no_grad": program(
        (*INNER, "a3 = a2[0:2]"), ("a3",), ("torch.set_grad_enabled(False)", "a3.mul_(2)", "a3.t_()", "torch.set_grad_enabled(True)", "v4 = a3.sin()"), ("v4", "a3")
    ),
    "what shares memory with a view, its shape changed in place under no_grad": program(
        (*INNER, "a3 = a2[0:2]"), ("a3",), ("v4 = a3.data", "torch.set_grad_enabled(False)", "v4.t_()", "torch.set_grad_enabled(True)"), ("v4",)
    ),
    "statistics that show an element twice": program(
        ("a1 = torch.randn(4, 2)", "a2 = torch.zeros(3).as_strided((2,), (0,), 1)"),
        ("a1", "a2"),
        ("v3 = torch.nn.functional.batch_norm(a1, a2, torch.ones(2), training=True)", "v4 = a2 + 1"),
        ("v4",),
    ),
    "an index into nothing, and a backward that cannot be": program(
        ("a1 = torch.randn(0)", "a1.requires_grad_()", "a2 = a1 * 2"), ("a2",), ("a2.tanh_()", "a2.index_fill_(0, torch.tensor([0]), 0.75)"), ()
    ),
    "an index that is in the range of nothing": program(
        ("a1 = torch.randn(0)",), ("a1",), ("a1.index_fill_(0, torch.tensor([0]), 0.75)",), ("a1",)
    ),
    "an input of another shape afterwards, beside sizes that depend on data": program(
        ("a1 = torch.randn(2, 3)", "a2 = a1.view_as(a1)"), ("a1", "a2"),
        ("v3 = a1[[0, 0, 0]]", "v4 = v3[::2]", "v4[torch.arange(2) == 0] = 0.5", "v4.t_()", "a2.unsqueeze_(0)"), ("v4", "v3")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    for target, compare in TARGETS.items():
        assert not compare(FOUND[name]), target


# ---- what was wrong eagerly
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32, torch.int64])
@pytest.mark.parametrize("step", range(1, 10))
def test_negation_in_place_of_any_stride(dtype, step):
    x = torch.arange(step * 9).to(dtype)
    expected = x.numpy().copy()
    expected[::step] *= -1
    x[::step].neg_()
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_write_to_a_view_of_what_was_transposed_in_place():
    leaf = torch.ones(1, 3, requires_grad=True)
    x = leaf * 2
    view = x.movedim(0, -1)
    x.t_()
    view[..., 0] = torch.tensor(0.75)
    x.sum().backward()
    assert leaf.grad.tolist() == [[0.0, 0.0, 0.0]]


def test_a_view_transposed_under_no_grad_keeps_its_gradient():
    leaf = torch.ones(2, 3, requires_grad=True)
    view = (leaf * 2)[0:1]
    with torch.no_grad():
        view.t_()
    (view * torch.tensor([[1.0], [2.0], [3.0]])).sum().backward()
    assert leaf.grad.tolist() == [[2.0, 4.0, 6.0], [0.0, 0.0, 0.0]]


def test_a_write_to_an_as_strided_view_of_a_base_that_does_not_begin_its_memory():
    source = torch.ones(1, requires_grad=True)
    base = torch.zeros(6)[3:].detach()
    base.as_strided((1,), (1,), 4).copy_(source * 2)
    (base * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert source.grad.tolist() == [20.0]


def test_the_slope_of_atan2_at_the_origin_is_none():
    x, y = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    torch.atan2(x, y).backward()
    assert x.grad.tolist() == [0.0] and y.grad.tolist() == [0.0]


def test_stacking_expanded_tensors_is_row_major():
    x = torch.randn(2, 3).expand(2, 2, 3)
    assert torch.stack([x, x]).is_contiguous() and torch.cat([x[None], x[None]]).is_contiguous()


def test_a_functional_copy_is_laid_out_as_its_first_argument():
    x = torch.randn(2, 3).t()
    assert torch.ops.aten.copy(x, torch.ones(())).stride() == x.stride()


def test_taking_from_nothing_is_refused_by_shape():
    with pytest.raises(IndexError, match="tried to take from an empty tensor"):
        torch.take(torch.empty(3, 0, device="meta"), torch.zeros(1, dtype=torch.int64, device="meta"))


@pytest.mark.parametrize(
    "take",
    [
        lambda x, i: x[i],
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.index_fill(0, i, 1.0),
        lambda x, i: x.index_copy(0, i, x.new_zeros(1, 3)),
        lambda x, i: x.index_put((i,), x.new_zeros(())),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_an_index_into_nothing_is_refused_by_shape(take, device):
    with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)|indexing axis dim should be positive"):
        take(torch.zeros(0, 3, device=device), torch.zeros(1, dtype=torch.int64, device=device))
    assert take(torch.zeros(1, 3, device=device), torch.zeros(1, dtype=torch.int64, device=device)).shape == (1, 3)


def test_a_view_is_no_leaf_once_another_view_of_its_base_was_written():
    source = torch.ones(1, requires_grad=True)
    row = torch.zeros(2, 2)[0]
    row[0:1].copy_(source * 2)
    torch.ops.aten.masked_fill_.Scalar(row, torch.tensor([False, True]), 3)
    row.sum().backward()
    assert row.tolist() == [2, 3] and source.grad.tolist() == [2]


def test_a_complex_view_of_a_view_that_changes_its_shape_is_refused():
    """Eagerly it goes on being a view of what the input is a view of, which a trace of the input alone does not know."""

    def f(x):
        out = torch.view_as_complex(x)
        x.transpose_(0, -1)
        return out

    from pullback.joint.aot import aot_function

    def view():
        return (torch.ones(2, 1, 2, requires_grad=True) * 2)[0]

    assert f(view()).tolist() == [2 + 2j]
    with pytest.raises(NotImplementedError, match="changing the shape of an input in place"):
        aot_function(f, lambda graph, inputs: graph)(view())


def test_a_tensor_without_elements_is_contiguous_whatever_its_strides() -> None:
    assert torch.empty_strided((0, 3, 2), (1, 1, 3), device="meta").is_contiguous()


def test_a_single_row_of_pairs_may_have_an_odd_stride() -> None:
    x = torch.arange(8.0).as_strided((2, 1, 2), (4, 3, 1))
    assert torch.view_as_complex(x).tolist() == [[0 + 1j], [4 + 5j]]
    with pytest.raises(RuntimeError, match="must have a stride divisible by 2"):
        torch.view_as_complex(torch.arange(8.0).as_strided((2, 2), (3, 1)))


@pytest.mark.parametrize("product", [torch.prod, lambda x: torch.prod(x, 0), lambda x: torch.cumprod(x, 0)])
def test_a_product_that_was_written_has_no_gradient(product) -> None:
    out = product(torch.ones(3, requires_grad=True))
    out.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_writes_of_nothing() -> None:
    """Tensors without elements have strides of their own; a write to them changes nothing."""

    def f(x):
        torch.view_as_real(x).mT.zero_()
        return x.sum()

    x = torch.zeros((3, 0), dtype=torch.complex64)
    torch.testing.assert_close(aot_function(f, lambda graph, inputs: graph)(x), f(x))
    assert x._version == 2


def test_detached_aliases_of_which_one_gets_a_history_are_refused() -> None:
    def f(a, b, w):
        a.flatten().add_(w)
        torch.add(a.detach(), 1, out=b)
        return []

    base, w = torch.ones(3, 2), torch.ones((), requires_grad=True)
    with pytest.raises(RuntimeError, match="must be views of one base tensor"):
        aot_function(f, lambda graph, inputs: graph)(base.detach(), base.squeeze(0), w * 1)


def test_a_leaf_that_gets_another_shape_beside_its_view_is_refused() -> None:
    def f(x, view):
        with torch.no_grad():
            x.unsqueeze_(0)
        return 1 / (view.abs() + 1)

    x = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(NotImplementedError, match="has views among the inputs"):
        aot_function(f, lambda graph, inputs: graph)(x, x.unfold(2, 2, 1))
