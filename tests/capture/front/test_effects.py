"""Which functions only compute, read off their code: what is missed here would be traced once and never done again."""

import functools

import pytest

import pullback as torch
from pullback.capture.front.effects import effect_of, effect_of_values, is_output

log: list = []
scale = 3.0


def doubles(g):
    return g * 2


def scales(g):
    return doubles(g).sum() * scale + torch.ones(g.shape[0])


def prints(g):
    print(g)
    return g


def calls_prints(g):
    return prints(g) + 1


def appends_global(g):
    log.append(g)
    return g


def assigns_global(g):
    global scale
    scale = 4.0
    return g


def prints_inside(g):
    return sum(prints(x) for x in g)


def sets_attribute(g):
    g.seen = True
    return g


def sets_item(g):
    g[0] = 1
    return g


def differentiates(g):
    g.sum().backward()
    return g


def closing(value):
    def inner(g):
        return g if value is None else g * 1

    return inner


def counting():
    count = 0

    def inner(g):
        nonlocal count
        count += 1
        return g

    return inner


class Hook:
    def __call__(self, g):
        return g


@pytest.mark.parametrize(
    "fn", [doubles, scales, lambda g: (g[0], g[1] * 2), closing(2), closing(torch.ones(2)), functools.partial(doubles)]
)
def test_functions_that_only_compute(fn):
    assert effect_of(fn) is None


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (prints, "calls print"),
        (calls_prints, "calls print"),
        (prints_inside, "calls print"),
        (appends_global, "log"),
        (assigns_global, "global 'scale'"),
        (sets_attribute, "attribute 'seen'"),
        (sets_item, "item"),
        (differentiates, "calls backward"),
        (closing([]), "a list"),
        (closing(Hook()), "a Hook"),
        (counting(), "'count'"),
        (Hook(), "Hook"),
        (functools.partial(lambda g, into: g, into=[]), "a list"),
        (log.append, "append"),
    ],
)
def test_functions_that_do_more(fn, words):
    effect = effect_of(fn)
    assert effect is not None and words in effect


def test_what_the_world_sees():
    assert is_output(effect_of(calls_prints))
    assert not is_output(effect_of(appends_global))


def test_values_that_methods_may_change():
    assert effect_of_values({"a": [1, torch.ones(1)], "b": {"c": torch.float32}, "d": torch.Size([1])}) is None
    assert "'s'" in effect_of_values({"s": [set()]})
    assert "function" in effect_of_values({"f": doubles})
