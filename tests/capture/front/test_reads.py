"""What a function reaches: all of it is in its key or an effect, so that equal keys without effects compute the same."""

import functools
import math

import pytest

import pullback as torch
from pullback.capture.front.reads import Reading

scale = 2.0
pairs = ((1, 2.0), "a")


def scales(g):
    return g * scale


def picks(g):
    return g * pairs[0][1]


def closing(value):
    return lambda g: g * value


def with_default(value):
    return lambda g, value=value: g * value


def calling(function):
    return lambda g: function(g) + 1


def key_of(function):
    reading = Reading(function)
    assert reading.effects == []
    hash(reading.key)
    return reading.key


@pytest.mark.parametrize("make", [closing, with_default, lambda v: functools.partial(closing(1.0), v)])
@pytest.mark.parametrize(
    ("value", "other"),
    [(1.0, 2.0), (0.0, -0.0), (1, 1.0), (True, 1), ("a", "b"), ((1, (2,)), (1, (3,))), (torch.float32, torch.float64)],
)
def test_keys_tell_values_apart(make, value, other):
    assert key_of(make(value)) == key_of(make(value)) != key_of(make(other))


def test_not_a_number_is_the_same_value_each_time():
    assert key_of(closing(float("nan"))) == key_of(closing(float("nan")))


def test_a_tensor_is_itself_and_what_it_looks_like():
    t = torch.ones(2)
    before = key_of(closing(t))
    assert key_of(closing(t)) == before != key_of(closing(torch.ones(2)))
    t.requires_grad_()
    assert key_of(closing(t)) != before


def test_globals_are_read_anew(monkeypatch):
    before = key_of(scales), key_of(picks)
    monkeypatch.setitem(globals(), "scale", 3.0)
    monkeypatch.setitem(globals(), "pairs", ((1, 3.0), "a"))
    assert key_of(scales) != before[0] and key_of(picks) != before[1]


def test_functions_are_what_they_reach():
    assert key_of(calling(closing(1.0))) == key_of(calling(closing(1.0))) != key_of(calling(closing(2.0)))
    assert key_of(calling(torch.sin)) != key_of(calling(torch.cos))


def test_a_function_that_calls_itself():
    def folds(g, n=3):
        return g if not n else folds(g * 2, n - 1)

    assert key_of(folds) == key_of(folds)


def test_what_is_read_of_a_module(monkeypatch):
    function = lambda g: g * math.floor(1.5)
    before = key_of(function)
    monkeypatch.setattr(math, "floor", lambda x: 7)
    assert key_of(function) != before
    assert Reading(lambda g: (math, g)).effects == ["hands on the module 'math'"]


class Number(int):
    """A number that may carry attributes."""


def own_attribute(g):
    return g


own_attribute.seen = []


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (closing([]), "a list"),
        (with_default({}), "a dict"),
        (closing(Number(1)), "a Number"),
        (closing(slice(1)).__call__, "calls"),
        (own_attribute, "a list"),
        (lambda g: g.grad, "reads 'grad'"),
        (lambda g: torch.get_num_threads() * g, "reads 'get_num_threads'"),
        (lambda g: torch.add(g, 1, out=g), "'out'"),
        (lambda g: undefined * g, "no value"),  # noqa: F821
        (calling(closing([])), "a list"),
    ],
)
def test_what_may_change_is_an_effect(function, words):
    effects = Reading(function).effects
    assert effects and words in effects[0]


def test_a_wrapper_of_this_package_is_looked_through():
    assert key_of(torch.no_grad()(closing(1.0))) != key_of(torch.no_grad()(closing(2.0)))
    assert "a list" in Reading(torch.no_grad()(closing([]))).effects[0]


def test_what_is_changed_in_place_is_known():
    def adds(g, n=1):
        n += 1
        return g * n

    assert Reading(adds).writes_in_place and not Reading(scales).writes_in_place
