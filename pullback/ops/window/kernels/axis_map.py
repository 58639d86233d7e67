"""Sparse linear maps along one axis: what resampling, adaptive averaging and index padding have in common.

Comes in: an array and, for one of its axes, a map written as taps; a tap says, for each output it serves, which input
to read and with which weight. Goes out: the mapped array, or the array mapped by the transpose. Always holds: entries
that a map does not read never touch the answer, so that an infinity stays where it is; and `transpose` of a map is a
map again, so that a backward runs by the same code as its forward.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy

from ....core import spatial
from ....core.pixels import as_pixels
from ....core.records import Record
from .geometry import Array, Ints

LONGEST_KEPT = 1 << 14  # entries of an axis whose maps are kept from call to call
BLOCK_ENTRIES = 1 << 18  # entries of one block: what a tap reads and what it adds to stay in the cache


class Tap(Record):
    """One read per output: out[select] += weight * in[read]. No `select`: every output. No `weight`: one."""

    read: Array
    weight: Array | None = None
    select: Array | slice | None = None


class AxisMap(Record):
    """A map from an axis of `inputs` entries to one of `outputs` entries."""

    inputs: int
    outputs: int
    taps: tuple[Tap, ...]
    table: tuple[Array, Array, Array | None] | None = None  # `rows()`, where a map is used more than once

    def apply(self, xp: Any, x: Array, axis: int) -> Array:
        """x with `axis` mapped, a block of leading entries at a time."""
        if xp is numpy and (found := spatial.axis_map(x, axis, *(self.table or self.rows()))) is not None:
            return found
        lead, rest = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
        source, covered = x.reshape(lead, self.inputs, rest), bool(self.taps) and self.taps[0].select is None
        result = (xp.empty if covered else xp.zeros)(x.shape[:axis] + (self.outputs,) + x.shape[axis + 1 :], x.dtype)
        out = result.reshape(lead, self.outputs, rest)
        weights = [None if tap.weight is None else tap.weight.astype(x.dtype)[:, None] for tap in self.taps]
        step = max(1, BLOCK_ENTRIES // max(1, self.outputs * rest))
        for i in range(0, lead, step):
            for k, (tap, weight) in enumerate(zip(self.taps, weights)):
                part = xp.take(source[i : i + step], tap.read, axis=1)
                if weight is not None:
                    part *= weight
                if covered and k == 0:
                    out[i : i + step] = part
                else:
                    out[i : i + step, slice(None) if tap.select is None else tap.select] += part
        return result

    def kept(self) -> AxisMap:
        """The same map with its rows made, to be used more than once."""
        return AxisMap(self.inputs, self.outputs, self.taps, self.rows())

    def rows(self) -> tuple[Array, Array, Array | None]:
        """The taps output by output: where those of each begin, what they read, and with which weight."""
        every = numpy.arange(self.outputs)
        served = [every if tap.select is None else every[tap.select] for tap in self.taps]
        if not served:
            return numpy.zeros(self.outputs + 1, numpy.int64), every[:0], None
        output, read = numpy.concatenate(served), numpy.concatenate([tap.read for tap in self.taps])
        weights = None
        if any(tap.weight is not None for tap in self.taps):
            ones = [numpy.ones(len(t.read)) if t.weight is None else t.weight for t in self.taps]
            weights = numpy.concatenate(ones)
        order = numpy.argsort(output, kind="stable")
        start = numpy.searchsorted(output[order], numpy.arange(self.outputs + 1))
        return start, read[order].astype(numpy.int64), None if weights is None else weights[order]

    def transpose(self, xp: Any) -> AxisMap:
        """The map from outputs back to inputs, with every weight kept."""
        every = xp.arange(self.outputs)
        rows = [every if tap.select is None else every[tap.select] for tap in self.taps]
        if not rows:
            return AxisMap(self.outputs, self.inputs, ())
        weighted = any(tap.weight is not None for tap in self.taps)
        row, column = xp.concatenate(rows), xp.concatenate([tap.read for tap in self.taps])
        weight = xp.concatenate([tap.weight for tap in self.taps]) if weighted else None
        order = xp.argsort(column, kind="stable")
        row, column = row[order], column[order]
        starts = xp.searchsorted(column, xp.arange(self.inputs))
        rank = xp.arange(column.size) - starts[column]
        taps = []
        for r in range(int(rank.max()) + 1 if rank.size else 0):
            at = xp.flatnonzero(rank == r)
            taps.append(Tap(row[at], None if weight is None else weight[order[at]], selection(column[at], self.inputs)))
        return AxisMap(self.outputs, self.inputs, tuple(taps))


def may_keep(xp: Any, *sizes: Ints) -> bool:
    """Whether maps between axes of these sizes are kept: the CPU's, of axes that are not long."""
    return xp is numpy and max(map(max, sizes)) <= LONGEST_KEPT


def selection(chosen: Array, count: int) -> Array | slice | None:
    """Ascending indices out of `count` as `Tap.select` wants them: nothing for all, a slice for a run."""
    if chosen.size == count:
        return None
    first, last = (int(chosen[0]), int(chosen[-1])) if chosen.size else (0, -1)
    return slice(first, last + 1) if last - first + 1 == chosen.size else chosen


def apply_all(xp: Any, x: Array, maps: list[AxisMap | None]) -> Array:
    """x with its trailing axes mapped, one map (or nothing) for each; axes that shrink go first."""
    lead = x.ndim - len(maps)
    todo = [(m.outputs / max(1, m.inputs), lead + a, m) for a, m in enumerate(maps) if m is not None]
    todo.sort()  # axes differ, so that maps are never compared
    while todo:
        if len(todo) <= 2 and xp is numpy and x.size and (found := _last_axes(x, todo)) is not None:
            return found
        _, axis, m = todo.pop(0)
        x = m.apply(xp, x, axis)
    return x


def _last_axes(x: Array, todo: list[tuple[float, int, AxisMap]]) -> Array | None:
    """The last axis mapped, and the one before it first where there are two maps; None where the maps are of others, or
    channels are what lies innermost."""
    if [axis for _, axis, _ in todo] != list(range(x.ndim - len(todo), x.ndim)) or as_pixels(x) is not None:
        return None
    *down, across = [m.table or m.rows() for _, _, m in todo]
    return spatial.planes_map(x, down[0] if down else None, across)


def transposed(xp: Any, maps: list[AxisMap | None]) -> list[AxisMap | None]:
    """The transpose of each map."""
    return [None if m is None else m.transpose(xp) for m in maps]
