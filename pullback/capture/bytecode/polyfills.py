"""Functions of the standard library that look into what they are given, in Python, for the machine to interpret."""

from __future__ import annotations

import functools
import itertools
from typing import Any

MISSING: Any = object()


def chain_from_iterable(iterables):
    for iterable in iterables:
        yield from iterable


def chain(*iterables):
    for iterable in iterables:
        yield from iterable


def starmap(function, iterable):
    for args in iterable:
        yield function(*args)


def product(*iterables, repeat=1):
    pools = [tuple(pool) for pool in iterables] * repeat
    rows: list[tuple] = [()]
    for pool in pools:
        rows = [(*row, item) for row in rows for item in pool]
    yield from rows


def accumulate(iterable, func=None, *, initial=None):
    total = MISSING if initial is None else initial
    if initial is not None:
        yield total
    for item in iterable:
        if total is MISSING:
            total = item
        else:
            total = total + item if func is None else func(total, item)
        yield total


def takewhile(predicate, iterable):
    for item in iterable:
        if not predicate(item):
            return
        yield item


def dropwhile(predicate, iterable):
    dropping = True
    for item in iterable:
        if dropping and predicate(item):
            continue
        dropping = False
        yield item


def reduce(function, iterable, *initial):
    total = initial[0] if initial else MISSING
    for item in iterable:
        total = item if total is MISSING else function(total, item)
    if total is MISSING:
        raise TypeError("reduce() of empty iterable with no initial value")
    return total


def sequence(items):
    """Iteration over an object that has `__getitem__` alone."""
    place = 0
    while True:
        try:
            item = items[place]
        except IndexError:
            return
        yield item
        place += 1


POLYFILLS = {
    itertools.chain.from_iterable: chain_from_iterable, itertools.chain: chain, itertools.starmap: starmap,
    itertools.product: product, itertools.accumulate: accumulate, itertools.takewhile: takewhile,
    itertools.dropwhile: dropwhile, functools.reduce: reduce,
}  # fmt: skip
