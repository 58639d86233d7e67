"""Sizes that may be given once or per dimension: `3` for `(3, 3)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat


def n_tuple(n: int, name: str = "parse") -> Callable:
    """A function that makes `n` of one size, and a tuple of several."""

    def parse(x):
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


single, pair, triple, quadruple = (
    n_tuple(n, name) for n, name in ((1, "_single"), (2, "_pair"), (3, "_triple"), (4, "_quadruple"))
)


def reversed_twice(t: tuple, n: int) -> tuple:
    """Each element `n` times, last element first: the order in which padding is given."""
    return tuple(x for x in reversed(t) for _ in range(n))
