"""Element-wise operators and updates in C, where they are built.

`table` is {operator: {variant: ufunc}}: `table["gelu.default"][("none",)](x)`. A variant is the values of arguments that are no
numbers (see `codegen/eager.py`, which prints the loops). `update` runs a loop over each of several tuples of arrays and writes
the first of them. Without the extension, or with `PULLBACK_NATIVE=0`, the table is empty and `update` does nothing: the array
library computes.
"""

from __future__ import annotations

import os

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


def update(name: str, arrays: tuple, numbers: tuple) -> bool:
    """Run the update of this name on row-major arrays of one dtype and size; False, and nothing is written, where it does not apply."""
    if _elements is None:
        return False
    return _elements.update(name, [arrays], [numbers], thread_count()) == 1
