"""Where intermediate buffers lie: one arena, places shared by buffers whose lifetimes do not meet.

In: kernels and calls in order, and which buffers are the caller's. Out: an offset in bytes for each of ours, and the size of the
arena. Places are multiples of 64 bytes. The large come first: greedy, lowest gap first.

`in_parts` makes several arenas of it, each needed from some step on, when values that came in have been read for the last time and
their memory is free; results are allocated with the arena of the steps that write them.

`overwrites` finds buffers whose last reader writes another one element by element: the two can be one, so that a product is
made where its bias is added, in the memory of the result.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from typing import Any

from ..ops.lowering.loops import Buffer
from .schedule import Nest

ALIGNMENT = 64
LEAST, WORTH, SHARE, MOST_CUTS = (
    1 << 18,
    16 << 20,
    96,
    4,
)  # bytes for which one more arena is made: a share of all, within limits; how many
MOST_CANDIDATES, TURNS = 64, 10  # steps that are looked at


def lifetimes(order: list[tuple[set[Buffer], set[Buffer]]]) -> dict[Buffer, tuple[int, int]]:
    """(first write, last use) of each buffer, from what each step writes and reads."""
    spans: dict[Buffer, tuple[int, int]] = {}
    for n, (writes, reads) in enumerate(order):
        for b in sorted(writes | reads, key=lambda b: b.name):  # in one order, so that one graph is one text
            first, _ = spans.get(b, (n, n))
            spans[b] = (first, n)
    return spans


Order = list[tuple[set[Buffer], set[Buffer]]]  # what each step writes and reads


def plan(order: Order, outside: set[Buffer]) -> tuple[dict[Buffer, int], int]:
    """Offsets of the buffers that are not the caller's, and the size of the arena."""
    spans = {b: span for b, span in lifetimes(order).items() if b not in outside}
    places = Places()
    offsets = {b: places.take(b, *spans[b]) for b in _large_first(spans)}
    return offsets, places.size


@dataclass
class Parts:
    """Places in arenas that lie one after the other. The steps of part k begin at `cuts[k - 1]`; of each arena, `stays` says in which part
    it is needed first and last. What is in `dead[k - 1]` is not needed any more in part k, and results in `born[k]` are first written by it."""

    offsets: dict[Buffer, int]
    arenas: list[int]  # their sizes
    stays: list[tuple[int, int]]
    cuts: list[int]
    dead: list[set[Buffer]]
    born: list[set[Buffer]]

    @property
    def most(self) -> int:
        """The bytes that are needed at once, beyond those that came in."""
        moved = zip(accumulate(map(_total, self.born)), accumulate(map(_total, [set(), *self.dead])), strict=True)
        return max(self.arena_in(k) + made - gone for k, (made, gone) in enumerate(moved))

    def arena_in(self, part: int) -> int:
        """The bytes of the arenas that are there in a part."""
        return sum(size for size, (first, last) in zip(self.arenas, self.stays, strict=True) if first <= part <= last)


def placed(order: Order, given: set[Buffer], kept: set[Buffer], dropped: set[Buffer], passing: bool = False) -> Parts:
    """Places for all that is neither `given` nor `kept`, in as many arenas as are worth it: see `in_parts`; with `passing`, see `in_turns`."""
    found = in_parts(order, given, kept, dropped) if dropped else in_turns(order, given, kept) if passing else None
    if found is None:
        offsets, arena = plan(order, given | kept)
        found = Parts(offsets, [arena], [(0, 0)], [], [], [kept])
    return found


def in_turns(order: Order, given: set[Buffer], kept: set[Buffer]) -> Parts | None:
    """Several arenas that are let go of when nothing in them is needed any more, so that results take their place."""
    every = lifetimes(order)
    spans = {b: span for b, span in every.items() if b not in given and b not in kept}
    begins = {b: every[b][0] if b in every else 0 for b in kept}
    best = _turns(len(order), spans, begins, [])
    most = best.most
    ending = _until({b: last + 1 for b, (_, last) in spans.items()}, len(order))
    marks = [ending[-1] * k // (TURNS + 1) for k in range(1, TURNS + 1)]
    candidates = sorted({bisect_left(ending, mark) for mark in marks} - {0, len(order)})
    for count in range(1, MOST_CUTS):
        made = (_turns(len(order), spans, begins, list(cuts)) for cuts in combinations(candidates, count))
        best = min((best, *made), key=lambda parts: parts.most)
    if most - best.most < least_worth(most):
        return None
    part = lambda step: bisect_right(best.cuts, step)
    for k, stay in enumerate(best.stays):
        here = Places(sum(best.arenas[:k]))
        within = {b: (first, last) for b, (first, last) in spans.items() if (part(first), part(last)) == stay}
        best.offsets |= {b: here.take(b, *within[b]) for b in _large_first(within)}
        best.arenas[k] = here.size
    return best


def _turns(steps: int, spans: dict[Buffer, tuple[int, int]], begins: dict[Buffer, int], cuts: list[int]) -> Parts:
    """Arenas for what is needed first in one part and last in another, of the sizes that they have at least; nothing has a place yet."""
    rows: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for b, (first, last) in spans.items():
        rows.setdefault((bisect_right(cuts, first), bisect_right(cuts, last)), []).append((first, last, bytes_of(b)))
    stays = sorted(rows)
    arenas = [_in_use(steps, sorted(rows[stay]), 0, steps) for stay in stays]
    born: list[set[Buffer]] = [set() for _ in range(len(cuts) + 1)]
    for b, at in begins.items():
        born[bisect_right(cuts, at)].add(b)
    return Parts({}, arenas, stays, cuts, [set() for _ in cuts], born)


def in_parts(order: Order, given: set[Buffer], kept: set[Buffer], dropped: set[Buffer]) -> Parts | None:
    """Several arenas, where the most that is needed at once is then less by something that matters: `kept` are results, `dropped` values
    that came in (`given`) and that nobody needs after their last use. None where one arena will do."""
    every = lifetimes(order)
    spans = {b: span for b, span in every.items() if b not in given and b not in kept}
    ends = {b: every[b][1] + 1 for b in dropped if b in every}
    begins = {b: every[b][0] if b in every else 0 for b in kept}
    cuts = best_cuts(len(order), spans, ends, begins)
    if not cuts:
        return None
    arenas: list[Places] = []
    offsets: dict[Buffer, int] = {}
    for begin, end in pairwise([0, *cuts, len(order)]):
        arenas.append(Places(sum(a.size for a in arenas)))
        for b in _large_first({b: span for b, span in spans.items() if begin <= span[0] < end}):
            fits = (a.take(b, *spans[b], most=a.size) for a in arenas[:-1])
            found = next((place for place in fits if place is not None), None)
            offsets[b] = arenas[-1].take(b, *spans[b]) if found is None else found
    dead = [{b for b, last in ends.items() if begin < last <= end} for begin, end in pairwise([0, *cuts])]
    born = [{b for b, at in begins.items() if begin <= at < end} for begin, end in pairwise([0, *cuts, len(order)])]
    return Parts(offsets, [a.size for a in arenas], [(k, len(cuts)) for k in range(len(arenas))], cuts, dead, born)


def best_cuts(
    steps: int, spans: dict[Buffer, tuple[int, int]], ends: dict[Buffer, int], begins: dict[Buffer, int]
) -> list[int]:
    """The steps at which to cut, so that least is needed at once; no more of them than is worth it."""
    freed, made = _until(ends, steps), _until(begins, steps)
    candidates = _few(sorted(end for end in set(ends.values()) if end < steps), freed)
    rows = sorted((first, last, bytes_of(b)) for b, (first, last) in spans.items())
    in_use = functools.cache(functools.partial(_in_use, steps, rows))
    most = functools.partial(_most, steps, in_use, freed, made)
    worth = least_worth(freed[steps] + most(()))
    if not candidates or most(()) - in_use(0, candidates[0]) - made[candidates[0] - 1] < worth:
        return []  # what begins before anything has ended is needed in any case
    best: tuple[int, ...] = ()
    for count in range(1, MOST_CUTS + 1):
        found = min(_more_cuts(best, candidates, count), key=most, default=())
        if most(best) - most(found) >= worth:
            best = found
    return list(best)


def _more_cuts(cuts: tuple[int, ...], candidates: list[int], count: int) -> Iterable[tuple[int, ...]]:
    """So many cuts: all choices of few, and of many those that have one or two more than what is best so far."""
    if count <= 2:
        return combinations(candidates, count)
    missing = (
        combinations([c for c in candidates if c not in cuts], count - len(cuts)) if count - len(cuts) <= 2 else ()
    )
    return (tuple(sorted((*cuts, *more))) for more in missing)


def least_worth(total: int) -> int:
    """How many bytes, of a total, are worth an arena of their own, or to be written in place."""
    return max(LEAST, min(WORTH, total // SHARE))


def _until(times: dict[Buffer, int], steps: int) -> list[int]:
    """How many bytes belong to buffers whose time is each step, or one before."""
    result = [0] * (steps + 1)
    for b, at in times.items():
        result[at] += bytes_of(b)
    return list(accumulate(result))


def _few(candidates: list[int], freed: list[int]) -> list[int]:
    """Of steps at which something ends, those between which much does."""
    share, last, result = freed[-1] // MOST_CANDIDATES, 0, []
    for cut in candidates:
        if freed[cut] - last >= share:
            result.append(cut)
            last = freed[cut]
    return result


def _most(steps: int, in_use: Callable[[int, int], int], freed: list[int], made: list[int], cuts: Sequence[int]) -> int:
    """How many bytes are needed at once beyond those that come in, where parts begin at some steps."""
    highest = total = 0
    for begin, end in pairwise([0, *cuts, steps]):
        total += in_use(begin, end)
        highest = max(highest, total + made[end - 1] - freed[begin])
    return highest


def _in_use(steps: int, rows: list[tuple[int, int, int]], begin: int, end: int) -> int:
    """How many bytes of what is first written by some steps are in use at once; rows are (first step, last, bytes), in order."""
    changes = [0] * (steps + 1)
    for first, last, size in rows[bisect_left(rows, (begin,)) : bisect_left(rows, (end,))]:
        changes[first] += size
        changes[last + 1] -= size
    return max(accumulate(changes))


def _total(buffers: Iterable[Buffer]) -> int:
    return sum(map(bytes_of, buffers))


class Places:
    """Memory of as many bytes as it takes, from `base` on: each buffer is somewhere while it is used, no two at once in one place."""

    def __init__(self, base: int = 0) -> None:
        self.base = base
        self.taken: list[tuple[int, int, int, int]] = []  # (start, end, first, last)
        self.size = 0

    def take(self, b: Buffer, first: int, last: int, most: int | None = None) -> Any:
        """The lowest place for a buffer; None where it would end after `most`."""
        start, size = 0, bytes_of(b)
        for low, high, _, _ in sorted(p for p in self.taken if p[2] <= last and first <= p[3]):
            if start + size <= low:
                break
            start = max(start, high)
        if most is not None and start + size > most:
            return None
        self.taken.append((start, start + size, first, last))
        self.size = max(self.size, start + size)
        return self.base + start


def _large_first(spans: dict[Buffer, tuple[int, int]]) -> list[Buffer]:
    return sorted(spans, key=lambda b: (-bytes_of(b), spans[b]))


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
            alike = old.dtype is target.dtype and old.size == target.size and id(s) not in nest.rows
            if alike and same_elements(nest, old, target, s):
                result[old] = target
                break
    return result


def same_elements(nest: Nest, old: Buffer, target: Buffer, writer) -> bool:
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
    return True


def bytes_of(b: Buffer) -> int:
    return -(-max(b.size, 1) * b.dtype.itemsize // ALIGNMENT) * ALIGNMENT
