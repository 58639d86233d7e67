"""The short way to an entry: taken by calls that need no frame, left for the long way by all others."""

import pytest

import pullback as torch
from pullback import nn
from pullback.capture.bytecode import direct as direct_module
from pullback.capture.front.config import config


def settled(fn, *args, calls: int = 3):
    """A compiled function after calls enough for its short way to be open."""
    compiled = torch.compile(fn, backend="aot_eager")
    for _ in range(calls):
        compiled(*args)
    return compiled


def ways(compiled) -> int:
    return len(compiled.compiled.direct)


X, Y = torch.arange(4.0), torch.ones(4)


def test_a_function_that_ran_twice_has_a_short_way_and_it_gives_the_same():
    f = settled(lambda x, y: x * y + x, X, Y)
    assert ways(f) == 1
    assert torch.equal(f(Y, X), Y * X + Y)


def test_the_short_way_is_taken(monkeypatch):
    f = settled(lambda x: x + 1, X)
    monkeypatch.setattr(f.compiled, "front", None)  # the long way
    assert torch.equal(f(Y), Y + 1)
    with pytest.raises(TypeError):
        f(x=Y)  # a keyword goes the long way


def test_keywords_defaults_and_wrong_numbers_of_arguments_go_the_long_way():
    def f(x, scale=2.0):
        return x * scale

    g = settled(f, X, 3.0)
    assert torch.equal(g(X), X * 2)
    assert torch.equal(g(x=X, scale=5.0), X * 5)
    with pytest.raises(TypeError, match="positional argument"):
        g(X, 1.0, 2.0)


def test_what_the_entry_tests_is_tested():
    scale = [2.0]
    f = settled(lambda x: x * scale[0], X)
    scale[0] = 3.0
    assert torch.equal(f(X), X * 3)
    assert torch.equal(f(X.double()), X.double() * 3)


def test_cells_of_the_function_and_of_its_surroundings():
    outer = 2.0

    def f(x, k):
        return sum((x * k * outer for _ in range(2)), start=x)  # `x` and `k` are cells here

    g = settled(f, X, 3.0)
    assert ways(g) == 1
    assert torch.equal(g(Y, 3.0), Y + Y * 12)
    outer = 4.0
    assert torch.equal(g(Y, 3.0), Y + Y * 24)


def test_another_code_is_another_program():
    def f(x):
        return x + 1

    g = settled(f, X)
    f.__code__ = (lambda x: x + 2).__code__
    assert torch.equal(g(X), X + 2)


def test_stances_and_disabling_hold():
    ran = []

    def f(x):
        if not torch.compiler.is_compiling():
            ran.append(1)
        return x + 1

    g = settled(f, X)
    ran.clear()
    g(X)
    assert not ran
    with torch.compiler.set_stance("force_eager"):
        g(X)
    assert len(ran) == 1


def test_a_checked_call_is_checked(monkeypatch):
    f = settled(lambda x: x + 1, X)
    checked = []
    monkeypatch.setattr("pullback.capture.front.compile.checked", lambda *args: checked.append(1))
    monkeypatch.setattr(config, "verify", True)
    f(X)
    assert checked


def test_transforms_see_the_program():
    f = settled(lambda x: (x * x).sum(), X)
    assert torch.equal(torch.func.grad(f)(X), 2 * X)


def test_hooks_of_a_module_that_come_later_run():
    layer = nn.Linear(4, 4)
    m = torch.compile(layer, backend="aot_eager")
    for _ in range(3):
        m(X)
    assert m.compiled_call.direct
    seen = []
    handle = layer.register_forward_hook(lambda *_: seen.append(1))
    m(X)
    assert seen == [1]
    handle.remove()
    layer.forward = lambda x: x + 7
    assert torch.equal(m(X), X + 7)


def test_forgetting_graphs_forgets_short_ways():
    f = settled(lambda x: x + 1, X)
    torch.compiler.reset()
    assert not ways(f)
    assert torch.equal(f(X), X + 1)


def test_a_program_that_breaks_has_no_short_way():
    def f(x):
        y = x + 1
        print(end="")
        return y * 2

    assert ways(settled(f, X)) == 0


def test_gathered_arguments_have_no_short_way():
    assert ways(settled(lambda *xs: sum(xs), X, Y)) == 0


def test_texts_that_are_no_entry_have_none():
    def f(x):
        return x

    assert direct_module.direct("def other(frames):\n    return 1", f, f, (), None) is None
