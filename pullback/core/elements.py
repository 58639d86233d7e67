"""Element-wise operators and updates in C, where they are built.

`table` is {operator: {variant: ufunc}}: `table["gelu.default"][("none",)](x)`. A variant is the values of arguments that are no
numbers (see `codegen/eager.py`, which prints the loops). Threads share large arrays (`use_threads`). `over_rows` runs a loop over arrays that lie otherwise, `fill` puts one number everywhere. `update` runs a loop over each of several tuples of arrays and writes
the first of them. Without the extension, or with `PULLBACK_NATIVE=0`, the table is empty and `update` does nothing: the array
library computes.
"""

from __future__ import annotations

import os

import numpy as np

from .dtype import bfloat16
from .extension import extension
from .threads import native_pool, thread_count

_elements = None
if os.environ.get("PULLBACK_NATIVE") != "0":
    try:
        from . import _elements  # type: ignore[no-redef,attr-defined]
    except ImportError:
        pass

table: dict[str, dict[tuple[str, ...], object]] = {}
if _elements is not None:
    _elements.use_pool(native_pool())
    for _name, _ufunc in _elements.ufuncs().items():
        _operator, *_words = _name.split(":")
        table.setdefault(_operator, {})[tuple(_words)] = _ufunc


def straight(name: str, roles: dict[tuple[str, ...], list[tuple[str, object]]], parts: bool):
    """A function in C of an operator's arguments, plain arrays and numbers, for calls on few elements: the result as a tensor, or None (see
    `_straight.c`). `roles` says of each variant what every argument is; with `parts`, complex arrays are two numbers each. None where
    there are no loops."""
    module = extension("_straight")
    if _elements is None or module is None:
        return None
    dense, rows = _elements.loops()
    found: dict[str, list] = {}
    before = None
    for full, *loop in rows:  # of two that were given one name, the later stands, as among the ufuncs
        if full != before:
            found[full] = []
        found[full].append(tuple(loop))
        before = full
    variants = [(tuple(given), tuple(found[":".join([name, *words])])) for words, given in roles.items()]
    return module.bind(dense, parts, tuple(variants), len(next(iter(roles.values()))))


def use_threads() -> None:
    """Before ufuncs of the table are called on large arrays: as many threads as large work may use share them."""
    if _elements is not None:
        _elements.use_threads(thread_count())


def halved(source, numbers: int = 0):
    """The ufunc of bfloat16 and float16 of a ufunc of the array library's, or of the loop of a name: in single precision, rounded once. The
    last `numbers` operands are of single precision, and those that the loop has. None where there is none."""
    return None if _elements is None else _elements.halved(source, numbers, np.dtype(bfloat16.numpy).num)


def fill(array, value) -> None:
    """One number into an array of any array library; into large row-major ones of NumPy's by a loop in C."""
    loop = table.get("rows", {}).get(("fill",)) if array.__class__ is np.ndarray and array.dtype.char in "fd" else None
    if loop is None or array.size < _MANY or not array.flags.carray:
        array.fill(value)
    else:
        use_threads()
        loop(np.asarray(value, array.dtype), out=array)  # type: ignore[operator]


_MANY = 1 << 14  # elements; the array library's call is the cheaper one


def over_rows(name: str, *arrays) -> bool:
    """Run a loop on large arrays in any order of memory that broadcast to the last, which is written; False where there is none of
    this name for them. Loops of no operator, which the array library has too, are named `rows:add`."""
    return _elements is not None and _elements.over_rows(name, arrays, thread_count())


def fits(*arrays) -> bool:
    """Whether the update of one tuple of arrays is done by a loop in C: row-major ones of one size, in one of its dtypes."""
    first = arrays[0]
    if _elements is None or first.dtype.char not in "fd":
        return False
    return all(a.dtype == first.dtype and a.size == first.size and a.flags.carray for a in arrays)


def update_all(name: str, rows: list[tuple], numbers: tuple) -> None:
    """Run the update of this name on every tuple of arrays, all of which fit (`fits`): one call for all of them."""
    done = _elements.update(name, rows, [numbers] * len(rows), thread_count())  # type: ignore[attr-defined]
    if done != len(rows):
        raise RuntimeError(f"{name}: arrays {done} of {len(rows)} are none that a loop updates")


def update(name: str, arrays: tuple, numbers: tuple) -> bool:
    """Run the update of this name on row-major arrays of one dtype and size; False, and nothing is written, where it does not apply."""
    if _elements is None:
        return False
    return _elements.update(name, [arrays], [numbers], thread_count()) == 1
