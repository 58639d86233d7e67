"""Pieces of generated source that every plain case is put together from.

A plain case reads

    if every tensor is plain, and what else must hold of the arguments:
        mode = ambient.mode
        if mode < 2, and what must hold of arrays and dtypes:
            r = ...
            t = make_tensor(r, d)
            if mode and (some tensor has history):
                return op.record(t, ...)
            return t

and otherwise falls through to what follows it in the function: in the end, the general path. It never calls that path
while it handles an error, so that what the user sees is one error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..system.operator import Operator

__all__ = ["Call", "PlainCase", "all_of", "attempt", "block", "finish", "is_plain", "live"]


@dataclass(eq=False, repr=False)  # which would be compiled at each start
class Call:
    """What the lines of one public function are made from."""

    op: Operator  # the functional operator
    inplace: bool
    values: list[str]  # parameter names, in schema order
    has_out: bool
    fixed: frozenset[str] = frozenset()  # those that are always their default

    @property
    def arguments(self) -> list:
        return list(zip(self.values, self.op.schema.arguments, strict=True))

    @property
    def tensors(self) -> list[str]:
        return [v for v, a in self.arguments if a.is_tensor]

    @property
    def no_out(self) -> list[str]:
        # asked of the value itself: two dictionaries would compare tensors, element by element
        return ["(not rest or rest.get('out', rest) is None and len(rest) == 1)"] if self.has_out else []

    @property
    def one_out(self) -> str:
        """The condition that there is an `out`, of that name, and nothing else that the parameters do not name."""
        return "rest and len(rest) == 1 and (out := rest.get('out')) is not None"

    @property
    def given(self) -> str:
        return ", ".join(self.values)


class PlainCase:
    """How plain calls go past the dispatcher, as a declaration says it (`plain=`)."""

    __slots__ = ()
    recorded_as: Operator | None = (
        None  # the operator that the call becomes, if another: where that is overridden, no case
    )

    def lines(self, call: Call) -> list[str]:
        """The source of the case."""
        raise NotImplementedError

    def names(self, op: Operator) -> dict:
        """What those lines name; `op` is the functional operator."""
        return {}


def block(head: str, *body: str) -> list[str]:
    """A statement with lines under it."""
    return [head, *[f"    {line}" for line in body]]


def attempt(line: str, errors: str, *then: str) -> list[str]:
    """A line, and what follows where it did not raise."""
    return [*block("try:", line), *block(f"except {errors}:", "pass"), *block("else:", *then)]


def all_of(*conditions: str) -> str:
    return " and ".join(conditions)


def is_plain(tensors: list[str], *more: str) -> str:
    """The condition that parameters are plain tensors, and what else must hold."""
    return all_of(*[c for t in tensors for c in (f"{t}.__class__ in PLAIN", f"not {t}._keys")], *more)


def live(tensors: list[str]) -> str:
    """The condition that a gradient may be wanted."""
    return f"mode and ({' or '.join(f'{t}._autograd is not None' for t in tensors)})"


def finish(dtype: str, tensors: list[str], record: str | None) -> list[str]:
    """The tensor around the array `r`, recorded by the call `record` if one of the tensors has history."""
    recorded = [] if record is None else block(f"if {live(tensors)}:", f"return {record}")
    return [f"t = make_tensor(r, {dtype})", *recorded, "return t"]
