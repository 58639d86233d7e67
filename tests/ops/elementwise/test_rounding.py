"""Rounding and signs: halves, decimals, integers, NaN and zeros."""

import math

import pytest

import pullback as torch

inf, nan = math.inf, math.nan


def test_rounding():
    x = torch.tensor([1.5, 2.5, -0.5, -1.7])
    assert x.round().tolist() == [2, 2, 0, -2] and x.floor().tolist() == [1, 2, -1, -2]
    assert x.ceil().tolist() == [2, 3, 0, -1] and x.trunc().tolist() == [1, 2, 0, -1] and torch.fix is torch.trunc
    assert torch.frac(x).tolist() == pytest.approx([0.5, 0.5, -0.5, -0.7])
    assert math.copysign(1, x.round()[2].item()) == -1
    i = torch.tensor([3])
    assert i.round().dtype is torch.int64 and i.floor() is not i


def test_decimals():
    x = torch.tensor([1.2345, 1250.0], dtype=torch.float64)
    assert x.round(decimals=2).tolist() == [1.23, 1250.0] and torch.round(x, decimals=-2).tolist() == [0.0, 1200.0]
    with pytest.raises(NotImplementedError, match="\"round_cpu\" not implemented for 'Long'"):
        torch.tensor([1]).round(decimals=1)


@pytest.mark.parametrize("name", ["ceil", "floor", "trunc", "round", "sign"])
def test_gradients_are_zeros_not_absent(name):
    x = torch.tensor([0.3], requires_grad=True)
    getattr(x, name)().backward()
    assert x.grad.item() == 0


def test_signs():
    x = torch.tensor([-2.0, 0.0, nan, inf])
    assert x.sign().tolist() == [-1, 0, 0, 1] and x.sgn().tolist() == [-1, 0, 0, 1]
    assert torch.sgn(torch.tensor([3 + 4j, 0j])).tolist() == [0.6000000238418579 + 0.800000011920929j, 0j]
    assert torch.signbit(torch.tensor([-0.0, 1.0])).tolist() == [True, False]
    assert torch.copysign(torch.tensor([1.0, 2.0]), torch.tensor([-0.0, 1.0])).tolist() == [-1, 2]
    assert torch.copysign(torch.tensor([1]), -2).tolist() == [-1.0]
    assert torch.heaviside(torch.tensor([-1.0, 0.0, 2.0, nan]), torch.tensor([0.5])).tolist() == [0, 0.5, 1, 0]


def test_neighbours_are_those_of_the_dtype():
    one = torch.ones(1, dtype=torch.float16)
    assert torch.nextafter(one, one * 2).item() == 1 + 2**-10
    assert torch.nextafter(one.float(), one.float() * 2).item() == 1 + 2**-23
    many = one.expand(700).clone()
    assert torch.nextafter(many, many * 2).unique().tolist() == [1 + 2**-10]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_neighbour_of_a_zero_towards_another_is_the_other(dtype):
    zeros = torch.tensor([-0.0, 0.0], dtype=dtype)
    for step in (torch.nextafter, torch.compile(torch.nextafter), lambda x, y: x.clone().nextafter_(y)):
        assert torch.signbit(step(zeros, zeros.flip(0))).tolist() == [False, True]


REFUSED = [
    ("torch.tensor([True]).floor()", NotImplementedError, "\"floor_vml_cpu\" not implemented for 'Bool'"),
    ("torch.ones(1, dtype=torch.cfloat).ceil()", NotImplementedError, "ceil is not supported for complex inputs"),
    ("torch.ones(1, dtype=torch.cfloat).sign()", NotImplementedError, "Please use torch.sgn instead"),
    ("torch.frac(torch.tensor([1]))", NotImplementedError, "\"frac_cpu\" not implemented for 'Long'"),
    ("torch.heaviside(torch.ones(1), torch.tensor([1]))", RuntimeError, "tensors with different dtypes"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(call, error, words):
    with pytest.raises(error, match=words):
        eval(call)


@pytest.mark.parametrize("other", [-2.0, torch.tensor(-2.0)], ids=["number", "tensor"])
def test_the_sign_of_zero_has_no_gradient(other):
    x = torch.tensor([0.0, -0.0, 3.0, -4.0], requires_grad=True)
    torch.copysign(x, other).sum().backward()
    assert x.grad.tolist() == [0, 0, -1, 1]
