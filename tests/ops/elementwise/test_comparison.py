"""Comparisons, tests of elements, closeness and equality."""

import math

import numpy as np
import pytest

import pullback as torch
from pullback.ops.system.overrides import TorchDispatchMode

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


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool, torch.complex64, torch.bfloat16],
    ids=str,
)
def test_equality_is_that_of_every_element(dtype):
    x = torch.arange(10_000).remainder(2).to(dtype)
    assert x.equal(x.clone()) and torch.equal(input=x, other=x) and x[:0].equal(x[:0])
    assert not x.equal(x.reshape(2, -1)) and x.reshape(100, 100).t().equal(x.reshape(100, 100).t().contiguous())
    for at in (0, 4095, 4096, 9_999):
        y = x.clone()
        y[at] = 1 - int(x[at].real)
        assert not x.equal(y) and not y.equal(x)


def test_equality_of_zeros_and_of_what_is_no_number():
    assert torch.equal(torch.tensor([0.0, 0j]), torch.tensor([-0.0, -0j]))
    x = torch.tensor([1.0, nan])
    assert not x.equal(x) and not torch.complex(x, x).equal(torch.complex(x, x))


def test_equality_is_seen_by_modes_and_refuses_what_is_batched():
    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    seen: list[str] = []
    with Names():
        assert torch.ones(2).equal(torch.ones(2))
    assert any(name.startswith("eq") for name in seen)
    with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::equal"):
        torch.vmap(lambda t: t.equal(t))(torch.ones(2))


def test_equality_with_arrays_of_numpy():
    x, a = torch.tensor([1.0, 2.0]), np.array([1.0, 3.0])
    assert (x == a).tolist() == (a == x).tolist() == [True, False]
    assert (x != a).tolist() == [False, True]


@pytest.mark.parametrize("name", ["isposinf", "isneginf", "signbit"])
def test_answers_go_into_booleans_alone(name):
    with pytest.raises(RuntimeError, match=f"{name} does not support non-boolean outputs."):
        getattr(torch, name)(torch.ones(2), out=torch.empty(2))
