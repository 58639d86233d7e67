"""What tensors say of themselves, offered to `__torch_function__` of subclasses (heard lists recorded from PyTorch)."""

from __future__ import annotations

import copy
import pickle

import pytest

import pullback as torch


class Heard(torch.Tensor):
    heard: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.heard.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def listened(call, data=None):
    """What a call gives, and what a subclass heard meanwhile."""
    x = (torch.arange(6.0).reshape(2, 3) if data is None else data).as_subclass(Heard)
    Heard.heard.clear()
    return call(x), list(Heard.heard)


T = torch.Tensor


@pytest.mark.parametrize(
    "call, heard, result",
    [
        (lambda x: x.size(), T.size, (2, 3)),
        (lambda x: x.size(dim=-1), T.size, 3),
        (lambda x: x.dim(), T.dim, 2),
        (lambda x: x.ndimension(), T.dim, 2),
        (lambda x: x.numel(), T.numel, 6),
        (lambda x: x.nelement(), T.numel, 6),
        (lambda x: x.stride(0), T.stride, 3),
        (lambda x: x.is_contiguous(), T.is_contiguous, True),
        (lambda x: x.is_floating_point(), T.is_floating_point, True),
        (lambda x: torch.is_floating_point(x), T.is_floating_point, True),
        (lambda x: len(x), T.__len__, 2),
        (lambda x: x.get_device(), T.get_device, -1),
        (lambda x: x.shape, T.shape.__get__, (2, 3)),
        (lambda x: x.ndim, T.ndim.__get__, 2),
        (lambda x: x.dtype, T.dtype.__get__, torch.float32),
        (lambda x: x.requires_grad, T.requires_grad.__get__, False),
        (lambda x: x.is_leaf, T.is_leaf.__get__, True),
        (lambda x: x.grad, T.grad.__get__, None),
        (lambda x: x._version, T._version.__get__, 0),
        (lambda x: type(x.T), T.T.__get__, Heard),
        (lambda x: type(x.data), T.data.__get__, Heard),
    ],
)
def test_an_override_hears_of_what_is_asked(call, heard, result):
    answer, functions = listened(call)
    assert answer == result
    assert functions == [heard]


@pytest.mark.parametrize("call, heard", [(bool, "__bool__"), (float, "__float__"), (int, "__int__")])
def test_numbers_are_heard_under_the_names_of_their_methods(call, heard):
    answer, functions = listened(call, torch.tensor(1.0))
    assert answer == 1
    assert [f.__name__ for f in functions] == [heard]


def test_writes_of_attributes_are_heard():
    def write(x):
        x.requires_grad = True
        x.grad = torch.ones(2, 3)
        return x.grad

    grad, functions = listened(write)
    assert [f.__name__ for f in functions] == ["__set__", "__set__", "__get__"]
    assert type(grad) is torch.Tensor


def test_answers_of_an_override_are_what_is_given():
    class Wide(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func in (T.size, T.shape.__get__):
                return (100,)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2).as_subclass(Wide)
    assert x.size() == x.shape == (100,)
    assert x.dim() == 1
    with torch.DisableTorchFunctionSubclass():
        assert x.shape == (2,)


def test_inside_a_handled_call_nothing_is_heard():
    _, functions = listened(lambda x: (x * 2).sum())
    assert [f.__name__ for f in functions] == ["mul", "sum"]


def test_a_backward_asks_nothing():
    x = torch.ones(3).as_subclass(Heard).requires_grad_()
    loss = (x * x).sum()
    Heard.heard.clear()
    loss.backward()
    assert [f.__name__ for f in Heard.heard] == ["backward"]


def test_gradients_of_subclasses_are_theirs():
    x = torch.ones(3).as_subclass(Heard).requires_grad_()
    loss = (x * x).sum()
    Heard.heard.clear()
    (grad,) = torch.autograd.grad(loss, x)
    assert Heard.heard == [torch.autograd.grad]
    assert type(grad) is Heard and grad.tolist() == [2.0, 2.0, 2.0]


def test_names_of_the_subclass_and_of_classes_between_stay():
    class Between(torch.Tensor):
        def size(self):
            return "between"

    class Own(Heard):
        @property
        def shape(self):
            return "own"

    class Both(Heard, Between):
        pass

    assert torch.ones(2).as_subclass(Own).shape == "own"
    assert torch.ones(2).as_subclass(Both).size() == "between"


def test_subclasses_without_an_override_have_the_names_of_tensors():
    class Plain(torch.Tensor):
        pass

    assert Plain.size is T.size and Plain.shape is T.shape
    assert not {"size", "shape"} & set(vars(Plain))


def test_a_subclass_that_listens_is_copied_and_pickled():
    x = torch.arange(3.0).as_subclass(Heard)
    for y in (copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is Heard and y.tolist() == [0.0, 1.0, 2.0]


def test_what_is_offered_is_listed():
    listed = torch.overrides.get_overridable_functions()[torch.Tensor]
    assert T.size in listed and T.shape.__get__ in listed
    assert torch.overrides.resolve_name(T.shape.__get__) == "torch.Tensor.shape.__get__"
