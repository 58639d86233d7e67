"""Parameters of tensor classes that dispatch themselves."""

import pullback as torch
from pullback import nn


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        result = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        result.inner = inner
        return result

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        out = func(*[a.inner if isinstance(a, Wrapper) else a for a in args], **(kwargs or {}))
        return Wrapper(out) if isinstance(out, torch.Tensor) else out


def test_a_wrapper_made_a_parameter_is_one() -> None:
    parameter = nn.Parameter(Wrapper(torch.ones(2)))
    assert isinstance(parameter, nn.Parameter) and type(parameter) is Wrapper
    assert not isinstance(Wrapper(torch.ones(2)), nn.Parameter)
    module = nn.Module()
    module.weight = parameter
    assert [name for name, _ in module.named_parameters()] == ["weight"]


def test_the_number_in_a_wrapper() -> None:
    assert Wrapper(torch.full((1,), 3.0)).item() == 3.0
