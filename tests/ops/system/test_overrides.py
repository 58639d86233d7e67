"""`__torch_function__`: which class handles a call, and what comes back where none does."""

from __future__ import annotations

import contextlib
import copy
import warnings

import pytest

import pullback as torch
from pullback.ops.family.pointwise import Pointwise
from pullback.ops.system.overrides import DisableTorchFunctionSubclass, TorchFunctionMode, call_form
from tests.ops.samples import functional_operators, samples_of


class Parent(torch.Tensor):
    """A subclass that only passes its class on."""


class Child(Parent):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "child" if func is torch.add else super().__torch_function__(func, types, args, kwargs or {})


class Duck:
    """No tensor at all."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return f"duck {func.__name__}"


class Refuses:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def test_results_have_the_class_of_the_arguments() -> None:
    t = torch.ones(2).as_subclass(Parent)
    assert (
        type(t + 1) is Parent and type(1 + t) is Parent and type(t[0]) is Parent and type(torch.ones(2) + t) is Parent
    )
    assert type(t.tolist()) is list and t.sum().item() == 2


def test_the_most_derived_class_is_asked_first() -> None:
    parent, child = torch.ones(2).as_subclass(Parent), torch.ones(2).as_subclass(Child)
    assert torch.add(parent, child) == "child" and type(torch.mul(child, 2)) is Child


def test_objects_that_are_no_tensors() -> None:
    assert torch.add(Duck(), 1) == "duck add" and torch.add(torch.ones(2), Duck()) == "duck add"
    with pytest.raises(TypeError, match="no implementation found for"):
        torch.add(Refuses(), 1)


def test_overrides_may_be_switched_off() -> None:
    t = torch.ones(2).as_subclass(Child)
    with DisableTorchFunctionSubclass():
        assert torch.add(t, 1).tolist() == [2, 2]


def test_named_results_of_a_subclass():
    class Own(torch.Tensor):
        pass

    x = torch.tensor([[1.0, 2.0]]).as_subclass(Own)
    for result in (torch.max(x, dim=0), torch.sort(x)):
        assert isinstance(result.values, Own) and isinstance(result.indices, Own)


def test_deep_copies_are_seen_and_classes_of_results_are_not():
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return NotImplemented if types else func(*args, **(kwargs or {}))

    class Own(torch.Tensor):
        pass

    x = Own([1.0])
    with Mode():
        assert type(torch.neg(x)) is Own
    assert seen == [torch.neg] * 2
    del seen[:]
    with Mode():
        copied = copy.deepcopy(torch.ones(2))
    assert seen[-1] is torch.Tensor.__deepcopy__ and copied.tolist() == [1, 1]


def test_handlers_get_the_dimensions_that_users_write():
    seen = []

    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, args[1:], kwargs or {}))
            return 1

    x = Like()
    torch.unbind(x, 0), torch.stack([x, x], 0), torch.flatten(x, 0, -1), torch.sum(x)
    assert seen == [("unbind", (0,), {}), ("stack", (0,), {}), ("flatten", (0, -1), {}), ("sum", (), {})]


def test_objects_like_tensors_take_their_gradients_themselves():
    seen = []

    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func, args, (kwargs or {}).get("retain_graph")))
            return "gradients"

    x, y = Like(), Like()
    assert torch.autograd.grad(y, x, retain_graph=True) == "gradients"
    torch.autograd.backward(y)
    assert seen == [(torch.autograd.grad, ((y,), (x,)), True), (torch.autograd.backward, ((y,),), None)]


@pytest.mark.parametrize("name", ["unbind", "add", "max", "relu", "sum"])
def test_a_method_and_a_function_are_two_things_to_a_class(name):
    offered = []

    class Listening(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            offered.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(2, 2).as_subclass(Listening)
    rest = (x,) if name == "add" else ()
    getattr(torch, name)(x, *rest)
    getattr(x, name)(*rest)
    assert offered == [getattr(torch, name), getattr(torch.Tensor, name)]
    assert offered[0] is not offered[1]


def test_the_disabled_function_of_another_class_reaches_no_override():
    calls = []

    class Recording(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func)
            return torch.nn.Parameter.__torch_function__(func, types, args, kwargs)

    x = torch.ones(2).as_subclass(Recording)
    calls.clear()
    torch.add(x, x)
    assert calls == [torch.add]


class Forwards(torch.Tensor):
    """A class that looks at every call and lets it go on."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


def test_calls_that_take_another_overload_go_on():
    x = torch.tensor([2.0, 3.0])
    s = x.as_subclass(Forwards)
    assert (2 - s).tolist() == [0.0, -1.0] and type(2 - s) is Forwards
    assert torch.rsub(s, 1, alpha=2).tolist() == [-3.0, -5.0]


def _as_forwards(value):
    if isinstance(value, torch.Tensor):
        return value.detach().as_subclass(Forwards)
    return type(value)(map(_as_forwards, value)) if isinstance(value, (tuple, list)) else value


def test_every_function_can_be_called_again_with_what_a_class_is_offered():
    calls = 0
    for op in functional_operators():
        function = getattr(op, "function", None)
        if function is None or not isinstance(op.family, Pointwise):
            continue
        for args, _ in samples_of(op)[:2]:
            positional, keywords = call_form(op, tuple(args))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = function(*map(_as_forwards, positional), **{k: _as_forwards(v) for k, v in keywords.items()})
            assert result is not None, op
            calls += 1
    assert calls > 300


class Names(torch.Tensor):
    seen: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Names.seen.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_classes_see_the_public_function_whichever_overload_takes_the_call():
    x = torch.tensor([1.0, 2.0]).as_subclass(Names)
    calls = {
        lambda: torch.pow(x, 2): torch.pow, lambda: x**2: torch.Tensor.__pow__, lambda: x % 2: torch.Tensor.remainder,
        lambda: x.pow(2): torch.Tensor.pow, lambda: x.remainder(2): torch.Tensor.remainder, lambda: x + x: torch.Tensor.add,
        lambda: 2 + x: torch.Tensor.add, lambda: x @ x: torch.Tensor.matmul, lambda: x == 2: torch.Tensor.__eq__,
        lambda: x != 2: torch.Tensor.ne, lambda: x / x: torch.Tensor.div, lambda: x // 2: torch.Tensor.__floordiv__,
        lambda: x.clone().pow_(2): torch.Tensor.pow_, lambda: 2**x: torch.Tensor.__rpow__, lambda: 2 - x: torch.Tensor.__rsub__,
        lambda: 2 / x: torch.Tensor.__rtruediv__, lambda: 2 // x: torch.Tensor.__rfloordiv__, lambda: 2 % x: torch.Tensor.__rmod__,
    }  # fmt: skip
    for call, function in calls.items():
        Names.seen.clear()
        assert type(call()) is Names
        assert Names.seen[-1] is function


def test_the_other_operand_is_asked_where_no_class_implements_an_operator():
    class Declines(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Reflects(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -1 if func is torch.Tensor.__rpow__ else NotImplemented

    a, b = (torch.ones(2).as_subclass(cls) for cls in (Declines, Reflects))
    assert a**b == -1
    with pytest.raises(TypeError, match="unsupported operand"):
        a + b


def test_dispatch_by_a_method_of_the_tensor():
    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(args[0].inner, *args[1:], **(kwargs or {}))

    result = Wrapper(torch.arange(3.0)) * 2
    assert type(result) is torch.Tensor and result.tolist() == [0.0, 2.0, 4.0]


def scaled_product(a, b):
    if torch.overrides.has_torch_function((a, b)):
        return torch.overrides.handle_torch_function(scaled_product, (a, b), a, b)
    return a * b + 1


def test_a_call_that_is_dispatched_again_shows_what_it_is_made_of():
    seen: list = []

    class Watched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args, kwargs=None):
            seen.append(func.__name__)
            return torch.overrides.redispatch_function(func, types, args, kwargs)

    x, y = torch.tensor([3.0]).as_subclass(Watched), torch.tensor([4.0]).as_subclass(Watched)
    out = scaled_product(x, y)
    assert out.tolist() == [13.0] and type(out) is torch.Tensor and seen == ["scaled_product", "mul"]
    seen.clear()
    assert torch.stack([x, y]).shape == (2, 1) and (x + y).tolist() == [7.0] and seen == ["stack", "add"]


def test_a_mode_sees_the_calls_inside_where_it_is_on_again():
    seen: list = []

    class Watching(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args, kwargs=None):
            seen.append(func.__name__)
            with self:
                return torch.overrides.redispatch_function(func, types, args, kwargs)

    x, y = torch.tensor([3.0]), torch.tensor([4.0])
    with Watching():
        result = scaled_product(x, y)
    assert result.item() == 13.0 and seen == ["scaled_product", "mul", "add"]
    assert not torch.overrides.has_torch_function((x,))


class Holder(torch.Tensor):
    """A wrapper of a tensor that may want a gradient of its own."""

    @staticmethod
    def __new__(cls, held):
        result = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)
        result.held = held
        return result

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        with torch.overrides.enable_reentrant_dispatch() if cls.records else contextlib.nullcontext():
            return cls(func(*[a.held if isinstance(a, cls) else a for a in args], **(kwargs or {})))


@pytest.mark.parametrize("records", [True, False])
def test_calls_below_a_dispatching_class_are_recorded_where_it_says_so(records):
    class Recorded(Holder):
        pass

    Recorded.records = records
    leaf = torch.ones(2, requires_grad=True)
    out = Recorded(leaf) * 3
    assert not out.requires_grad and out.held.requires_grad is records
    if records:
        out.held.sum().backward()
        assert leaf.grad.tolist() == [3.0, 3.0]


def test_a_mode_that_declines_a_call_is_asked_once():
    class Declining(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return NotImplemented

    x, seen = torch.ones(2), []
    with Declining():
        with pytest.raises(TypeError, match="the function mode Declining declined"):
            torch.add(x, 1)
        with pytest.raises(TypeError, match="unsupported operand"):
            x + 1
        with pytest.raises(TypeError, match="unsupported operand"):
            x @ x
        assert (x == 1) is False and (x != 1) is True
    assert seen[0] is torch.add and seen.count(torch.Tensor.__eq__) == 1
    assert (x + 1).tolist() == [2, 2]
