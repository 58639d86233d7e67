"""Iterators of built-in kinds that were made before a graph, and that the program reads on by `next`.

While a program is captured the iterator stays where it is: an `Advanced` beside it counts on, reads what the iterator goes
over (tested when the graph is entered, with the place where the iterator stands), and notes that each run of the graph
advances the iterator itself.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from .journal import Effect

if TYPE_CHECKING:
    from .tracing import Tracing

OVER_ITEMS = (type(iter([])), type(iter(())), type(iter({})), type(iter({}.values())), type(iter({}.items())))
OVER_RANGES = type(iter(range(0)))
KINDS = (*OVER_ITEMS, OVER_RANGES, itertools.count, enumerate, zip)
STATE = "state"


def part(iterator, which):
    """What pickle would keep of an iterator: one of the arguments that it is made of, or how far it is."""
    parts = iterator.__reduce__()
    if which == STATE:
        return parts[2] if len(parts) > 2 else None
    return parts[1][which]


def can_advance(iterator) -> bool:
    """Whether an iterator is one of those, all the way down."""
    if type(iterator) not in KINDS:
        return False
    inner = iterator.__reduce__()[1]
    if type(iterator) is zip:
        return all(map(can_advance, inner)) and part(iterator, STATE) is None
    return type(iterator) is not enumerate or can_advance(inner[0])


class Advanced:
    """How far the program has come with an iterator from outside."""

    def __init__(self, world: Tracing, iterator):
        self.world, self.kind = world, type(iterator)
        known, source = world.outside, world.outside.source_of(iterator)
        place, inner = part(iterator, STATE), iterator.__reduce__()[1]
        known.conditions.equals(known.sources.item(source, STATE, part), place)
        known.conditions.has_length(source, len(inner), parts_of)
        self.args = [known.enter(v, known.sources.item(source, i, part)) for i, v in enumerate(inner)]
        self.place = place or 0

    def next(self):
        """The next value; raises StopIteration at the end. The iterator itself is not touched."""
        if self.kind is zip:
            return tuple([self.world.advanced(one).next() for one in self.args])
        if self.kind is enumerate:
            value = self.args[1] + self.place, self.world.advanced(self.args[0]).next()
        elif self.kind is itertools.count:
            value = self.args[0] + self.place * (self.args[1] if len(self.args) > 1 else 1)
        elif self.kind is OVER_RANGES:
            value = self._of_range(self.args[0])
        else:
            value = self._item(self.args[0])
        self.place += 1
        return value

    def _of_range(self, values: range) -> int:
        if self.place >= len(values):
            raise StopIteration
        return values[self.place]

    def _item(self, container):
        if self.place >= self.world.length(container):
            raise StopIteration
        return self.world.load_item(container, self.place)


def parts_of(iterator) -> int:
    """Of how many arguments an iterator is made."""
    return len(iterator.__reduce__()[1])


def advance(world: Tracing, iterator):
    """`next(iterator)` of one from outside; each run of the graph does it too."""
    try:
        return world.advanced(iterator).next()
    finally:
        world.journal.log.append(Effect("later", next, (iterator, None), {}))
