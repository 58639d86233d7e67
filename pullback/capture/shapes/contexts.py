"""What a caller says about a tensor's dimensions before symbols are made for them.

What always holds: a context says, per dimension, how dynamic it is (`DimDynamic`) and within which bounds; where it says nothing, the
tensor's own marks (`_dynamo_dynamic_indices`, ...) and the environment's defaults decide.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

from .facts import INFINITE


class DimDynamic(enum.Enum):
    """How a dimension becomes a symbol: not at all, shared by equal sizes, of its own, or without an example value."""

    DYNAMIC = 0
    DUCK = 1
    STATIC = 2
    UNBACKED = 3
    INFER_STRIDE = 4


class ValueRanges(NamedTuple):
    """The least and the greatest value."""

    lower: float = -INFINITE
    upper: float = INFINITE


@dataclass(frozen=True)
class StrictMinMaxConstraint:
    """The user promised these bounds: tracing may not need narrower ones."""

    warn_only: bool = False
    vr: ValueRanges = ValueRanges(0)


@dataclass(frozen=True)
class RelaxedUnspecConstraint:
    """The user asked for a dynamic dimension: a single value for it is an error (or a warning)."""

    warn_only: bool = False


class SymbolicContext:
    """Base of what describes an input."""


@dataclass
class StatelessSymbolicContext(SymbolicContext):
    """Per dimension: dynamism of sizes and strides, constraints on them."""

    dynamic_sizes: list
    dynamic_strides: list | None = None
    constraint_sizes: list | None = None
    constraint_strides: list | None = None
    specialize_on: list | None = None
    view_base_context: SymbolicContext | None = None
    excluded_sizes: tuple | None = None
    shape_ids: dict | None = None
    unbacked_bounds: dict | None = None


@dataclass
class StatefulSymbolicContext(StatelessSymbolicContext):
    """Also remembers which symbols its source got, so that the same input gets them again."""

    tensor_source: object = None
    shape_env_to_source_to_symbol_cache: dict = field(default_factory=dict)


@dataclass
class SubclassSymbolicContext(StatefulSymbolicContext):
    """For a tensor made of tensors: a context for each inner one."""

    inner_contexts: dict = field(default_factory=dict)


@dataclass(frozen=True)
class SymIntSymbolicContext(SymbolicContext):
    """For an input that is a number."""

    constraint: object = None


def default_context(tensor, assume_static: bool) -> StatelessSymbolicContext:
    """What the tensor's own marks say."""
    marked = _marks(tensor, "dynamic") | _marks(tensor, "weak_dynamic")
    static, unbacked = _marks(tensor, "static"), _marks(tensor, "unbacked") | _marks(tensor, "strict_unbacked")
    bounds = {r.dim: r for r in getattr(tensor, "_dynamo_dynamic_range", ())}
    sizes, constraints = [], []
    for d in range(len(tensor.shape)):
        if d in unbacked:
            sizes.append(DimDynamic.UNBACKED)
        elif d in marked:
            sizes.append(DimDynamic.DYNAMIC)
        else:
            sizes.append(DimDynamic.STATIC if d in static or assume_static else DimDynamic.DUCK)
        constraints.append(_constraint(tensor, d, bounds.get(d)))
    return StatelessSymbolicContext(
        sizes,
        constraint_sizes=constraints,
        shape_ids=getattr(tensor, "_dynamo_shape_ids", None),
        unbacked_bounds=getattr(tensor, "_dynamo_unbacked_bounds", None),
    )


def _constraint(tensor, d: int, bound):
    if d not in _marks(tensor, "dynamic"):
        return None
    low, high = (getattr(bound, "min", None), getattr(bound, "max", None)) if bound is not None else (None, None)
    if low is None and high is None:
        return RelaxedUnspecConstraint()
    return StrictMinMaxConstraint(vr=ValueRanges(0 if low is None else low, INFINITE if high is None else high))


def _marks(tensor, kind: str) -> set:
    return set(getattr(tensor, f"_dynamo_{kind}_indices", ()))
