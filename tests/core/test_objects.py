"""Tensor objects made in one step: the extension in C, where it is built, does what the Python beside it says."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import pullback as torch
from pullback.core import objects, tensor


@pytest.fixture(params=["chosen", "python"])
def made_by(request, monkeypatch):
    """The functions in use, and the ones written in Python."""
    if request.param == "chosen":
        return objects
    monkeypatch.setenv("PULLBACK_NATIVE", "0")
    spec = importlib.util.spec_from_file_location("pullback.core.objects_in_python", objects.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.make_view.__module__ == module.__name__
    return module


def test_a_view_shares_memory_and_version(made_by):
    x = torch.arange(6.0)
    t = made_by.make_view(x, x._array[2:], 2, "op", (x, 2), 1)
    assert type(t) is torch.Tensor and t._offset == 2 and t._keys == 0 and not t.requires_grad
    assert t.dtype is x.dtype and t.device is x.device and t._counter is x._counter and t._memory is x._memory
    info = t._view_info
    assert (info.base, info.parent, info.op, info.args[1], info.version, info.creation) == (x, None, "op", 2, 0, None)
    x.add_(1)
    assert t.tolist() == [3.0, 4.0, 5.0, 6.0] and t._version == 1


def test_a_view_of_a_view_knows_its_base(made_by):
    x = torch.arange(6.0)
    first = made_by.make_view(x, x._array[1:], 1, "op", (x,), 0)
    second = made_by.make_view(first, first._array[1:], 2, "op", (first,), 1)
    third = made_by.make_view(x, x._array, 0, "op", (0, (x,)), 1, True)
    assert second._base is x and second._view_info.parent is first._view_info
    assert (first._view_info.creation, second._view_info.creation) == ("no_grad", "no_grad")
    assert third._view_info.creation == "multi_output"


def test_a_fresh_tensor_is_its_own(made_by):
    t = made_by.make_tensor(np.ones(3), torch.float64)
    assert t.tolist() == [1.0] * 3 and t.dtype is torch.float64 and t._version == 0
    assert t._memory is None and t._view_info is None and t._autograd is None and not t._is_view()
    assert t._counter is not made_by.make_tensor(np.ones(3), torch.float64)._counter


@pytest.mark.parametrize("assemble", [tensor.assemble, tensor.assemble_in_python])
def test_every_slot_is_filled(assemble):
    class Own(torch.Tensor):
        pass

    slots = (np.ones(3), torch.float64, torch.device("cpu"), 4, None, [2], None, 1)
    t = assemble(Own, *slots)
    assert type(t) is Own and t._view_info is None
    names = ("_array", "dtype", "device", "_keys", "_autograd", "_counter", "_memory", "_offset")
    assert all(getattr(t, name) is value for name, value in zip(names, slots))


def test_plain_tensors_are_taken_apart(made_by):
    x, p = torch.ones(2), torch.nn.Parameter(torch.ones(3))
    arrays, dtype, live = made_by.plain_arrays((x, x))
    assert arrays[0] is x._array and len(arrays) == 2 and dtype is torch.float32 and live is False
    assert made_by.plain_arrays([x, p])[2] is True
    for others in ((), (x, 1), (x, x.double()), (x, x.to("meta")), x, iter((x,))):
        assert made_by.plain_arrays(others) is None


def test_misuse_is_refused():
    for call in (lambda: objects.make_view(1, None, 0, None, (), 1), lambda: objects.make_tensor()):
        with pytest.raises((TypeError, AttributeError)):
            call()
