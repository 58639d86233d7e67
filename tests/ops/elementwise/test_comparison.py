"""Comparisons, tests of elements, closeness and equality."""

import math

import numpy as np
import pytest

import pullback as torch

inf, nan = math.inf, math.nan


def test_comparisons():
    x, y = torch.tensor([1.0, 2.0, nan]), torch.tensor([2.0, 2.0, nan])
    assert (x < y).tolist() == [True, False, False] and (x >= y).tolist() == [False, True, False]
    assert (x != y).tolist() == [True, False, True] and (x == 2).tolist() == [False, True, False]
    assert torch.less is torch.lt and torch.greater_equal is torch.ge and torch.not_equal is torch.ne
    assert x.clone().eq_(2).dtype is torch.float32
    assert (torch.tensor([255], dtype=torch.uint8) == -1).item()
    with pytest.raises(NotImplementedError, match="\"lt_cpu\" not implemented for 'ComplexFloat'"):
        torch.ones(2, dtype=torch.cfloat) < 1


def test_results_carry_no_gradient():
    x = torch.ones(2, requires_grad=True)
    assert not (x > 0).requires_grad and not x.isnan().requires_grad and not x.logical_not().requires_grad


def test_what_elements_are():
    x = torch.tensor([0.0, inf, -inf, nan])
    assert x.isinf().tolist() == [False, True, True, False] and x.isfinite().tolist() == [True, False, False, False]
    assert x.isposinf().tolist() == [False, True, False, False] and x.isneginf().tolist() == [False, False, True, False]
    assert torch.isfinite(torch.tensor([1])).item() and not torch.isnan(torch.tensor([True])).item()
    assert torch.isreal(torch.tensor([1j, 1 + 0j])).tolist() == [False, True]
    with pytest.raises(RuntimeError, match="isposinf does not support complex inputs"):
        torch.isposinf(torch.ones(1, dtype=torch.cfloat))


def test_closeness():
    x = torch.tensor([1.0, inf, nan])
    assert torch.isclose(x, torch.tensor([1 + 1e-6, inf, nan])).tolist() == [True, True, False]
    assert torch.isclose(x, x, equal_nan=True).all() and not torch.allclose(x, x)
    assert torch.isclose(torch.tensor([10]), torch.tensor([11]), atol=1).item()
    with pytest.raises(RuntimeError, match="Float did not match Double"):
        torch.isclose(x, x.double())
    with pytest.raises(RuntimeError, match="rtol must be greater than or equal to zero, but got -1"):
        torch.isclose(x, x, rtol=-1)


def test_equality_of_tensors():
    x = torch.tensor([1, 2])
    assert torch.equal(x, x.float()) and not torch.equal(x, x[:1]) and not x.equal(torch.tensor([1, 3]))
    assert not torch.equal(torch.tensor([nan]), torch.tensor([nan]))
    with pytest.raises(TypeError, match="argument 'other'"):
        torch.equal(x, 2)


def test_equality_with_arrays_of_numpy():
    x, a = torch.tensor([1.0, 2.0]), np.array([1.0, 3.0])
    assert (x == a).tolist() == (a == x).tolist() == [True, False]
    assert (x != a).tolist() == [False, True]


@pytest.mark.parametrize("name", ["isposinf", "isneginf", "signbit"])
def test_answers_go_into_booleans_alone(name):
    with pytest.raises(RuntimeError, match=f"{name} does not support non-boolean outputs."):
        getattr(torch, name)(torch.ones(2), out=torch.empty(2))
