"""Where a call on CUDA tensors runs: the decisions, without a device. Arrays here are NumPy's; nothing is computed."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.core.dtype import computable
from pullback.core.tensor import CUDA, wrap
from pullback.ops.system.operator import registry
from pullback.ops.system.placement import each_tensor, together

HERE, THERE = torch.device("cuda", 0), torch.device("cuda", 1)


def on(device, *shape):
    return wrap(np.zeros(shape, np.float32), torch.float32, device)


def test_cuda_tensors_are_not_plain():
    assert on(HERE, 2)._keys == CUDA and on(torch.device("cpu"), 2)._keys == 0
    assert torch.device("cuda:3").keys == CUDA and torch.device("meta").keys == 0


def test_one_device():
    add = registry["add.Tensor"]
    args = (on(HERE, 2), on(HERE, 2), 1)
    assert together(add, args) == (HERE, args) and together(add, args)[1] is args


@pytest.mark.parametrize(
    "first, second",
    [(on(HERE, 2), on(THERE, 2)), (torch.ones(2), on(HERE, 2)), (torch.ones(2), on(HERE)), (on(HERE), on(THERE))],
)
def test_two_devices_are_refused(first, second):
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices"
    ):
        together(registry["add.Tensor"], (first, second, 1))


def test_copies_take_two_devices():
    args = (on(HERE, 2), torch.ones(2), False)
    assert together(registry["copy.default"], args)[1] is args


def test_numbers_and_indices_move(monkeypatch):
    from pullback.ops.system import placement

    moved = []
    monkeypatch.setattr(placement, "to_device", lambda array, where: moved.append(array.shape) or array)
    where, args = together(registry["add.Tensor"], (torch.tensor(1.0), on(HERE, 2), 1))
    assert where is HERE and args[0].device is HERE and moved == [()]
    indices = (None, torch.tensor([0, 1]))
    where, args = together(registry["index.Tensor"], (on(HERE, 2, 2), indices))
    assert args[1][0] is None and args[1][1].device is HERE and moved[-1] == (2,)


def test_tensors_inside_results_are_found():
    pair = torch.ones(2, 2).max(0)
    result = each_tensor(pair, lambda t: t + 1)
    assert type(result) is type(pair) and result.values.tolist() == [2, 2] and result.indices.tolist() == [1, 1]
    assert each_tensor([torch.ones(1), None, 3], lambda t: t.item()) == [1.0, None, 3]


def test_dtypes_that_no_device_has():
    assert computable(torch.float8_e4m3fn) is torch.float8_e4m3fn
    with pytest.raises(NotImplementedError, match="not supported on cuda:0: CuPy has no such dtype"):
        computable(torch.float8_e4m3fn, HERE)
