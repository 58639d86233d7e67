"""Subclasses that answer for their own metadata, and blocks without dispatch."""

from __future__ import annotations

import copy

import pytest

import pullback as torch
from pullback.ops.system.overrides import DisableTorchDispatch, TorchDispatchMode


def answering(answers, **policies):
    """A wrapper whose class gives these answers, by the names of operators."""

    class Answering(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (2, 3), **policies)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return answers.get(str(func), NotImplemented)

    return Answering()


def test_sizes():
    t = answering(
        {
            "aten.sym_size.default": (5, 4),
            "aten.sym_stride.default": (8, 2),
            "aten.dim.default": 2,
            "aten.numel.default": None,
        },
        dispatch_sizes_strides_policy="sizes",
    )
    assert t.size() == t.shape == (5, 4) and t.size(1) == 4 and t.stride() == (8, 2) and t.dim() == t.ndim == 2
    assert t.numel() == 6  # None: what it was made with


def test_strides_alone():
    t = answering({"aten.is_contiguous.default": False}, dispatch_sizes_strides_policy="strides")
    assert t.size() == (2, 3) and not t.is_contiguous()
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch.ops.aten.sym_stride'"):
        t.stride()


def test_a_fact_without_an_opinion_is_what_the_tensor_was_made_with():
    names = ("is_non_overlapping_and_dense", "is_strides_like_format")
    t = answering({f"aten.{name}.default": None for name in names}, dispatch_sizes_strides_policy="strides")
    assert torch.ops.aten.is_non_overlapping_and_dense.default(t) is True
    assert torch.ops.aten.is_strides_like_format.default(t, torch.channels_last) is False


def test_device_and_layout():
    t = answering({"prim.device.default": torch.device("meta")}, dispatch_device=True, dispatch_layout=True)
    assert t.device.type == "meta" and torch.ones(2).device.type == "cpu"
    with pytest.raises(TypeError, match="torch.ops.prim.layout"):
        _ = t.layout


def test_unknown_policy():
    with pytest.raises(RuntimeError, match="Unknown dispatch_sizes_strides_policy: both"):
        answering({}, dispatch_sizes_strides_policy="both")


class Logged(torch.Tensor):
    calls: list = []

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs)


def test_a_dispatching_class_has_no_function_override_of_its_own():
    Logged.calls.clear()
    x = torch.ones(2).as_subclass(Logged)
    assert type(x + x) is torch.Tensor and Logged.calls == ["aten.add.Tensor"]


def test_without_dispatch():
    Logged.calls.clear()
    x = torch.ones(2).as_subclass(Logged)
    with DisableTorchDispatch():
        assert (x + x).tolist() == [2, 2]
    assert not Logged.calls


def test_modes_are_objects():
    class Mode(TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="classmethod is not supported"), Mode():
        torch.ones(1)


def test_wrappers_are_copied_by_their_clone():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, elem):
            result = torch.Tensor._make_wrapper_subclass(cls, elem.shape)
            result.elem = elem
            return result

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return args[0].elem.clone()

    with pytest.raises(RuntimeError, match="cloning returns another instance of the same subclass"):
        copy.deepcopy(Wrapper(torch.ones(2)))


def test_the_class_keeps_the_members_of_tensors():
    t = answering({"aten.sym_size.default": (5, 4)}, dispatch_sizes_strides_policy="sizes")
    assert t.shape == (5, 4) and type(t).size is torch.Tensor.size and type(t).device is torch.Tensor.device

    class Own(type(t)):
        def size(self, dim=None):
            return "its own"

    assert Own().size() == "its own" and Own().shape == (5, 4)
