"""What users say about sizes: `Dim`, hints, and the classes that collect them.

In: names, bounds, example inputs. Out: objects that stand in `dynamic_shapes`, next to the tensors they speak of. What
always holds: a `Dim` is the same size wherever it stands; one made of another (`2 * batch + 1`) is that much of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum, auto
from typing import Any

from ..capture.front.compile import UserError
from ..core import tree
from ..core.tensor import Tensor
from .inputs import bound_arguments


class _DimHintType(Enum):
    AUTO = auto()
    STATIC = auto()
    DYNAMIC = auto()


class _DimHint:
    """A dimension without a name: `Dim.AUTO`, `Dim.DYNAMIC` and `Dim.STATIC`, perhaps with bounds."""

    def __init__(self, type: _DimHintType, min: int | None = None, max: int | None = None, factory: bool = True):
        self.type, self.min, self.max, self._factory = type, min, max, factory

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        if not self._factory:
            raise TypeError(f"'{self.type.name}' object is not callable")
        if min is not None and min < 0:
            raise AssertionError(f"min must be non-negative, got {min}")
        if max is not None and max < 0:
            raise AssertionError(f"max must be non-negative, got {max}")
        if min is not None and max is not None and min > max:
            raise AssertionError(f"min must be <= max, got min={min}, max={max}")
        return _DimHint(self.type, min, max, factory=False)

    def __repr__(self) -> str:
        parts = [f"{k}={v}" for k, v in (("min", self.min), ("max", self.max)) if v is not None]
        return f"DimHint({', '.join([self.type.name, *parts])})"


class Dim:
    """A size with a name, and bounds within which the exported program must be right."""

    AUTO = _DimHint(_DimHintType.AUTO)
    DYNAMIC = _DimHint(_DimHintType.DYNAMIC)
    STATIC = _DimHint(_DimHintType.STATIC)

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        low, high = 0 if min is None else min, math.inf if max is None else max
        if high < low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.min, self.max = low, high

    @property
    def root(self) -> Dim:
        return self

    factor, offset = 1, 0

    def _derive(self, factor: int, offset: int) -> Dim:
        return _DerivedDim(self.root, self.factor * factor, self.offset * factor + offset)

    def __add__(self, other: int) -> Dim:
        return self._derive(1, _integer(other, "add"))

    __radd__ = __add__

    def __sub__(self, other: int) -> Dim:
        return self._derive(1, -_integer(other, "sub"))

    def __rsub__(self, other: Any) -> Dim:
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}. Only increasing linear operations with integer coefficients are supported."
        )

    def __mul__(self, other: int) -> Dim:
        if _integer(other, "mul") <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {other} with {self.__name__}, where a positive integer was expected. "
                "(Only increasing linear operations with integer coefficients are supported.)"
            )
        return self._derive(other, 0)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        bounds = [f"min={self.min}"] if self.min not in (0, 2) else []
        bounds += [f"max={self.max}"] if self.max != math.inf else []
        return f"Dim({', '.join([repr(self.__name__), *bounds])})"


def _integer(value: Any, what: str) -> int:
    if type(value) is not int:
        raise NotImplementedError(
            f"Attempted to {what} {value} to a Dim, where an integer was expected. "
            "(Only increasing linear operations with integer coefficients are supported.)"
        )
    return value


class _DerivedDim(Dim):
    """`factor * root + offset`."""

    def __init__(self, root: Dim, factor: int, offset: int):
        self._root, self.factor, self.offset = root, factor, offset
        times = f"{factor}*{root.__name__}" if factor != 1 else root.__name__
        self.__name__ = times if not offset else f"{times} {'+' if offset > 0 else '-'} {abs(offset)}"
        if self.min < 0:
            raise AssertionError(f"Expected derived min value of {self.__name__} to be >= 0. Please specify an appropriate min value for {root.__name__} (currently {root.min}).")  # fmt: skip

    @property
    def root(self) -> Dim:
        return self._root

    def fn(self, value: Any) -> Any:
        """This dimension, for a value of the one it is made of."""
        return self.factor * value + self.offset

    @property
    def min(self):  # type: ignore[override]
        return self.factor * self._root.min + self.offset

    @property
    def max(self):  # type: ignore[override]
        return self.factor * self._root.max + self.offset

    def __repr__(self) -> str:
        return self.__name__


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several `Dim`s with the same bounds."""
    return tuple(Dim(name, min=min, max=max) for name in names)


Constraint = Dim  # what a dimension may be bound to


class ShapesCollection:
    """`dynamic_shapes` by tensor: `shapes[x] = {0: batch}`, wherever `x` stands in the arguments."""

    def __init__(self) -> None:
        self._shapes: dict[int, Any] = {}
        self._kept: list = []  # so that no other object gets the identity of one that is known

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, (Tensor, int)):
            raise AssertionError(f"Cannot assign shape to non-tensor or non-int type {type(t)}")
        if id(t) in self._shapes and self._shapes[id(t)] != shape:
            raise AssertionError(f"Shapes assigned to input is a mismatch: {self._shapes[id(t)]} and {shape}")
        self._shapes[id(t)] = shape
        self._kept.append(t)

    def __getitem__(self, t: Any) -> Any:
        return self._shapes.setdefault(id(t), {})

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict | None = None) -> dict:
        """What was said, in the structure of the arguments."""
        found: set[int] = set()

        def shape(t: Any) -> Any:
            found.add(id(t))
            return self._shapes.get(id(t))

        named = {k: tree.tree_map(shape, v) for k, v in bound_arguments(m, args, kwargs or {}).items()}
        if self._shapes.keys() - found:
            raise ValueError(
                "Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied when passing them as args? Maybe such tensors are contained in classes that were not registered with pytree?"
            )
        return named


class AdditionalInputs:
    """`dynamic_shapes` by example: what differs between the examples is dynamic."""

    def __init__(self) -> None:
        self._examples: list[tuple[tuple, dict]] = []

    def add(self, args: tuple, kwargs: dict | None = None) -> None:
        """One more example call."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict | None = None) -> dict:
        """What differs between these arguments and the examples, in the structure of the arguments."""
        first = bound_arguments(m, args, kwargs or {})
        others = [bound_arguments(m, *example) for example in self._examples]
        leaves, spec = tree.tree_flatten(first)
        rows = [tree.tree_flatten(other) for other in others]
        if any(other != spec for _, other in rows):
            raise ValueError("AdditionalInputs: the examples differ in structure from the arguments of export")
        moving = iter([_moving(value, [r[i] for r, _ in rows]) for i, value in enumerate(leaves)])
        return {name: _like(value, moving) for name, value in first.items()}

    def verify(self, ep: Any) -> None:
        """Run every example through the exported program: one that does not fit raises."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


def _moving(value: Any, others: list) -> Any:
    """What differs between values at one place."""
    if isinstance(value, Tensor):
        shapes = [tuple(o.shape) for o in others]
        if any(len(s) != value.ndim for s in shapes):
            raise ValueError(f"AdditionalInputs: a tensor of shape {tuple(value.shape)} has another rank in an example")
        return tuple(Dim.DYNAMIC if any(s[d] != n for s in shapes) else None for d, n in enumerate(value.shape))
    if all(type(o) is type(value) and o == value for o in others):
        return None
    if type(value) is int and all(type(o) is int for o in others):
        return Dim.DYNAMIC
    what = "values, but" if all(type(o) is type(value) for o in others) else "types, so"
    raise ValueError(
        f"The following inputs were found to have differing {what} they cannot be marked as dynamic: {(value, *others)}."
    )


def _like(value: Any, leaves: Iterator) -> Any:
    """The next leaves in the structure of a value; objects that are no containers of Python's are lists of theirs."""
    if isinstance(value, Tensor) or tree.optree.tree_is_leaf(value, none_is_leaf=True, namespace="pullback"):
        return next(leaves)
    children, _, keys, _ = tree.optree.tree_flatten_one_level(value, none_is_leaf=True, namespace="pullback")
    found = [_like(child, leaves) for child in children]
    if isinstance(value, dict):
        return dict(zip(keys, found, strict=True))
    return type(value)(found) if type(value) in (tuple, list) else found


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes: Any) -> Any:
    """Dynamic shapes with what the error of an export suggests."""
    from .suggestions import refine_dynamic_shapes_from_suggested_fixes as refined

    return refined(msg, dynamic_shapes)


def bad(message: str) -> UserError:
    """The error for what users say about shapes."""
    return UserError(message)
