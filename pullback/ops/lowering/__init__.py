"""The language in which operators say their loops: what a rule `lower=` is written in.

`expressions` are what one iteration computes, `elements` the array library on one element, `loops` windows on memory and loop
nests, `builder` what a rule is given. All of it is plain data over `core`: nothing here knows of graphs, C or compilers, which
stand above (`codegen`), and nothing here is imported before a graph is compiled, but for this module.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.dtype import dtype
from ..system.scalars import check_fits


class NotLowerable:
    """What a rule returns where it has no loops for a call, and why: the operator runs as it is."""

    __slots__ = ("reason",)

    def __init__(self, reason: str):
        self.reason = reason

    def __repr__(self) -> str:
        return f"NotLowerable({self.reason!r})"


def overflow(value, d: dtype) -> NotLowerable | None:
    """Why a number cannot be an element of a dtype, which the operator says when it runs; None where it can."""
    try:
        check_fits(value, d)
    except RuntimeError as error:
        return NotLowerable(str(error))
    return None


_complex_rules: set[Callable] = set()


def of_complex(rule: Callable) -> Callable:
    """Says of a rule that it is right for complex numbers, too; others are not asked about them."""
    _complex_rules.add(rule)
    return rule


def takes_complex(rule: Callable) -> bool:
    return rule in _complex_rules


__all__ = ["NotLowerable", "of_complex", "overflow", "takes_complex"]
