"""New values of inputs, put where the old ones are: a training step writes its parameters in place.

In: which results of a graph are new values of which inputs (`landings`, read off what the joint graph says of itself). Out: an order of
steps in which each is computed as early as it can be (`sooner`), and those results for which that is sound (`landed`).

Where a graph has several stages, the last one alone writes over inputs (`stages`).

What always holds: an old value has been read for the last time when it is written over, by this kernel at the latest and there element by
element; and nothing is written over before it is sure that the call will not be made again, operator by operator: each index that may be
out of bounds has been looked at before (`bounds`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..graph.module import GraphModule
from ..graph.node import Node
from ..ops.lowering.loops import Awaited, Buffer, Call, Compute, Started, Value
from .bounds import Looked
from .memory import lifetimes, same_elements
from .schedule import Nest

WRITTEN = "written"  # in a module's meta: {place of a result: place of the argument whose new value it is}


def landings(module: GraphModule) -> dict[Node, Node]:
    """{node of a new value: the placeholder that it replaces}: values that come out once, and for nothing else."""
    places: dict[int, int] = module.meta.get(WRITTEN) or {}
    results = module.graph.output_node().args[0]
    if not places or not isinstance(results, (tuple, list)):
        return {}
    given = [n for n in module.graph.nodes if n.op == "placeholder"]
    times = Counter(n for n in results if isinstance(n, Node))
    found = {results[place]: given[i] for place, i in places.items() if times[results[place]] == 1}
    return {new: old for new, old in found.items() if new.op == "call_function" and not times[old]}


def buffers_of(landing: dict[Node, Node], values: dict, results: list[Node], given: list[Node]) -> dict[Buffer, Buffer]:
    """The same of buffers: {of a new value: of the input}, where both lie alike and neither is the memory of anything else that comes out."""
    times = Counter(values[n].buffer for n in results)
    found: dict[Buffer, Buffer] = {}
    for new in results:
        place = landing.get(new)
        old = values[place] if place in given else None
        if isinstance(old, Value) and times[values[new].buffer] == 1 and not times[old.buffer]:
            if _covers(values[new], old) and old.buffer not in found.values():
                found[values[new].buffer] = old.buffer
    return found


def _covers(new: Value, old: Value) -> bool:
    """Whether two values are all of their memories, laid out alike."""
    alike = (new.shape, new.strides, new.offset, new.dtype) == (old.shape, old.strides, 0, old.dtype)
    return alike and new.numel == new.buffer.size == old.buffer.size


# ---- the order of steps
def sooner(steps: list, landing: dict[Buffer, Buffer]) -> list:
    """Steps in an order in which new values are computed as soon as what they are made of is there and the old ones have been read: so
    that gradients live no longer than they must."""
    if not landing or any(isinstance(s, (Started, Awaited)) for s in steps):
        return steps
    waiting = _Waiting(steps, landing)
    result: list = []
    for step in (*waiting.ready, *steps):
        queue = [step]
        while queue:
            if waiting.comes(step := queue.pop(0)):
                result.append(step)
                queue += waiting.freed_by(step)
    return result


class _Waiting:
    """Which of the steps that may come sooner wait for which steps."""

    def __init__(self, steps: list, landing: dict[Buffer, Buffer]):
        moving = _moving(steps, landing)
        readers: dict[Buffer, list] = {}
        for s in steps:
            for b in s.reads():
                readers.setdefault(b, []).append(s)
        self.done: set[int] = set()
        self.left: Counter[int] = Counter()
        self.then: dict[int, list] = {}  # by step, those that wait for it
        writer: dict[Buffer, object] = {}
        checking: list = []
        looked = Looked()
        for s in steps:
            if id(s) in moving:
                before = [writer[b] for b in s.reads() if b in writer]
                if s.buffer in landing:
                    before += [r for r in readers.get(landing[s.buffer], ()) if r is not s] + checking
                for other in {id(b): b for b in before}.values():
                    self.then.setdefault(id(other), []).append(s)
                    self.left[id(s)] += 1
            elif looked.tells(s):
                checking.append(s)
            writer[s.buffer] = s
        self.ready = [s for s in steps if id(s) in moving and not self.left[id(s)]]

    def comes(self, step: object) -> bool:
        """Whether a step comes now: it has not come before."""
        before = len(self.done)
        self.done.add(id(step))
        return len(self.done) > before

    def freed_by(self, step: object) -> list:
        """The steps that need not wait any longer once a step has come."""
        for s in self.then.get(id(step), ()):
            self.left[id(s)] -= 1
        return [s for s in self.then.get(id(step), ()) if not self.left[id(s)]]


def _moving(steps: list, landing: dict[Buffer, Buffer]) -> set[int]:
    """The steps that write new values, and those that compute the numbers that these alone need."""
    users = Counter(b for s in steps for b in s.reads())
    found: set[int] = set()
    inside: Counter[Buffer] = Counter()
    for s in reversed(steps):
        if not isinstance(s, Compute) or len(s.buffer.writers) > 1:
            continue
        number = s.buffer.size == 1 and users[s.buffer] and users[s.buffer] == inside[s.buffer]
        if s.buffer in landing or number:
            found.add(id(s))
            inside.update(s.reads())
    return found


# ---- what is sound
@dataclass
class Landed:
    """The results that lie where inputs are, and the first kernel or call that writes one: None where there is none."""

    places: dict[Buffer, Buffer]
    first: int | None


def landed(
    landing: dict[Buffer, Buffer], order: list, flow: list, nests: dict[int, Nest], grouped: bool = False
) -> Landed:
    """What always holds (see the module's docstring) decides which new values are written over old ones. `grouped`: what is computed once per
    row is computed by each thread of a group, and written by one of them, while others may not have read the old value yet."""
    if not landing:
        return Landed({}, None)
    spans = lifetimes(flow)
    checked = _last_check(order)
    found = {new: old for new, old in landing.items() if new in spans and _is_sound(new, old, spans, checked, nests)}
    if grouped:
        found = {new: old for new, old in found.items() if not _is_awaited(new, old, nests.get(spans[new][0]))}
    return Landed(found, min((spans[new][0] for new in found), default=None))


def _last_check(order: list) -> int:
    """The number of the last kernel that looks at an index that none has looked at before."""
    looked = Looked()
    last = -1
    for n, item in enumerate(order):
        for s in (item,) if isinstance(item, Call) else item.steps:
            last = n if looked.tells(s) else last
        if isinstance(item, (Started, Awaited)):
            last = len(order)
    return last


def _is_sound(new: Buffer, old: Buffer, spans: dict, checked: int, nests: dict[int, Nest]) -> bool:
    first = spans[new][0]
    last = spans[old][1] if old in spans else -1
    if first <= checked or last > first:
        return False
    return last < first or first in nests and _is_in_place(nests[first], old, new)


def _is_in_place(nest: Nest, old: Buffer, new: Buffer) -> bool:
    """Whether a nest writes each element of a buffer once, after it has read that of an old one."""
    writers = [s for s in nest.steps if s.buffer is new]
    if not len(writers) == 1 == len(new.writers) or writers[0].reduce or writers[0].scatter:
        return False
    return _reads_before(nest, old, new, writers[0])


def written_over(nest: Nest, old: Buffer, new: Buffer) -> bool:
    """Whether a nest whose rows are computed by groups of threads may write a buffer over one that it reads."""
    return _is_in_place(nest, old, new) and not _is_awaited(new, old, nest)


def _is_awaited(new: Buffer, old: Buffer, nest: Nest | None) -> bool:
    """Whether a thread may still read an old value when another one writes over it: where elements of a row depend on what is made of it once
    per row, and in loops of an order of their own."""
    if nest is None or not any(old in s.reads() for s in nest.steps):
        return False
    if any(s.alone for s in nest.steps):
        return True
    made = {old} if any(s.buffer is new and id(s) in nest.rows for s in nest.steps) else set()
    for s in nest.steps:
        if s.reads() & made:
            if id(s) not in nest.rows:
                return True
            made.add(s.buffer)
    return False


def _reads_before(nest: Nest, old: Buffer, new: Buffer, writer: Compute) -> bool:
    """Whether each element of an old value is read by a nest where, and no later than when, the new one is written."""
    if id(writer) in nest.rows and any(old in s.reads() and id(s) not in nest.rows for s in nest.steps):
        return False
    return new in nest.stored and same_elements(nest, old, new, writer)
