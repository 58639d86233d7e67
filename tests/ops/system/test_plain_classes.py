"""Subclasses with `__torch_dispatch__`: calls to `super()`, what handlers may answer, versions of views, wrong classes."""

from __future__ import annotations

import copy

import pytest

import pullback as torch
from pullback.core.tensor import disabled_torch_function


class Sub(torch.Tensor):
    """A tensor that notes what it is asked and leaves the work to `super()`."""

    seen: list = []
    __torch_function__ = disabled_torch_function

    @staticmethod
    def __new__(cls, elem):
        return torch.Tensor._make_subclass(cls, elem, elem.requires_grad)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(str(func))
        return super().__torch_dispatch__(func, types, args, kwargs)


class Wrapped(torch.Tensor):
    """A tensor around another."""

    __torch_function__ = disabled_torch_function

    @staticmethod
    def __new__(cls, elem):
        return torch.Tensor._make_wrapper_subclass(cls, elem.shape, dtype=elem.dtype)

    def __init__(self, elem):
        self.elem = elem

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        strip = lambda v: v.elem if isinstance(v, Wrapped) else v
        return cls(func(*map(strip, args), **(kwargs or {})))


def test_super_runs_the_operator_as_on_plain_tensors():
    Sub.seen = []
    x, y = torch.arange(3.0), torch.ones(3)
    result = Sub(x) + Sub(y)
    assert result.tolist() == [1, 2, 3] and type(result) is torch.Tensor and Sub.seen == ["aten.add.Tensor"]


def test_super_writes_in_place_and_gives_the_tensor_itself():
    x = torch.arange(3.0)
    s = Sub(x)
    assert s.add_(1) is s and x.tolist() == [1, 2, 3]


def test_super_does_not_record_again():
    x = Sub(torch.ones(2, requires_grad=True))
    out = x.neg()
    assert out.requires_grad and type(out.grad_fn).__name__ == "NegBackward0"


def test_a_handler_may_not_answer_with_what_is_no_tensor():
    class Wrong(Sub):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return "text"

    with pytest.raises(RuntimeError, match="Unable to cast"):
        Wrong(torch.zeros(1)).neg()


def test_a_write_to_a_view_of_a_wrapper_is_one_to_the_wrapper():
    x = Wrapped(torch.ones(1))
    before = x._version
    x.detach().add_(2)
    after = x._version
    assert after != before
    x.data.add_(2)
    assert x._version == after


def test_a_wrapper_has_no_numbers_and_no_other_class():
    x = Wrapped(torch.ones(2))
    for name in ("tolist", "numpy"):
        with pytest.raises(RuntimeError, match="is not supported for tensor subclasses"):
            getattr(x, name)()

    class Other(torch.Tensor):
        pass

    with pytest.raises(RuntimeError, match="already associated to a python object of type Wrapped"):
        torch.Tensor._make_subclass(Other, x)
    with pytest.raises(TypeError, match="Other must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(Other, (2, 2))


def test_slots_of_a_class_go_with_its_tensors():
    class Slotted(Wrapped):
        __slots__ = ("other",)

        def __init__(self, elem):
            super().__init__(elem)
            self.other = elem

    x = Slotted(torch.arange(1.0, 3.0)).requires_grad_()
    y = x.exp()
    (gradient,) = torch.autograd.grad(y, x, Slotted(torch.ones(2)))
    assert torch.equal(gradient.other, torch.arange(1.0, 3.0).exp())
    copied = copy.deepcopy(x)
    assert torch.equal(copied.other, x.other) and copied.other is not x.other


def test_an_object_may_have_its_own_override():
    class Listed:
        def __init__(self, answer):
            self.answer = answer

        def __torch_function__(self, func, types, args=(), kwargs=None):
            return self.answer, func.__name__

    assert torch.cat([torch.ones(1), Listed(7)]) == (7, "cat")


def test_the_storage_of_a_wrapper_holds_no_memory():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    storage = Wrapper(torch.ones(2)).untyped_storage()
    assert storage.nbytes() == 8
    for use in (storage.data_ptr, lambda: storage.resize_(0), lambda: storage.fill_(0), lambda: storage.copy_(storage)):
        with pytest.raises(RuntimeError, match="on an invalid python storage"):
            use()
