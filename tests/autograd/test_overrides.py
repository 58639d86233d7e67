"""Backward and `__torch_function__`: rules are the engine's own; hooks and custom functions are the user's."""

import pullback as torch
from pullback.surface.overrides import TorchFunctionMode


class Doubling(torch.Tensor):
    """Multiplies twice as much."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if getattr(func, "__name__", "") in ("mul", "__mul__"):
            return super().__torch_function__(torch.Tensor.add, types, (result, result))
        return result


class Seen(TorchFunctionMode):
    def __init__(self) -> None:
        self.names: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


def test_rules_do_not_call_overrides() -> None:
    x = torch.ones(3).as_subclass(Doubling).requires_grad_()
    (x * torch.full((3,), 5.0)).sum().backward()
    assert type(x.grad) is torch.Tensor
    assert x.grad.tolist() == [10.0, 10.0, 10.0]


def test_a_mode_sees_backward_and_nothing_of_its_rules() -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x.sin() * 3).sum()
    with Seen() as seen:
        y.backward()
    assert seen.names == ["backward"]


def test_hooks_and_custom_functions_see_overrides() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.exp()

    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: g.cos())
    y = Double.apply(x).sum()
    with Seen() as seen:
        torch.autograd.backward(y)
    assert "exp" in seen.names and "cos" in seen.names
    assert not {"expand", "mul"} & set(seen.names)


def test_overrides_come_back_after_an_error_in_a_hook() -> None:
    x = torch.ones(2).as_subclass(Doubling).requires_grad_()
    y = (x * 2).sum()
    x.register_hook(lambda g: 1 / 0)
    try:
        y.backward()
    except ZeroDivisionError:
        pass
    assert (x.detach() * 2).tolist() == [4.0, 4.0]


def test_subclasses_can_be_left_and_print_as_they_say() -> None:
    class Named(torch.Tensor):
        def __repr__(self, **options) -> str:
            return "mine"

    x = torch.ones(2).as_subclass(Named)
    assert type(x.as_subclass(torch.Tensor)) is torch.Tensor
    assert str(x) == "mine" and str(x.as_subclass(torch.Tensor)) == "tensor([1., 1.])"
