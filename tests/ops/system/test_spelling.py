"""Arguments under NumPy's names, and those that are missing, unknown, or given twice."""

from __future__ import annotations

import inspect

import pytest

import pullback as torch

X = torch.arange(6.0).reshape(2, 3)
SAME = {
    "sum": (lambda: torch.sum(x=X, axis=0, keepdims=True), lambda: X.sum(0, True)),
    "mean of some": (lambda: torch.mean(a=X, axis=(0, 1)), lambda: X.mean((0, 1))),
    "a method": (lambda: X.amax(axis=1, keepdims=True), lambda: X.amax(1, True)),
    "abs": (lambda: torch.abs(x1=X), lambda: X.abs()),
    "add": (lambda: torch.add(x1=X, x2=X, alpha=3), lambda: X.add(X, alpha=3)),
    "one of two": (lambda: torch.add(X, x2=X), lambda: X + X),
    "a method's other": (lambda: X.mul(x2=X), lambda: X * X),
    "matmul": (lambda: torch.matmul(x1=X, x2=X.T), lambda: X @ X.T),
    "overloads": (lambda: torch.max(a=X, axis=1, keepdims=True).values, lambda: X.max(1, True).values),
    "written by hand": (lambda: torch.where(X > 1, x=X, x2=-X), lambda: torch.where(X > 1, X, -X)),
    "rows": (lambda: torch.softmax(x=X, axis=1), lambda: X.softmax(1)),
    "a list": (lambda: torch.stack([X, X], axis=1), lambda: torch.stack([X, X], 1)),
    "with out": (lambda: torch.sum(x=X, axis=1, out=torch.empty(2)), lambda: X.sum(1)),
    "of another namespace": (
        lambda: torch.linalg.vector_norm(x=X, axis=0, keepdims=True),
        lambda: torch.linalg.vector_norm(X, dim=0, keepdim=True),
    ),
    "by a number": (lambda: torch.pow(x1=X, exponent=2), lambda: X.pow(2)),
}


@pytest.mark.parametrize("name", SAME)
def test_names_of_numpy(name):
    respelled, plain = SAME[name]
    assert torch.equal(respelled(), plain())


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: torch.abs(X, foo=1), "foo"),
        (lambda: torch.abs(X, a=X), "a"),
        (lambda: torch.abs(x=X, a=X), "a"),
        (lambda: torch.logsumexp(X, dim=1, axis=0), "axis"),
        (lambda: torch.abs(X, x2=X), "x2"),
    ],
)
def test_what_nobody_knows_or_is_given_twice(call, name):
    with pytest.raises(TypeError, match=rf"got an unexpected keyword argument '{name}'"):
        call()


@pytest.mark.parametrize(
    "call, missing",
    [
        (lambda: torch.abs(), '1 required positional arguments: "input"'),
        (lambda: torch.matmul(X), '1 required positional arguments: "other"'),
        (lambda: torch.matmul(other=X), '1 required positional arguments: "input"'),
        (lambda: torch.abs(out=X), '1 required positional arguments: "input"'),
        (lambda: torch.gather(X, index=X.long()), '1 required positional arguments: "dim"'),
    ],
)
def test_what_is_missing(call, missing):
    with pytest.raises(TypeError, match=missing):
        call()


def test_overrides_see_the_names_of_the_signature():
    class Seen(torch.Tensor):
        calls: list = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls.append((func.__name__, len(args), sorted(kwargs or {})))
            return super().__torch_function__(func, types, args, kwargs or {})

    torch.sub(x1=X.as_subclass(Seen), x2=X, alpha=2)
    assert Seen.calls[-1] == ("sub", 2, ["alpha"])


def test_signatures_say_what_may_be_given():
    assert list(inspect.signature(torch.abs).parameters) == ["input", "out"]
    assert inspect.signature(torch.abs).parameters["input"].default is inspect.Parameter.empty


def test_functions_written_by_hand_name_what_is_left_out():
    with pytest.raises(TypeError, match=r'^tensor\(\) missing 1 required positional arguments: "data"$'):
        torch.tensor()
    with pytest.raises(TypeError, match=r'^asarray\(\) missing 1 required positional arguments: "obj"$'):
        torch.asarray(dtype=torch.int32)


def test_calls_inside_keep_their_own_words():
    class Sized(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return (lambda size: size)()

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'size'"):
        torch.where(torch.ones(1, dtype=torch.bool).as_subclass(Sized))
