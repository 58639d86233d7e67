"""TorchScript's interface without a compiler: what is scripted runs, what needs a compiler raises."""

import pytest

import pullback as torch
from pullback import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x).relu()


def test_a_scripted_function_runs_and_differentiates():
    @torch.jit.script
    def double(x):
        """Twice."""
        return x * 2 if not torch.jit.is_scripting() else x

    x = torch.ones(2, requires_grad=True)
    double(x).sum().backward()
    assert isinstance(double, torch.jit.ScriptFunction) and double.name == "double" and double.__doc__ == "Twice."
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(NotImplementedError, match="double: TorchScript compiles nothing here"):
        double.graph


@pytest.mark.parametrize("make", [torch.jit.script, lambda m: torch.jit.trace(m, torch.ones(1, 3))])
def test_a_scripted_module_shares_its_parameters(make):
    net = Net()
    scripted = make(net)
    x = torch.ones(4, 3)
    assert isinstance(scripted, torch.jit.ScriptModule) and scripted.original_name == "Net"
    assert torch.equal(scripted(x), net(x)) and list(scripted.state_dict()) == list(net.state_dict())
    assert scripted.layer.weight is net.layer.weight and scripted.eval().training is False and net.training
    assert torch.jit.script(scripted) is scripted
    with pytest.raises(NotImplementedError, match="Net: TorchScript compiles nothing"):
        scripted.save("net.pt")


def test_tracing_runs_its_example_once():
    seen = []

    def function(x):
        seen.append(torch.jit.is_tracing())
        return x + 1

    traced = torch.jit.trace(function, torch.ones(2))
    assert seen == [True] and traced(torch.ones(2)).tolist() == [2, 2] and seen == [True, False]
    with pytest.raises(ZeroDivisionError):
        torch.jit.trace(lambda x: 1 // 0, torch.ones(1))
    assert not torch.jit.is_tracing()


def test_fork_and_wait():
    future = torch.jit.fork(lambda x, y=1: x + y, 2, y=3)
    assert torch.jit.wait(future) == 5
    failed = torch.jit.fork(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        torch.jit.wait(failed)


def test_marks_and_types():
    @torch.jit.ignore
    def a():
        return 1

    @torch.jit.ignore(drop=True)
    def b():
        return 2

    assert (a(), b(), a._torchscript_modifier, b._torchscript_modifier) == (1, 2, "ignore", "unused")
    assert torch.jit.annotate(list[int], [1]) == [1] and torch.jit.Attribute(1, int).value == 1
    assert torch.jit.isinstance([1, 2], list[int]) and not torch.jit.isinstance([1.0], list[int])
    assert torch.jit.isinstance({"a": 1}, dict[str, int]) and not torch.jit.isinstance({1: 1}, dict[str, int])
    assert torch.jit.isinstance((1, "a"), tuple[int, str]) and not torch.jit.isinstance((1,), tuple[int, str])
    assert torch.jit.isinstance(None, int | None) and not torch.jit.isinstance("a", int | None)


def test_a_class_of_its_own_kind():
    class Scripted(torch.jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.scale = torch.jit.Attribute(2.0, float)

        @torch.jit.script_method
        def forward(self, x):
            return x * self.scale

    assert Scripted()(torch.ones(1)).item() == 2 and Scripted().original_name == "Scripted"


def test_files_and_freezing():
    with pytest.raises(ValueError, match="does not exist"):
        torch.jit.load("no such file")
    with pytest.raises(NotImplementedError, match="torch.jit.load"):
        torch.jit.load(__file__)
    scripted = torch.jit.script(Net())
    with pytest.raises(RuntimeError, match="eval mode"):
        torch.jit.freeze(scripted)
    assert torch.jit.freeze(scripted.eval()) is scripted
    with pytest.raises(RuntimeError, match="expects a ScriptModule"):
        torch.jit.freeze(Net())


def test_a_value_that_is_not_none():
    def f(x):
        return torch.jit._unwrap_optional(x).sin()

    x = torch.ones(2)
    assert torch.compile(f, backend="eager", fullgraph=True)(x).tolist() == f(x).tolist()
    with pytest.raises(AssertionError, match="Unwrapping null optional"):
        f(None)
