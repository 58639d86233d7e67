"""Small tools: handles of hooks, tensors that change places, DLPack."""

import weakref

import numpy as np
import pytest

import pullback as torch
from pullback.utils import dlpack, hooks, swap_tensors


def test_swap_tensors():
    a, b = torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.zeros(3, dtype=torch.float64))
    a.note = "a"
    out = (a * 2).sum()
    swap_tensors(a, b)
    assert type(a) is torch.nn.Parameter and a.shape == (3,) and type(b) is torch.Tensor and b.note == "a"
    with pytest.raises(RuntimeError, match="AccumulateGrad node that was poisoned by swap_tensors"):
        out.backward()
    (b * 2).sum().backward()
    assert b.grad.tolist() == [2.0, 2.0] and a.grad is None


def test_swapped_tensors_have_each_others_attributes_and_slots():
    class Slotted(torch.Tensor):
        __slots__ = ("a", "b")

    a, b = torch.ones(2).as_subclass(Slotted), torch.zeros(3).as_subclass(Slotted)
    a.a, b.b, b.note = 1, 2, "kept"
    attributes = b.__dict__
    swap_tensors(a, b)
    assert a.b == 2 and b.a == 1 and not hasattr(a, "a") and not hasattr(b, "b")
    assert a.note == "kept" and a.__dict__ is attributes and a.shape == (3,)
    with pytest.raises(RuntimeError, match="Cannot swap t1 and t2 if they have different slots"):
        swap_tensors(a, torch.ones(2))
    watched = weakref.ref(b)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        swap_tensors(a, b)
    assert watched() is b


def test_swapped_views_stay_views():
    base, other = torch.ones(4), torch.zeros(1)
    view = base[1:]
    swap_tensors(view, other)
    assert view.shape == (1,) and view._base is None and other._base is base
    other.mul_(3)
    assert base.tolist() == [1, 3, 3, 3] and base._version == other._version == 1


def test_hooks_that_are_not_saved_are_named():
    x = torch.ones(1, requires_grad=True)
    x.register_hook(hooks.unserializable_hook(lambda g: g))
    hooks.warn_if_has_hooks(x)
    x.register_hook(lambda g: g)
    with pytest.warns(UserWarning, match="will not be serialized"):
        hooks.warn_if_has_hooks(x)


def test_dlpack_shares_memory():
    array = np.arange(3.0)
    tensor = dlpack.from_dlpack(array)
    array[0] = 7
    assert tensor[0].item() == 7.0 and dlpack.DLDeviceType.kDLCPU == 1
