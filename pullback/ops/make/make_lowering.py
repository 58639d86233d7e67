"""Loops of factories and copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core import dtype as dtypes
from ..lowering import NotLowerable, of_complex, overflow

if TYPE_CHECKING:
    from ..lowering.builder import Builder
    from ..lowering.loops import Value


def filled_with(value) -> Callable:
    """A rule: the same number everywhere."""

    @of_complex
    def lower(b: Builder, *_):
        out = b.result()
        return b.fill(out, b.number(value, out.dtype))

    return lower


def filled_with_argument(at: int) -> Callable:
    """A rule: an argument everywhere, by its place in the schema."""

    @of_complex
    def lower(b: Builder, *args):
        out = b.result()
        return overflow(args[at], out.dtype) or b.fill(out, b.number(args[at], out.dtype))

    return lower


def lower_arange(b: Builder, start, end, step, *_):
    out = b.result()
    if out.dtype is not dtypes.int64 or not isinstance(start, int) or not isinstance(step, int):
        return NotLowerable("arange of floats")
    return b.fill(out, b.index(0, step, start))


@of_complex
def lower_copy(b: Builder, x: Value, *_):
    """The elements in another dtype, or another order in memory."""
    return b.fill(b.result(), b.raw(x))


def lower_copy_into(b: Builder, target: Value, src: Value, *_):
    """The elements of one tensor, broadcast, in the dtype and order of another."""
    out = b.result()
    return b.fill(out, b.raw(src, len(out.shape)))


@of_complex
def lower_alias(b: Builder, x: Value):
    return x
