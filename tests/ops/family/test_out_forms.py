"""Operators that write what they are given: their schemas, results, and what sees them."""

import pytest

import pullback as torch
from pullback.joint.aot import aot_function

aten = torch.ops.aten


def test_the_last_keyword_is_what_is_written():
    assert str(aten.add.out._schema) == (
        "aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
    )
    assert aten.add.out._schema.is_mutable and aten.add.out is aten.add.out and "out" not in aten.add.overloads()
    x, out = torch.tensor([1.0, 2.0]), torch.empty(2)
    assert aten.add.out(x, x, alpha=2, out=out) is out and out.tolist() == [3, 6]


@pytest.mark.parametrize(
    "packet, overload, args",
    [
        (aten.sum, "out", ()),
        (aten.sum, "IntList_out", ([0],)),
        (aten.mean, "out", ([0],)),
        (aten.mul, "Tensor_out" if "Tensor_out" in aten.mul.overloads() else "out", (torch.tensor(3.0),)),
        (aten.max, "unary_out", ()),
        (aten.max, "out", (torch.tensor([2.0, 1.0, 9.0]),)),
        (aten.fill, "Tensor_out", (torch.tensor(4.0),)),
        (aten.any, "all_out", ()),
        (aten.div, "out_mode", (torch.tensor(2.0),)),
    ],
)
def test_it_computes_what_the_call_with_out_computes(packet, overload, args):
    x = torch.tensor([3.0, 1.0, 2.0])
    options = {"rounding_mode": "floor"} if overload == "out_mode" else {}
    expected = packet(x, *args, **options)
    out = torch.empty(0, dtype=expected.dtype)
    assert getattr(packet, overload)(x, *args, **options, out=out) is out
    assert out.tolist() == expected.tolist()


def test_several_results_have_their_names():
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    aten.topk.values(torch.tensor([3.0, 1.0, 2.0]), 2, values=values, indices=indices)
    assert values.tolist() == [3, 2] and indices.tolist() == [0, 2]


def test_the_tensor_says_what_is_made():
    out = torch.empty(0, dtype=torch.int64)
    assert aten.arange.start_out(1, 4, out=out).tolist() == [1, 2, 3] and out.dtype is torch.int64
    assert aten.zeros.out([2], out=torch.ones(2)).tolist() == [0, 0]


@pytest.mark.parametrize("name", ["nothing_out", "out"])
def test_there_is_none_of_views_and_of_what_is_not_there(name):
    with pytest.raises(AttributeError, match="no overload name"):
        getattr(aten.view, name)


def test_gradients_do_not_pass():
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        aten.sin.out(torch.ones(2, requires_grad=True), out=torch.empty(2))


def test_captured_and_traced():
    def f(x, out):
        return aten.mul.out(x, x, out=out) + 1

    for compiled in (torch.compile(f, backend="aot_eager"), aot_function(f, lambda gm, _: gm)):
        out = torch.zeros(2)
        assert compiled(torch.tensor([2.0, 3.0]), out).tolist() == [5, 10] and out.tolist() == [4, 9]
