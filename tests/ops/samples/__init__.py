"""Sample inputs of every operator, by family: `samples_of(op)`; and `EXEMPT`, what has none and why.

Comes in: an operator. Goes out: pairs (arguments, other arguments) in canonical form, of the same shapes with different
numbers. Always holds: an operator that can compute with complex numbers is also sampled with them; whether it can, it
says itself, by PyTorch's words in the error.
"""

from __future__ import annotations

import functools
import re

from pullback.ops.family.along import Along
from pullback.ops.family.pointwise import Pointwise
from pullback.ops.family.reduction import Reduction
from pullback.ops.system.dispatch import dispatch
from pullback.ops.system.operator import Operator, registry

from . import algebra, factories, foreach, networks, pointwise, reductions, views, windows
from .around import key_of
from .factories import EXEMPT, LAYOUT, LAYOUTS
from .make import Make

TABLES = (views.table, algebra.table, networks.table, windows.table, factories.table)
# How an operator says that it does not take complex numbers.
REFUSES_COMPLEX = re.compile(
    "not implemented for 'Complex|complex|Complex|not supported for|real-valued|expected a floating|can't be cast|must be real|"
    "input must be floating|Only supports floating|expected scalar type"
)


def functional_operators() -> list[Operator]:
    """Every operator of the table: in-place forms go with their functional form."""
    return [op for op in list(registry.values()) if op.inplace_of is None and op.namespace == "aten"]


@functools.cache
def _tables(seed: int, is_complex: bool) -> dict:
    found: dict = {}
    for table in TABLES:
        result = table(Make(seed, is_complex))
        found |= result
    return found


def _calls(op: Operator, seed: int, is_complex: bool) -> list:
    key, make = key_of(op), Make(seed, is_complex)
    if key in reductions.SAMPLES:
        return reductions.SAMPLES[key](make)
    if key in (tables := _tables(seed, is_complex)):
        return tables[key]
    if op.name.startswith("_foreach_"):
        return foreach.samples(op, make)
    if op.body is not None and not isinstance(op.family, Pointwise):
        return []
    if isinstance(op.family, Pointwise):
        return pointwise.samples(op, make)
    if isinstance(op.family, Reduction):
        return reductions.reduction_samples(op, make)
    if isinstance(op.family, Along):
        return reductions.along_samples(op, make)
    return []


def exempt(key: str) -> str | None:
    """Why an operator has no samples, if there is a reason."""
    return EXEMPT.get(key) or (LAYOUT if key.startswith(LAYOUTS) else None)


def _canonical(op: Operator, sample: tuple) -> tuple:
    args, kwargs = sample
    return op.convert(op.bind(args, kwargs))


@functools.cache
def samples_of(op: Operator) -> tuple:
    """Pairs of canonical arguments; real ones, then complex ones where the operator takes them."""
    pairs = []
    for is_complex in (False, True):
        for one, other in zip(_calls(op, 1, is_complex), _calls(op, 2, is_complex), strict=True):
            pair = _canonical(op, one), _canonical(op, other)
            if not is_complex or _has_complex(pair[0]) and _takes(op, pair[0]):
                pairs.append(pair)
    return tuple(pairs)


def _has_complex(args) -> bool:
    return any(
        _has_complex(a) if isinstance(a, tuple) else getattr(getattr(a, "dtype", None), "is_complex", False)
        for a in args
    )


def _takes(op: Operator, args: tuple) -> bool:
    try:
        dispatch(op, args)
    except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        if REFUSES_COMPLEX.search(str(error)):
            return False
        raise
    return True


__all__ = ["EXEMPT", "exempt", "functional_operators", "key_of", "samples_of"]
