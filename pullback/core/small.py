"""Operators in C for small plain calls, where they are built.

`table` is {operator: function}: `table["max.dim"]((x, 0, False))` takes the canonical arguments of the operator and gives its result as a
tensor (or a tuple of several), nothing recorded, or None where the call is none that the function computes: other dtypes or layouts of
memory, many elements, none, arguments that the operator refuses. The operator's own rules then compute it; they are what the
functions are tested against. `fronts` is the same for public functions that are written by hand: `fronts["torch.zeros"](args, kwargs)` takes the
arguments as they were given. `view_of(key, op)` is the function for an operator whose result is a view, which is marked as one that this
operator made; None where there is none. `laid_out(result, operands)` gives a fresh array in the order of memory that its operands ask for, or
None; `spread(a, b)` gives row-major arrays that are repeated inside short rows in full, which the array library joins faster;
`joined_pixels(arrays, dim)` joins images that lie channels-last, or gives None; `through_rows(function, place)` asks a function of the table again with row-major copies of tensors that lie otherwise, and
`through_bits(function)` one that only moves elements with the bits of dtypes that it does not know; `written_once(array)` says whether no two of its elements share memory, as far as it
knows (`_layouts.c`). Without the extensions, or with `PULLBACK_NATIVE=0`, there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import device as devices
from . import dtype as dtypes
from .extension import extension
from .modes import ambient, process
from .node import UNTRACKED_VIEW
from .objects import make_view
from .tensor import Tensor, make_tensor
from .threads import native_pool, thread_count

# in the order of the enumeration in native_arrays.h
_KINDS = ("float32", "float64", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128")

table: dict[str, Callable[[tuple], Any]] = {}
fronts: dict[str, Callable[[tuple, dict], Any]] = {}


def view_of(key: str, op) -> Callable[[tuple], Any] | None:
    return None


def parts_of(select, slice_) -> tuple[Callable, Callable]:
    """`basic(tensor, index)`, the view that a tuple of ints and slices takes of a plain tensor without history, and `pieces(tensor, dim, places)`, its
    slices from each place to the next; made by these operators. None from either where it takes more."""
    return (_none, _none)


def _none(*args) -> None:
    return None


def laid_out(result, operands: list):
    return None


def joined_pixels(arrays: list, dim):
    return None


def spread(a, b) -> tuple:
    return a, b


def written_once(array) -> bool:
    return array.flags.forc


def through_rows(function: Callable[[tuple], Any], place) -> Callable[[tuple], Any]:
    return function


def through_bits(function: Callable[[tuple], Any]) -> Callable[[tuple], Any]:
    return function


def in_turn(first: Callable, second: Callable) -> Callable:
    """A function that asks the second where the first gives None: two modules compute calls of one operator."""
    if (calls := extension("_calls")) is not None:
        return calls.in_turn(first, second)

    def run(args: tuple):
        out = first(args)
        return second(args) if out is None else out

    return run


_PUBLIC = ("torch.", "Tensor.", "nn.functional.")
for _name in (
    "_along", "_places", "_picks", "_shapes", "_chains", "_linalg", "_fourier", "_pools", "_sums", "_losses", "_pairs", "_draws", "_trials", "_makers", "_views", "_spatial",
    "_counts", "_blocks", "_halves", "_narrow", "_products", "_recurrent", "_layouts", "_casts", "_integers", "_straight",
):  # fmt: skip
    _module = extension(_name)
    if _module is not None:
        _known = [getattr(dtypes, _kind) for _kind in _KINDS]
        try:
            _module.use_arrays(np.ndarray, [(_d.numpy.num, _d) for _d in _known], make_tensor)
        except ValueError as error:
            raise ImportError(
                f"pullback.core.{_name} was built of other sources: `pip install -e .` again ({error})"
            ) from None
        if hasattr(_module, "use_reducers") and (_native := extension("_native")) is not None:
            _module.use_reducers(*_native.reducers())
        if hasattr(_module, "use_threads"):
            _module.use_threads(native_pool(), thread_count)
        if hasattr(_module, "use_bfloat16"):
            _module.use_bfloat16(np.dtype(dtypes.bfloat16.numpy).num, dtypes.bfloat16, process)
        if hasattr(_module, "use_casts") and (_elements := extension("_elements")) is not None:
            _module.use_casts(dtypes.float16, _elements.casts())
        if hasattr(_module, "use_process"):
            _module.use_process(process, devices.cpu, Tensor, ambient, UNTRACKED_VIEW)
        if _name == "_views":
            _module.use_views(make_view, ambient)
            view_of, parts_of = _module.bind, _module.bind_parts
        if _name == "_layouts":
            laid_out, written_once = _module.laid_out, _module.written_once
            joined_pixels, spread = _module.joined_pixels, _module.spread
            through_rows, through_bits = _module.through_rows, _module.through_bits
        for _key, _function in vars(_module).items():
            if _key.startswith(_PUBLIC):
                fronts[_key] = _function
            elif "." in _key:
                table[_key] = in_turn(_function, table[_key]) if _key in table else _function
