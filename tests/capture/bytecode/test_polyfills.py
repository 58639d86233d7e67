"""The Python of standard functions agrees with the functions it stands for."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.capture.bytecode.polyfills import POLYFILLS

LISTS = st.lists(st.lists(st.integers(-3, 3), max_size=4), max_size=4)
NUMBERS = st.lists(st.integers(-3, 3), max_size=6)


def by_name(name: str):
    return next((native, python) for native, python in POLYFILLS.items() if getattr(native, "__name__", "") == name)


def outcome(function, *args, **kwargs):
    try:
        result = function(*args, **kwargs)
        return list(result) if hasattr(result, "__iter__") else result
    except TypeError as error:
        return str(error)


@given(LISTS)
def test_nested(lists) -> None:
    for name, args in (("from_iterable", (lists,)), ("chain", tuple(lists)), ("product", tuple(lists))):
        native, python = by_name(name)
        assert outcome(python, *args) == outcome(native, *args)


@given(NUMBERS, st.integers(-3, 3))
def test_flat(numbers, limit) -> None:
    for name in ("takewhile", "dropwhile"):
        native, python = by_name(name)
        assert outcome(python, lambda v: v < limit, numbers) == outcome(native, lambda v: v < limit, numbers)
    native, python = by_name("accumulate")
    for options in ({}, {"initial": limit}):
        assert outcome(python, numbers, **options) == outcome(native, numbers, **options)
        assert outcome(python, numbers, operator.mul, **options) == outcome(native, numbers, operator.mul, **options)
    native, python = by_name("reduce")
    assert outcome(python, operator.sub, numbers) == outcome(native, operator.sub, numbers)
    assert outcome(python, operator.sub, numbers, limit) == outcome(native, operator.sub, numbers, limit)


def test_products_of_a_pool_with_itself() -> None:
    native, python = by_name("product")
    assert list(python("ab", repeat=3)) == list(native("ab", repeat=3))


def test_calls_with_spread_arguments() -> None:
    native, python = by_name("starmap")
    assert list(python(pow, [(2, 3), (3, 2)])) == list(native(pow, [(2, 3), (3, 2)]))


@pytest.mark.parametrize("python", POLYFILLS.values())
def test_each_is_python(python) -> None:
    assert python.__code__.co_filename.endswith("polyfills.py")
