"""Arithmetic: promotion, `alpha`, numbers on either side, division and remainders, what is refused."""

import math

import numpy as np
import pytest

import pullback as torch
from tests.ops.checks import to_numpy

inf, nan = math.inf, math.nan


@pytest.mark.parametrize(
    ("left", "right", "dtype"),
    [
        ("int64", "float32", "float32"),
        ("uint8", "int8", "int16"),
        ("float16", "bfloat16", "float32"),
        ("bool", "uint8", "uint8"),
        ("float64", "complex64", "complex128"),
        ("int32", "bool", "int32"),
    ],
)
def test_operands_meet_in_their_common_dtype(left, right, dtype):
    x, y = (torch.ones(2, dtype=getattr(torch, d)) for d in (left, right))
    assert (x + y).dtype is getattr(torch, dtype)
    assert (y * x).dtype is getattr(torch, dtype)


def test_numbers_and_scalars_do_not_widen():
    x = torch.ones(2, dtype=torch.float16)
    assert (x + 1.5).dtype is torch.float16
    assert (x + torch.tensor(1.0, dtype=torch.float64)).dtype is torch.float16
    assert (torch.ones(2, dtype=torch.int8) + 300).tolist() == [45, 45]
    assert (torch.ones(2, dtype=torch.int8) * 1.5).dtype is torch.float32
    assert (torch.ones(2) + 2j).dtype is torch.complex64


def test_halves_are_rounded_once():
    x = torch.tensor([1.0], dtype=torch.float16)
    assert torch.addcmul(x, x, x, value=2**-11).item() == 1.0
    assert (torch.tensor([65504.0], dtype=torch.float16) * 2 / 2).item() == inf
    big = torch.tensor([100000])
    assert (big * torch.tensor([0.0], dtype=torch.float16)).isnan().all()  # the integer becomes infinite first


def test_alpha():
    x = torch.tensor([1, 2])
    assert x.add(x, alpha=3).tolist() == [4, 8]
    assert torch.rsub(x, 10, alpha=2).tolist() == [8, 6]
    with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
        x.add(x, alpha=1.5)
    with pytest.raises(RuntimeError, match="argument alpha must not be a complex number"):
        x.float().sub(x, alpha=1j)
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results"):
        x.add(x, alpha=True)


def test_numbers_on_the_left():
    x = torch.tensor([1.0, 2.0, 4.0])
    assert (2 - x).tolist() == [1, 0, -2]
    assert (2 / x).tolist() == [2, 1, 0.5]
    assert (2**x).tolist() == [2, 4, 16]
    assert (5 % torch.tensor([3, 4])).tolist() == [2, 1]
    assert (6 & torch.tensor([3, 4])).tolist() == [2, 4]


def test_node_names():
    scope = {"x": torch.ones(2, requires_grad=True), "y": torch.ones(2)}
    names = {
        "x + 1": "AddBackward0", "2 - x": "RsubBackward1", "x * y": "MulBackward0", "x / y": "DivBackward0",
        "x.div(y, rounding_mode='floor')": "DivBackward2", "x % 2": "RemainderBackward0", "x % y": "RemainderBackward1",
        "x.lerp(y, 0.5)": "LerpBackward0", "x.lerp(y, y)": "LerpBackward1", "x.abs()": "AbsBackward0",
    }  # fmt: skip
    for expression, name in names.items():
        assert eval(expression, scope).grad_fn.name() == name, expression


@pytest.mark.parametrize(
    ("mode", "want"), [("trunc", [2, -2, -2, 2]), ("floor", [2, -3, -3, 2]), (None, [2.5, -2.5, -2.5, 2.5])]
)
def test_rounded_division(mode, want):
    x, y = torch.tensor([5, -5, 5, -5]), torch.tensor([2, 2, -2, -2])
    assert torch.div(x, y, rounding_mode=mode).tolist() == want
    assert torch.div(x.double(), y.double(), rounding_mode=mode).tolist() == want


def test_remainders_have_the_sign_of_the_divisor_or_of_the_dividend():
    x = torch.tensor([5.0, -5.0, 5.0, -5.0])
    y = torch.tensor([3.0, 3.0, -3.0, -3.0])
    assert torch.remainder(x, y).tolist() == [2, 1, -1, -2]
    assert torch.fmod(x, y).tolist() == [2, -2, 2, -2]
    assert torch.remainder(x.long(), y.long()).tolist() == [2, 1, -1, -2]
    assert torch.fmod(x.long(), 3).tolist() == [2, -2, 2, -2]
    assert torch.remainder(x, 0.0).isnan().all()


@pytest.mark.parametrize("call", ["x // z", "x % z", "x.fmod(z)", "x.div(z, rounding_mode='trunc')"])
def test_integers_are_not_divided_by_zero(call):
    scope = {"x": torch.tensor([1, 2]), "z": torch.tensor([1, 0])}
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        eval(call, scope)


def test_rounded_division_is_flat_and_remainders_are_not():
    x, y = (torch.tensor([v], requires_grad=True) for v in (7.0, 2.0))
    assert [g.item() for g in torch.autograd.grad(x.div(y, rounding_mode="floor"), [x, y])] == [0, 0]
    assert [g.item() for g in torch.autograd.grad(x % y, [x, y])] == [1, -3]
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        (x // y).backward()


REFUSED = [
    ("torch.tensor([True]) - 1", RuntimeError, "with a bool tensor is not supported"),
    ("torch.tensor([True]) - torch.tensor([True])", RuntimeError, "with two bool tensors is not supported"),
    ("-torch.tensor([True])", RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported"),
    ("torch.tensor([True]).abs()", NotImplementedError, "\"abs_cpu\" not implemented for 'Bool'"),
    ("torch.ones(2, dtype=torch.cfloat).abs_()", RuntimeError, "In-place abs is not supported for complex tensors"),
    ("torch.ones(2).long().div_(2)", RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ("torch.ones(2).add_(torch.ones(3))", RuntimeError, r"tensor a \(2\) must match the size of tensor b \(3\)"),
    ("torch.ones(2, 1).add_(torch.ones(2, 3))", RuntimeError, "doesn't match the broadcast shape"),
    ("torch.addcdiv(torch.ones(2), torch.tensor([1, 2]), torch.tensor([1, 2]))", RuntimeError, "Integer division with"),
    ("torch.lerp(torch.ones(2), torch.ones(2).double(), 0.5)", RuntimeError, "expected dtype float for `end` but got"),
    ("torch.lerp(torch.tensor([1]), torch.tensor([2]), 0.5)", NotImplementedError, "lerp_kernel_scalar"),
    ("torch.hypot(torch.ones(2), 2)", TypeError, r"argument 'other' \(position 2\) must be Tensor, not int"),
    ("torch.gcd(torch.ones(2), torch.ones(2))", NotImplementedError, "\"gcd_cpu\" not implemented for 'Float'"),
    ("torch.div(torch.ones(2), 2, rounding_mode='up')", RuntimeError, "but found 'up'"),
    ("torch.remainder(2, 3)", TypeError, "must be Tensor, not int"),
    ("+torch.tensor([True])", RuntimeError, "on a bool tensor is not supported"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        eval(call)


def test_a_refused_write_changes_nothing():
    x = torch.ones(2)
    with pytest.raises(RuntimeError):
        x.add_(torch.ones(3))
    with pytest.raises(RuntimeError):
        x.mul_(2j)
    assert x.tolist() == [1, 1] and x._version == 0


def test_lerp_meets_both_ends_exactly():
    x, y = torch.tensor([0.1]), torch.tensor([1e8])
    assert torch.lerp(x, y, 1.0).item() == y.item() and torch.lerp(x, y, 0.0).item() == x.item()
    assert torch.lerp(x, y, torch.ones(1)).item() == y.item()


def test_memory_order_follows_the_operands():
    x, y = torch.ones(3, 2).t(), torch.ones(2, 3)
    assert (x + x).stride() == (1, 2) and (x + y).stride() == (1, 2) and (y + x).stride() == (3, 1)
    assert (x + 1).stride() == (1, 2) and torch.addcmul(y, x, x).stride() == (3, 1)
    assert (torch.ones(2, 4, 3, 3).to(memory_format=torch.channels_last) * 2).stride() == (36, 1, 12, 4)


def test_large_arrays_on_threads_agree_with_small_ones():
    x = torch.arange(600 * 500, dtype=torch.float64).reshape(600, 500) / 1e5
    row = torch.arange(500, dtype=torch.float64)
    for whole, part in [
        (x * row + x.t().contiguous().t(), x[:3] * row + x[:3]),
        (torch.sigmoid(x), torch.sigmoid(x[:3])),
        (x.remainder(0.7), x[:3].remainder(0.7)),
        (torch.where(x > 1, x, row), torch.where(x[:3] > 1, x[:3], row)),
    ]:
        np.testing.assert_allclose(to_numpy(whole[:3]), to_numpy(part), rtol=1e-12)
    assert (x.t() + 1).stride() == x.t().stride()


def test_lerp_by_a_weight_of_no_dimension_and_another_dtype():
    assert torch.lerp(torch.zeros(2), torch.ones(2), torch.tensor(0.5, dtype=torch.float64)).tolist() == [0.5, 0.5]


def test_the_slope_of_addcdiv_is_rounded_once() -> None:
    x, y = torch.zeros(1), torch.tensor([0.80286115]).bfloat16()
    tensor = torch.ones(1, requires_grad=True, dtype=torch.float64)
    (slope,) = torch.autograd.grad(torch.addcdiv(x, tensor, y, value=0.4).sum(), tensor)
    assert slope.tolist() == [0.498046875]


@pytest.mark.parametrize("name", ["add", "hypot", "where"])
def test_out_that_is_an_argument_keeps_its_shape(name) -> None:
    x, y = torch.ones(3), torch.ones(2, 3)
    given = (y > 0, x, y) if name == "where" else (x, y)
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]"):
        getattr(torch, name)(*given, out=x)
    assert x.shape == (3,) and getattr(torch, name)(*given, out=torch.empty(0)).shape == (2, 3)


@pytest.mark.parametrize("big", [1 << 64, -(1 << 63) - 1, 10**30])
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool])
def test_integers_of_more_than_64_bits_are_refused_beside_integers(dtype, big):
    x = torch.ones(2, dtype=dtype)
    calls = [lambda: x + big, lambda: big - x.int(), lambda: x * big, lambda: big**x, lambda: x & big, lambda: x == big]
    calls += [lambda: torch.remainder(big, x), lambda: torch._foreach_add([x], big), lambda: x.long().add_(big)]
    for call in calls:
        with pytest.raises(OverflowError, match="int too big to convert|can't convert negative int to unsigned"):
            call()
    assert (x.double() + big).tolist() == [1.0 + big] * 2 and (x / big).tolist() == pytest.approx([1 / big] * 2)


def test_integers_of_64_bits_wrap():
    x = torch.ones(2, dtype=torch.int64)
    assert (x + (1 << 63)).tolist() == [1 - (1 << 63)] * 2 and (x * ((1 << 64) - 1)).tolist() == [-1, -1]
