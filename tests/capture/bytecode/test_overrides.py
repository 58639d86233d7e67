"""Classes of tensors and modes that take calls over, in compiled functions: their Python is the program's."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.core.modes import ambient
from pullback.ops.system.overrides import TorchDispatchMode

BACKENDS = ("eager", "aot_eager", "inductor")
LOG: list = []


class Doubled(torch.Tensor):
    factor = 2.0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        LOG.append(function.__name__)
        out = super().__torch_function__(function, types, args, kwargs or {})
        return out * cls.factor if function.__name__ == "add" else out


class Held:
    def __init__(self, value):
        self.value, self.count = value, 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        for arg in args:
            if isinstance(arg, Held):
                arg.count += 1
        return function(*[a.value if isinstance(a, Held) else a for a in args], **(kwargs or {}))


class Calls(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        LOG.append(function.__name__)
        out = function(*args, **(kwargs or {}))
        return out * 3 if function.__name__ == "sin" else out


class Operators(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        LOG.append(str(function))
        out = function(*args, **(kwargs or {}))
        return out * 3 if "sin" in str(function) else out


def seen(f, *args):
    LOG.clear()
    return f(*args), list(LOG)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_class_sees_each_call_once(backend):
    def f(a, b):
        c = torch.add(a, b)
        return c.sin(), type(c).__name__

    a, b = torch.ones(2).as_subclass(Doubled), torch.zeros(2)
    g = torch.compile(f, backend=backend, fullgraph=True)
    for factor in (2.0, 2.0, 3.0):
        Doubled.factor = factor
        (out, name), log = seen(g, a, b)
        (want, _), calls = seen(f, a, b)
        assert type(out) is Doubled and name == "Doubled" and log == calls
        assert out.tolist() == pytest.approx(want.tolist())
    Doubled.factor = 2.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_argument_of_such_a_class_is_written_once(backend):
    def f(x):
        x.add_(1)
        return x * 2

    x = torch.ones(2).as_subclass(Doubled)
    assert torch.compile(f, backend=backend)(x).tolist() == [4.0, 4.0]
    assert x.as_subclass(torch.Tensor).tolist() == [2.0, 2.0]


def test_a_graph_is_for_overrides_switched_as_they_were():
    f = torch.compile(lambda a, b: torch.add(a, b), backend="eager")
    a, b = torch.ones(1).as_subclass(Doubled), torch.ones(1)
    with torch.DisableTorchFunctionSubclass():
        assert type(f(a, b)) is torch.Tensor
    assert f(a, b).tolist() == [4.0] and type(f(a, b)) is Doubled


def test_overrides_are_off_for_a_block_across_graphs(capsys):
    def f(a, b):
        with torch.DisableTorchFunctionSubclass():
            c = torch.add(a, b)
            print("between")
            c = torch.add(c, b)
        return torch.add(c, a)

    a, b = torch.ones(1).as_subclass(Doubled), torch.ones(1)
    assert torch.compile(f, backend="eager")(a, b).tolist() == f(a, b).tolist() == [8.0]


def test_an_object_that_is_no_tensor_takes_calls_over():
    held, x = Held(torch.ones(2)), torch.ones(2)
    f = torch.compile(lambda held, x: torch.add(held, x).sin(), backend="eager", fullgraph=True)
    for k in range(3):
        held.value = torch.full((2,), float(k))
        assert f(held, x).tolist() == pytest.approx((held.value + 1).sin().tolist())
    assert held.count == 3


def test_a_view_of_another_class_has_a_history_of_its_own():
    def f(x):
        y = x.as_subclass(Doubled)
        y.register_hook(lambda g: g * 0.5)
        return y, x * 2

    x = torch.ones(2, requires_grad=True)
    y, z = torch.compile(f, backend="aot_eager")(x)
    assert not y.is_leaf and type(y) is Doubled
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", [Calls, Operators])
def test_a_mode_that_is_entered_sees_what_it_would(backend, mode):
    def f(x):
        y = x + 1
        with mode():
            z = y.sin() * 2
        return z.cos()

    x = torch.ones(2)
    want, calls = seen(f, x)
    g = torch.compile(f, backend=backend)
    for _ in range(2):
        out, log = seen(g, x)
        assert out.tolist() == pytest.approx(want.tolist()) and log == calls
    assert not ambient.function_modes and not ambient.dispatch_modes
    assert seen(torch.compile(lambda x: x.sin(), backend=backend), x)[1] == []


def test_a_buffer_is_known_by_its_mark():
    f = torch.compile(lambda b: b + 1 if isinstance(b, torch.nn.Buffer) else b + 2, fullgraph=True)
    assert f(torch.ones(1)).tolist() == [3.0]
    assert f(torch.nn.Buffer(torch.ones(1))).tolist() == [2.0]
    assert f(torch.ones(1)).tolist() == [3.0]


class Asked(torch.Tensor):
    heard: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.heard.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize("backend", [None, "eager", "inductor"])
def test_a_class_hears_of_what_the_program_asks_and_of_nothing_that_the_compiler_does(backend):
    def program(x):
        n = x.size(0) + len(x.shape) + torch.numel(x)
        return (x * n).sum(), x.requires_grad, x.dim()

    run = program if backend is None else torch.compile(program, backend=backend)
    for _ in range(3):
        Asked.heard.clear()
        result = run(torch.ones(3).as_subclass(Asked))
        assert Asked.heard == ["size", "__get__", "numel", "mul", "sum", "__get__", "dim"]
        assert result[0].as_subclass(torch.Tensor).item() == 21 and result[1:] == (False, 1)
