"""Where intermediate buffers lie: one arena, places shared by buffers whose lifetimes do not meet.

In: kernels and calls in order, and which buffers are the caller's. Out: an offset in bytes for each of ours, and the size of the
arena. Places are multiples of 64 bytes. The large come first: greedy, lowest gap first.

`overwrites` finds buffers whose last reader writes another one element by element: the two can be one, so that a product is
made where its bias is added, in the memory of the result.
"""

from __future__ import annotations

from ..ops.lowering.loops import Buffer
from .schedule import Nest

ALIGNMENT = 64


def lifetimes(order: list[tuple[set[Buffer], set[Buffer]]]) -> dict[Buffer, tuple[int, int]]:
    """(first write, last use) of each buffer, from what each step writes and reads."""
    spans: dict[Buffer, tuple[int, int]] = {}
    for n, (writes, reads) in enumerate(order):
        for b in sorted(writes | reads, key=lambda b: b.name):  # in one order, so that one graph is one text
            first, _ = spans.get(b, (n, n))
            spans[b] = (first, n)
    return spans


def plan(order: list[tuple[set[Buffer], set[Buffer]]], outside: set[Buffer]) -> tuple[dict[Buffer, int], int]:
    """Offsets of the buffers that are not the caller's, and the size of the arena."""
    spans = {b: span for b, span in lifetimes(order).items() if b not in outside}
    placed: list[tuple[int, int, int, int]] = []  # (start, end, first, last)
    offsets: dict[Buffer, int] = {}
    total = 0
    for b in sorted(spans, key=lambda b: (-bytes_of(b), spans[b])):
        first, last = spans[b]
        start, size = 0, bytes_of(b)
        for low, high, _, _ in sorted(p for p in placed if p[2] <= last and first <= p[3]):
            if start + size <= low:
                break
            start = max(start, high)
        offsets[b] = start
        placed.append((start, start + size, first, last))
        total = max(total, start + size)
    return offsets, total


def in_use(order: list[tuple[set[Buffer], set[Buffer]]], given: set[Buffer], kept: set[Buffer]) -> list[int]:
    """The bytes that hold something while each step runs: of the arena, and of the results written so far (`kept`)."""
    spans = {b: span for b, span in lifetimes(order).items() if b not in given}
    return [
        sum(bytes_of(b) for b, (first, last) in spans.items() if first <= n and (n <= last or b in kept))
        for n in range(len(order))
    ]


def overwrites(nest: Nest, dying: set[Buffer], free: set[Buffer]) -> dict[Buffer, Buffer]:
    """{buffer that is read for the last time: buffer that can take its memory}. `free`: those that may be chosen for that."""
    result: dict[Buffer, Buffer] = {}
    for s in nest.steps:
        target = s.buffer
        if target not in nest.stored or target not in free or s.reduce or s.scatter or target in result.values():
            continue
        for old in sorted(dying - set(result), key=lambda b: b.name):
            if old.dtype is target.dtype and old.size == target.size and _same_elements(nest, old, target, s):
                result[old] = target
                break
    return result


def _same_elements(nest: Nest, old: Buffer, target: Buffer, writer) -> bool:
    """Whether each element of one buffer is read where, and no later than when, the other is written."""
    written = False
    late: set[Buffer] = set()  # what may be computed again in a later phase, and would read the old buffer then
    for s in nest.steps:
        reads = [e for e in s.loads() if e.args[0] is old]
        if any(e.args[1] != writer.offset or e.args[2] != writer.strides or e.args[3] for e in reads):
            return False
        if nest.home[s.buffer] > nest.home[target] and s.reads() & late or written and (reads or s.reads() & late):
            return False
        if reads and s.buffer not in nest.stored:
            late.add(s.buffer)
        written = written or s is writer
    return id(writer) not in nest.rows


def bytes_of(b: Buffer) -> int:
    return -(-max(b.size, 1) * b.dtype.itemsize // ALIGNMENT) * ALIGNMENT
