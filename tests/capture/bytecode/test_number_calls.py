"""What built-in functions ask objects of the program is interpreted: each effect is there once, as in plain Python."""

from __future__ import annotations

import math
import operator

import pytest

import pullback as torch

LOG: list = []


class Number:
    def __init__(self, value=3):
        self.value, self.count = value, 0

    def asked(self, name, out):
        self.count += 1
        LOG.append(name)
        return out

    def __int__(self):
        return self.asked("int", self.value)

    def __float__(self):
        return self.asked("float", self.value + 0.5)

    def __complex__(self):
        return self.asked("complex", 1j)

    def __round__(self, digits=None):
        return self.asked("round", ("round", digits))

    def __abs__(self):
        return self.asked("abs", "abs")

    def __neg__(self):
        return self.asked("neg", "neg")

    def __floor__(self):
        return self.asked("floor", 8)

    def __trunc__(self):
        return self.asked("trunc", 7)


class Place:
    def __init__(self, value=1):
        self.value, self.count = value, 0

    def __index__(self):
        self.count += 1
        return self.value


class Bad:
    def __int__(self):
        return "int"

    def __float__(self):
        return "float"

    def __index__(self):
        return "index"


class Values:
    def __getitem__(self, i):
        LOG.append(i)
        if i > 5:
            raise IndexError(i)
        return i * 2


class Counting:
    count = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.count += 1
        if self.count > 5:
            raise StopIteration
        return self.count

    def method(self):
        return None


def numbers():
    for i in range(5):
        LOG.append(i)
        yield i


def noted(v):
    LOG.append(v)
    return v


def as_numbers(n):
    converted = int(n), float(n), complex(n), round(n), round(n, 2), abs(n)
    return (*converted, -n, operator.neg(n), math.floor(n), math.trunc(n), n.count)


def as_places(n):
    made = [
        [5, 6, 7][n],
        (5, 6, 7)[n],
        "abc"[n],
        [1, 2, 3][n:],
        [0] * n,
        n * [1],
        list(range(n, 4)),
        range(n),
        bin(n),
        int(n),
        float(n),
    ]
    made[0 : Place(2)] = []
    return made, operator.index(n), n.count


def refused(n):
    words = []
    for f in (int, float, complex, operator.index, range, lambda v: [1][v]):
        try:
            f(n)
        except TypeError as error:
            words.append(str(error))
    return words


def looked_for(n):
    g, it = numbers(), iter([1, 2, 3, 4])
    found = 2 in g, 4 in Values(), 5 in Values(), 2 in n, 3 in it, 3 in map(noted, [1, 3, 4])
    return found, list(g), list(it), n.count


def stored(n):
    xs = [1, 2, 3]
    xs[n] = 7
    del xs[Place(0)]
    return xs, n.count


def hashes(n):
    return (
        hash(n.method) == hash(n.method),
        {n.method: 1}[n.method],
        hash((looked_for, n.method)) == hash((looked_for, n.method)),
        hash((1, "a")),
    )


@pytest.mark.parametrize(
    ("f", "make"),
    [
        (as_numbers, Number),
        (as_places, Place),
        (refused, Bad),
        (looked_for, Counting),
        (stored, Place),
        (hashes, Counting),
    ],
)
def test_as_plain_python(f, make):
    seen = []
    for g in (f, torch.compile(f, backend="eager", fullgraph=True)):
        LOG.clear()
        n = make()
        seen.append([g(n), g(n), list(LOG), vars(n)])
    assert seen[0] == seen[1]


def test_functions_are_found_in_containers_from_outside():
    owner = Counting()
    f = torch.compile(lambda x, xs: (xs.index(as_numbers), xs.count(owner.method), as_numbers in xs), fullgraph=True)
    assert f(torch.ones(1), [1, as_numbers, owner.method]) == (1, 1, True)
    h = torch.compile(lambda: (hash(owner.method), hash((as_numbers, 1)), id(None)), fullgraph=True)
    assert h() == (hash(owner.method), hash((as_numbers, 1)), id(None))


def test_places_that_change_are_numbers_that_change():
    place, xs = Place(1), [1.0, 2.0, 3.0]
    f = torch.compile(lambda x: (x * xs[place], len(xs[place:]), float(place)), backend="eager", fullgraph=True)
    for value in (1, 2, 0, 1):
        place.value = value
        out, length, number = f(torch.ones(1))
        assert (out.item(), length, number) == (xs[value], 3 - value, float(value))
