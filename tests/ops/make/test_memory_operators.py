"""Changes of the memory under a tensor, in the sight of dispatch modes and of classes that dispatch."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.core.tensor import disabled_torch_function
from pullback.ops.system.overrides import TorchDispatchMode


class Noting(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Sub(torch.Tensor):
    seen: list = []
    __torch_function__ = disabled_torch_function

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs)


CALLS = {
    "aten.set_.default": lambda x: x.set_(),
    "aten.set_.source_Tensor": lambda x: x.set_(torch.arange(3.0)),
    "aten.set_.source_Storage": lambda x: x.set_(torch.arange(3.0).untyped_storage()),
    "aten.set_.source_Storage_storage_offset": lambda x: x.set_(torch.arange(6.0).untyped_storage(), 1, (2,), (2,)),
    "aten.resize_.default": lambda x: x.resize_(1, 2),
    "aten.resize_as_.default": lambda x: x.resize_as_(torch.ones(2, 1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_mode_sees_the_call_and_makes_it(name):
    plain, x = torch.arange(4.0), torch.arange(4.0)
    CALLS[name](plain)
    with Noting() as mode:
        assert CALLS[name](x) is x
    assert mode.seen[-1] == name
    assert (x.shape, x.stride(), x.tolist()) == (plain.shape, plain.stride(), plain.tolist())


@pytest.mark.parametrize("name", CALLS)
def test_a_class_sees_the_call_and_super_makes_it(name):
    plain, x = torch.arange(4.0), torch.arange(4.0).as_subclass(Sub)
    CALLS[name](plain)
    Sub.seen.clear()
    assert CALLS[name](x) is x
    assert Sub.seen == [name] and type(x) is Sub
    assert (x.shape, x.stride(), x.tolist()) == (plain.shape, plain.stride(), plain.tolist())


@pytest.mark.parametrize("name", ["t_", "squeeze_", "unsqueeze_"])
def test_shapes_change_in_place_in_the_sight_of_a_class(name):
    given = (0,) if name == "unsqueeze_" else ()
    plain, x = torch.ones(1, 3), torch.ones(1, 3).as_subclass(Sub)
    getattr(plain, name)(*given)
    Sub.seen.clear()
    assert getattr(x, name)(*given) is x
    assert Sub.seen == [f"aten.{name}.default"]
    assert (x.shape, x.stride()) == (plain.shape, plain.stride())


def test_modes_see_questions_about_memory_and_streams():
    class Answering(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return True if str(func) == "aten.is_set_to.default" else args[1].stream_id

    x, other, stream = torch.ones(2), torch.zeros(1), torch.Stream(stream_id=1, device_index=2, device_type=3)
    with Answering():
        assert x.is_set_to(other) is True
        assert x.record_stream(stream) == 1
    with pytest.raises(RuntimeError, match="CPU tensors have no streams"):
        x.record_stream(stream)


def test_the_operators_have_handles():
    x = torch.ones(2)
    assert torch.ops.aten.set_.source_Tensor(x, torch.zeros(3)) is x and x.shape == (3,)
    assert torch.ops.aten.resize_(x, [2, 2]) is x and x.shape == (2, 2)


def test_a_library_may_stand_in_and_go_again():
    def add_one(x, source):
        return x.add_(1)

    x = torch.ones(2)
    with torch.library._scoped_library("aten", "IMPL") as lib:
        lib.impl("set_.source_Tensor", add_one, "CPU")
        assert x.set_(torch.zeros(3)) is x and x.tolist() == [2, 2]
    assert x.set_(torch.zeros(3)) is x and x.tolist() == [0, 0, 0]
    assert torch.ops.aten.set_.source_Tensor(x, torch.ones(1)).tolist() == [1]


def test_a_tensor_is_set_to_a_part_of_another():
    x = torch.ones(3)
    assert x.set_(torch.arange(4.0), 1, (2,), (2,)).tolist() == [1, 3]
    with Noting() as mode:
        assert x.set_(torch.arange(4.0), 1, (2,)).tolist() == [1, 2]
    assert mode.seen[-1] == "aten.set_.source_Storage_storage_offset"
    assert torch.ops.aten.set_.source_Tensor_storage_offset(x, torch.arange(4.0), 2, [1]).tolist() == [2]
    with pytest.raises(TypeError, match="need a size"):
        x.set_(torch.arange(4.0), 1)
    with pytest.raises(RuntimeError, match="Could not set tensor of type long int to a tensor of type float"):
        x.set_(torch.arange(3), 0, (2,))


def test_a_window_on_the_memory_of_a_tensor():
    source = torch.arange(6.0)
    x = torch.ones(1).set_(source[1:], 1, (2, 2), (2, 1))
    assert x.tolist() == [[2, 3], [4, 5]] and x.storage_offset() == 2
    with pytest.raises(RuntimeError, match="must be contiguous"):
        torch.ones(1).set_(source[::2], 0, (1,), (1,))
    for given in ("str", ("a",)):
        with pytest.raises(TypeError, match="size"):
            torch.ones(1).set_(source, 0, given)
