"""Which sizes of a compiled function's arguments are symbols: what users mark, and what changed from call to call."""

from __future__ import annotations

import math
import re
import types
import weakref

from ...core.tensor import Tensor
from ..shapes.contexts import DimDynamic, RelaxedUnspecConstraint, StatelessSymbolicContext
from ..trace.subclasses import is_wrapper
from .config import config


def mark_dynamic(
    t: Tensor,
    index: int | list | tuple,
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: list | None = None,
) -> None:
    """Ask that a dimension be a symbol: compiling raises where the program needs one value of it.

    `hint_override` and `specialize_on` are for tuning, of which there is none here: they are kept on the tensor and change no graph.
    """
    _mark(t, "_dynamo_dynamic_indices", index)
    _note(t, "_dynamo_hint_overrides", index, hint_override)
    _note(t, "_specialize_on", index, specialize_on)
    if min is not None or max is not None:
        t.__dict__.setdefault("_dynamo_dynamic_range", set()).add((index, min, max))


def maybe_mark_dynamic(t: Tensor, index: int | list | tuple) -> None:
    """Ask that a dimension be a symbol, if the program allows it."""
    _mark(t, "_dynamo_weak_dynamic_indices", index)


def mark_unbacked(
    t: Tensor,
    index: int | list | tuple,
    hint_override: int | None = None,
    strict: bool = False,
    specialize_on: list | None = None,
    shape_id: str | None = None,
    min: int | None = None,
    max: int | None = None,
) -> None:
    """Ask that a dimension be a symbol of which nothing is known but its bounds, not even that it is not 0 or 1.

    Dimensions of one `shape_id` are one symbol: that they are equal is checked. Where `strict`, compiling raises where the program
    needs one value. `hint_override` and `specialize_on` are kept, as `mark_dynamic` keeps them.
    """
    _mark(t, "_dynamo_strict_unbacked_indices" if strict else "_dynamo_unbacked_indices", index)
    _note(t, "_dynamo_hint_overrides", index, hint_override)
    _note(t, "_specialize_on", index, specialize_on)
    _note(t, "_dynamo_shape_ids", index, shape_id)
    _note(t, "_dynamo_unbacked_bounds", index, None if min is max is None else (min, max))


def mark_static(t: Tensor, index: int | list | tuple | None = None) -> None:
    """Ask that a dimension (or all) be a constant of the graph; inside a captured program, of the graph that is being made."""
    dims = list(range(t.ndim)) if index is None else index
    _mark(t, "_dynamo_static_indices", dims)
    for d in dims if isinstance(dims, (list, tuple)) else (dims,):
        if getattr(t.shape[d], "is_symbolic", False):
            int(t.shape[d])


def mark_static_address(t: Tensor, guard: bool = True) -> None:
    """Say that a tensor stays where it is: no effect on the CPU."""
    t.__dict__["_dynamo_static_input_type"] = "guarded" if guard else "unguarded"


def _mark(t: Tensor, attribute: str, index: int | list | tuple) -> None:
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_dynamic: expected a tensor, got {type(t).__name__}")
    for d in index if isinstance(index, (list, tuple)) else (index,):
        if not 0 <= d < t.ndim:
            raise IndexError(f"mark_dynamic: dimension {d} of a tensor with {t.ndim} dimensions")
        t.__dict__.setdefault(attribute, set()).add(d)


def _note(t: Tensor, attribute: str, index: int | list | tuple, value) -> None:
    """Keep what was said of dimensions, by dimension."""
    if value is not None:
        for d in index if isinstance(index, (list, tuple)) else (index,):
            t.__dict__.setdefault(attribute, {})[d] = value


_SETS = tuple(
    f"_dynamo_{kind}_indices" for kind in ("dynamic", "weak_dynamic", "static", "unbacked", "strict_unbacked")
)
_SAID = ("_dynamo_shape_ids", "_dynamo_unbacked_bounds")


def marks_of(t: Tensor) -> dict:
    """What users marked on a tensor."""
    found = {name: t.__dict__.get(name) for name in (*_SETS, *_SAID)}
    return {name: value.copy() for name, value in found.items() if value}


def marks_fit(own: dict, compiled: dict) -> bool:
    """Whether a tensor with these attributes may run a graph made for other marks: it has none, or some of the same."""
    if not all(own[name] <= compiled.get(name, frozenset()) for name in _SETS if name in own):
        return False
    unbacked = "_dynamo_unbacked_indices" in own
    return not unbacked or all(own.get(name, {}) == compiled.get(name, {}) for name in _SAID)


def is_named(place: int | str, places: str) -> bool:
    """Whether a setting names a place, itself or by an expression that matches it."""
    if not places or not isinstance(place, str):
        return False
    wanted = [one.strip() for one in places.split(",")]
    return place in wanted or any(re.fullmatch(one, place) for one in wanted)


def named_by_user(place: int | str) -> bool:
    """Whether what is at a place is to be a symbol, as a setting says."""
    return is_named(place, config.dynamic_sources) or is_named(place, config.unbacked_sources)


class Moving:
    """Sizes and numbers that changed from one graph of a place of a program to the next."""

    def __init__(self) -> None:
        self.dims: dict[int | str, set[int]] = {}  # by an argument's place, or by a value's name
        self.ints: set[str] = set()


_moving: weakref.WeakKeyDictionary[types.CodeType, dict[tuple, Moving]] = weakref.WeakKeyDictionary()


def moving_at(code: types.CodeType, place: tuple) -> Moving:
    """What changed at a place of a program: whoever compiles it again need not find that out again."""
    return _moving.setdefault(code, {}).setdefault(place, Moving())


forget_moving = _moving.clear


class Sizes:
    """The sizes of a function's arguments over its calls."""

    def __init__(
        self, dynamic: bool | None, numbers: bool = False, marks_bind: bool = True, moving: Moving | None = None
    ):
        self.moving = moving or Moving()
        self.last: dict[int | str, tuple] = {}  # by an argument's place, or by a value's name
        self.ints: dict[str, int] = {}
        self.dynamic = dynamic
        self.numbers = bool(dynamic) or numbers and dynamic is None  # whether int arguments are symbols too
        self.marks_bind = marks_bind  # whether a dimension that a user marked must stay a symbol

    def has_symbols(self) -> bool:
        """Whether there may be symbols among sizes and numbers."""
        return self.dynamic is not False or bool(config.dynamic_sources or config.unbacked_sources)

    def contexts(self, flat: list) -> dict[int, StatelessSymbolicContext]:
        """What to make symbols of, per argument; arguments that are not there have the sizes they have."""
        found = {i: self.context(i, t) for i, t in enumerate(flat) if isinstance(t, Tensor)}
        return {i: context for i, context in found.items() if context is not None}

    def context(self, i: int | str, t: Tensor) -> StatelessSymbolicContext | None:
        """What to make symbols of in one tensor; None where its sizes are what they are."""
        if not t.ndim or is_wrapper(t):  # wrappers keep the sizes of their parts
            return None
        if self.dynamic is False and not named_by_user(i):
            return None
        self._note(i, t)
        wanted = self._dynamic(i, t)
        if not wanted:
            return None
        ways = [wanted.get(d, (DimDynamic.STATIC, None)) for d in range(t.ndim)]
        return StatelessSymbolicContext(
            [w for w, _ in ways],
            constraint_sizes=[c for _, c in ways],
            shape_ids=t.__dict__.get("_dynamo_shape_ids"),
            unbacked_bounds=t.__dict__.get("_dynamo_unbacked_bounds"),
        )

    def is_dynamic_number(self, name: str, value: int | float) -> bool:
        """Whether a number that a program reads is a symbol: ints where asked for, all where they were another before."""
        if isinstance(value, bool):
            return False
        if named_by_user(name):
            return True
        if self.dynamic is False:
            return False
        if isinstance(value, float) and not math.isfinite(value):
            return False
        if self.ints.setdefault(name, value) != value:
            self.moving.ints.add(name)
        return self.numbers and isinstance(value, int) or config.automatic_dynamic_shapes and name in self.moving.ints

    def _note(self, i: int | str, t: Tensor) -> None:
        shape, before = tuple(t.shape), self.last.get(i)
        if before is not None and len(before) == len(shape):
            self.moving.dims.setdefault(i, set()).update(d for d in range(len(shape)) if shape[d] != before[d])
        self.last[i] = shape

    def _dynamic(self, i: int | str, t: Tensor) -> dict:
        marks = t.__dict__
        fixed = marks.get("_dynamo_static_indices", ())
        out: dict = {}
        if self.dynamic:
            out = dict.fromkeys(range(t.ndim), (DimDynamic.DUCK, None))
        elif config.automatic_dynamic_shapes:
            way = DimDynamic.UNBACKED if config.automatic_dynamic_shapes_mark_as == "unbacked" else DimDynamic.DUCK
            out = dict.fromkeys(self.moving.dims.get(i, ()), (way, None))
            out |= dict.fromkeys(marks.get("_dynamo_propagated_dynamic_indices", ()), (way, None))
        out |= dict.fromkeys(range(t.ndim) if named_by_user(i) else (), (DimDynamic.DUCK, None))
        out |= dict.fromkeys(range(t.ndim) if is_named(i, config.unbacked_sources) else (), (DimDynamic.UNBACKED, None))
        out |= dict.fromkeys(marks.get("_dynamo_weak_dynamic_indices", ()), (DimDynamic.DUCK, None))
        marked = (DimDynamic.DYNAMIC, RelaxedUnspecConstraint()) if self.marks_bind else (DimDynamic.DUCK, None)
        out |= dict.fromkeys(marks.get("_dynamo_dynamic_indices", ()), marked)
        out |= dict.fromkeys(marks.get("_dynamo_unbacked_indices", ()), (DimDynamic.UNBACKED, None))
        strict = (DimDynamic.UNBACKED, RelaxedUnspecConstraint())
        out |= dict.fromkeys(marks.get("_dynamo_strict_unbacked_indices", ()), strict)
        return {d: way for d, way in out.items() if d not in fixed}
