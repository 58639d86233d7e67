"""Lowering of collectives: how generated code starts and awaits them (see `native`).

In: the builder of a graph's loops and an operator's arguments. Out: the value that a call writes, or `NotLowerable` where the
operator itself must run: one rank, another library than MPI, dtypes that travel as others. What always holds: MPI is told what
the operator's kernel tells it.
"""

from __future__ import annotations

import math
from typing import Any

from ..ops.lowering import NotLowerable
from ..ops.lowering.builder import Builder
from ..ops.lowering.loops import Value
from .groups import state
from .native import BYTES, ELEMENTS, MOST, Calls, Collective, engine_for, loaded
from .process_group import ProcessGroup
from .reduce_op import as_reduce_op

REDUCED = ("SUM", "AVG", "MIN", "MAX", "PRODUCT")


def _place(b: Builder, group_name: str, elements: int) -> tuple[Calls, ProcessGroup] | NotLowerable:
    """The engine and the group of a call, where native code can make it."""
    pg = state.groups.get(group_name)
    if pg is None or b.device != "cpu":
        return NotLowerable("no group of that name now" if pg is None else "a collective between devices")
    engine = engine_for(pg)
    if isinstance(engine, str):
        return NotLowerable(engine)
    if not 0 < elements <= MOST:
        return NotLowerable(f"a collective of {elements} elements")
    return engine, pg


def _reduced(x: Value, reduce_op: str) -> NotLowerable | None:
    if x.dtype not in ELEMENTS or as_reduce_op(reduce_op).name not in REDUCED:
        return NotLowerable(f"{reduce_op} of {x.dtype} over ranks, which is more than one call of MPI")
    return None


def _row_major(b: Builder, x: Value) -> Value:
    """The elements of a value in order, in memory that holds nothing else."""
    return x if x.is_contiguous else b.store(b.blank(x.shape, x.dtype), x, lambda e: e)


def _nbytes(v: Value) -> int:
    return v.numel * v.dtype.itemsize


def lower_all_reduce(b: Builder, x: Value, reduce_op: str, group_name: str) -> Any:
    place = _reduced(x, reduce_op) or _place(b, group_name, x.numel)
    if isinstance(place, NotLowerable):
        return place
    routine = Collective(*place, "all_reduce", ELEMENTS[x.dtype], x.numel, _nbytes(x), op=as_reduce_op(reduce_op))
    return b.start(b.fill(b.result(), b.raw(x)), None, routine)


def lower_gather(b: Builder, x: Value, group_size: int, group_name: str) -> Any:
    place = _place(b, group_name, _nbytes(x) * group_size)
    if isinstance(place, NotLowerable):
        return place
    parts = [_nbytes(x)] * group_size
    routine = Collective(*place, "all_gather_into_tensor", BYTES, _nbytes(x), sum(parts), received=parts)
    return b.start(b.result(), _row_major(b, x), routine)


def lower_reduce_scatter(b: Builder, x: Value, reduce_op: str, group_size: int, group_name: str) -> Any:
    place = _reduced(x, reduce_op) or _place(b, group_name, x.numel)
    if isinstance(place, NotLowerable):
        return place
    result = b.result()
    op = as_reduce_op(reduce_op)
    routine = Collective(*place, "reduce_scatter_tensor", ELEMENTS[x.dtype], result.numel, _nbytes(x), op=op)
    return b.start(result, _row_major(b, x), routine)


def lower_broadcast(b: Builder, x: Value, src: int, group_name: str) -> Any:
    place = _place(b, group_name, _nbytes(x))
    if isinstance(place, NotLowerable):
        return place
    routine = Collective(*place, "broadcast", BYTES, _nbytes(x), _nbytes(x), root=src)
    return b.start(b.fill(b.result(), b.raw(x)), None, routine)


def lower_all_to_all(b: Builder, x: Value, outgoing: list[int], incoming: list[int], group_name: str) -> Any:
    place = _place(b, group_name, _nbytes(x))
    if isinstance(place, NotLowerable):
        return place
    row = math.prod(x.shape[1:]) * x.dtype.itemsize
    if not all(isinstance(n, int) for n in (*outgoing, *incoming)) or not row * sum(outgoing):
        return NotLowerable("parts of sizes that are not known, or of none")
    received, sent = [n * row for n in outgoing], [n * row for n in incoming]
    routine = Collective(*place, "all_to_all_single", BYTES, _nbytes(x), _nbytes(x), sent=sent, received=received)
    return b.start(b.result(), _row_major(b, x), routine)


def lower_wait(b: Builder, x: Value) -> Any:
    """What it waits for was started by native code: `codegen.stages` sees to that."""
    engine = loaded()
    if engine is None:
        return NotLowerable("nothing that native code started")
    return b.await_(x, engine.waiting)
