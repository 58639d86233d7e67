"""Which buffers lie in the memory of others: of a saved value that is nobody's any more, of a result that nothing has been written to yet,
of a buffer that is read for the last time.

In: what each kernel writes and reads, in order (`Flow`), and whose the buffers are. Out: {buffer: the one whose memory it has}, and the flow
in which these are one. An arena that is planned for that flow needs less.

What always holds: a buffer whose memory another one takes is read for the last time before the other one is written, or by the kernel that
writes it, and there element by element. Memory of values that came in is taken only where the caller says that it may be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..ops.lowering.loops import Buffer, Product
from .landing import written_over
from .memory import Order, bytes_of, in_use, least_worth, lifetimes
from .schedule import Nest

NEAR = 8  # steps for which a buffer may lie where a value was that could have gone


@dataclass
class Owners:
    """Whose buffers are: `fed` came in, and of these `own` may be written over after their last use; `kept` come out. `over`: those that
    are written over values that came in. `parted`: values that came in are let go of one by one, and results come so (`memory.in_parts`); else
    results are there from the beginning."""

    fed: set[Buffer]
    own: set[Buffer]
    kept: set[Buffer]
    over: dict[Buffer, Buffer]
    parted: bool

    def is_ours(self, b: Buffer) -> bool:
        """Whether a buffer has a place in an arena."""
        return b not in self.fed and b not in self.kept and b not in self.over

    def may_be_taken(self, b: Buffer) -> bool:
        return b in self.own or self.is_ours(b)


def products_swapped(items: list, flow: Order, lasting: set[Buffer]) -> list[int]:
    """Where two products that do not need each other are better swapped: the one after which more memory is free comes first. `lasting` is
    what is there before or after a run: nothing is freed of it, and of what the products have in common."""
    spans, found = lifetimes(flow), []
    for n in range(len(items) - 1):
        if not isinstance(items[n], Product) or not isinstance(items[n + 1], Product) or n - 1 in found:
            continue
        if (flow[n][0] & (flow[n + 1][0] | flow[n + 1][1])) or flow[n + 1][0] & flow[n][1]:
            continue
        gains = []
        for k in (n, n + 1):
            ending = {b for b in flow[k][1] if spans[b][1] <= n + 1} - lasting - (flow[n][1] & flow[n + 1][1])
            gains.append(sum(map(bytes_of, ending)) - sum(map(bytes_of, flow[k][0] - lasting)))
        if gains[1] > gains[0]:
            found.append(n)
    return found


def sharings(flow: Order, nests: dict[int, Nest], owners: Owners) -> list[dict[Buffer, Buffer]]:
    """Ways to share: of each, {buffer: the one in whose memory it lies}, for all that lie in another's. Where values that came in may be
    written over, they may also be let go of as soon as they have been read: some ways have guests in their memory, for longer or not so long."""
    memory = _in_place(flow, nests, owners)
    flow = renamed(flow, memory)
    reaches = (0, NEAR, len(flow)) if owners.parted else (len(flow),)
    found = []
    for guests in (_guests(flow, owners, reach) for reach in reaches):
        found.append({b: guests.get(host, host) for b, host in memory.items()} | guests)
    return found


def renamed(flow: Order, memory: dict[Buffer, Buffer]) -> Order:
    """The flow where buffers of one memory are one."""
    if not memory:
        return flow
    return [({memory.get(b, b) for b in writes}, {memory.get(b, b) for b in reads}) for writes, reads in flow]


def pointing_alike(buffers: Iterable[Buffer], memory: dict[Buffer, Buffer]) -> frozenset[Buffer]:
    """Those of a kernel's buffers that share their memory with another one of it."""
    on: dict[Buffer, list[Buffer]] = {}
    for b in buffers:
        on.setdefault(memory.get(b, b), []).append(b)
    return frozenset(b for same in on.values() if len(same) > 1 for b in same)


def _in_place(flow: Order, nests: dict[int, Nest], owners: Owners) -> dict[Buffer, Buffer]:
    """Large buffers that are written element by element where another one is read for the last time."""
    spans = lifetimes(flow)
    most = max(in_use(flow, owners.fed - owners.own, owners.kept), default=0)
    least = least_worth(most // 2)
    memory: dict[Buffer, Buffer] = {}
    for n, nest in sorted(nests.items()):
        ending = [b for b in flow[n][1] if spans[b][1] == n and bytes_of(b) >= least and owners.may_be_taken(b)]
        ending.sort(key=lambda b: (b not in owners.own, b.name))
        for new in sorted(nest.stored, key=lambda b: b.name):
            if bytes_of(new) < least or new in owners.over or new in owners.fed or spans[new][0] != n:
                continue
            old = next((b for b in ending if _may_take(new, b, memory, owners) and written_over(nest, b, new)), None)
            if old is not None:
                ending.remove(old)
                memory[new] = memory.get(old, old)
    return _with_results(memory, owners)


def _may_take(new: Buffer, old: Buffer, memory: dict[Buffer, Buffer], owners: Owners) -> bool:
    """Whether a buffer's memory may be another's; a result's is its own."""
    if old.dtype is not new.dtype or old.size != new.size:
        return False
    return new not in owners.kept or not owners.parted and owners.is_ours(memory.get(old, old))


def _with_results(memory: dict[Buffer, Buffer], owners: Owners) -> dict[Buffer, Buffer]:
    """The same, where a memory that a result has is named by the result."""
    names = {host: new for new, host in memory.items() if new in owners.kept}
    result = {b: names.get(host, host) for b, host in memory.items()}
    return {b: host for b, host in (result | names).items() if b is not host}


def _guests(flow: Order, owners: Owners, reach: int) -> dict[Buffer, Buffer]:
    """Buffers that live before a result is written, in the memory of the result; or after a value that came in, in its memory, where it has
    just their size, and they are gone so many steps after it."""
    spans = lifetimes(flow)
    results = (
        set()
        if owners.parted
        else {b for b in spans if b in owners.kept and b not in owners.over and b not in owners.fed}
    )
    rooms = {b: [spans[b]] for b in (*results, *(b for b in owners.own if b in spans))}
    ours = sorted((b for b in spans if owners.is_ours(b)), key=lambda b: (-bytes_of(b), spans[b]))
    hosts = sorted(rooms, key=lambda b: (bytes_of(b), -spans[b][1], b.name))
    found: dict[Buffer, Buffer] = {}

    def has_room(host: Buffer, b: Buffer) -> bool:
        (first, last), (begin, end) = spans[b], spans[host]
        if host in results:
            fits = exact_bytes(b) <= exact_bytes(host) and last < begin
        else:
            fits = exact_bytes(b) == exact_bytes(host) and end < first and last <= end + reach
        return fits and all(last < begin or end < first for begin, end in rooms[host])

    for b in ours:
        host = next((host for host in hosts if has_room(host, b)), None)
        if host is not None:
            rooms[host].append(spans[b])
            found[b] = host
    return found


def exact_bytes(b: Buffer) -> int:
    return b.size * b.dtype.itemsize
