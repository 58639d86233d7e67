"""Which values to save so that backward reads the fewest bytes: a minimum cut.

In: `Halves` of a joint graph. Out: the set of nodes whose values are to be saved.

The network: every value that backward may need is a pipe as wide as its bytes, from where it is computed to where it is
used. Water enters at what must not be computed twice (`Bans`) and leaves where backward needs a value. Cutting a pipe is
saving its value; the cheapest set of cuts that lets no water through is the best choice. Where two cuts cost the same,
the one nearer to backward is taken: less is computed again.
"""

from __future__ import annotations

import heapq
from typing import Any

from ..graph import Node
from .config import config
from .costs import Kind, bytes_of, fuses_into, is_compute_bound, is_view, kind_of
from .flow import minimum_cut
from .halves import Halves, ancestors, is_number, is_sequence, nodes_in
from .policies import must_recompute, must_save

FAR = 1 << 30  # the distance to backward of a value that backward never reaches
LONG_CHAIN = 100  # nodes a fusible chain may span before its next value is kept
SHRINKS = 4  # a value this many times smaller than what it is computed from is worth keeping


def choose_saved(halves: Halves, free: set[Node]) -> set[Node]:
    """The nodes to save. Those in `free` (parameters, which live on anyway) cost next to nothing."""
    return Network(halves, free).cut()


class Network:
    """The flow problem of a joint graph."""

    def __init__(self, halves: Halves, free: set[Node]):
        self.halves, self.free = halves, free
        self.live = ancestors(halves.bwd_roots)
        reach = self.live - halves.dependent
        self.nodes = [n for n in halves.nodes if n in reach and n._op != "get_attr"]
        self.distance = distances(halves)
        self.banned = Bans(halves).find()
        self.number = {n: i for i, n in enumerate(self.nodes)}

    def cut(self) -> set[Node]:
        if not self.nodes:
            return set()
        widths = [self.width(n) for n in self.nodes]
        return {self.nodes[i] for i in minimum_cut(*self.edges(widths))}

    def width(self, node: Node) -> int | None:
        """What saving a value costs, at least 1; None where it cannot be saved."""
        if is_sequence(node) or is_view(node) and not must_save(node):
            return None  # a view is saved as what it is a view of: that is what stays in memory
        if node in self.free or is_number(node):
            return 1
        size = bytes_of(node) * 1.1 ** max(1, min(self.distance[node], 100))
        stored = node._op == "placeholder" or not all(fuses_into(node, user) for user in node.users)
        return max(1, round(size if stored else 2 * size))  # else it would be written to memory only to be saved

    def edges(self, widths: list[int | None]) -> tuple[list, list, list, int]:
        """The network as lists of beginnings, ends and widths. Node i is the pipe from 2i + 2 to 2i + 3."""
        infinite = sum(w for w in widths if w is not None) + 1
        begins, ends, caps = [], [], []
        number, needs = self.number, self.live & self.halves.dependent
        outputs = set(nodes_in(self.halves.bwd_outputs))
        for i, (node, width) in enumerate(zip(self.nodes, widths, strict=True)):
            enter, leave = 2 * i + 2, 2 * i + 3
            targets = [2 * number[u] + 2 for u in node.users if u in number]
            if node in outputs or not needs.isdisjoint(node.users):
                targets.append(1)
            begins += [enter] + [leave] * len(targets)
            ends += [leave, *targets]
            caps += [infinite if width is None else width] + [infinite] * len(targets)
            for condition, begin, end in ((node in self.banned, 0, enter), (self.must_run(node), enter, 1)):
                if condition:
                    begins.append(begin)
                    ends.append(end)
                    caps.append(infinite)
        return begins, ends, caps, 2 * len(widths) + 2

    def must_run(self, node: Node) -> bool:
        """Whether backward runs the node itself, so that saving its value is no choice."""
        return node._op == "call_function" and node in self.halves.forward and must_recompute(node)


def distances(halves: Halves) -> dict[Node, int]:
    """How many steps each value of the forward is from backward; 0 for what is not the forward's."""
    found: dict[Node, int] = {}
    for node in reversed(halves.nodes):
        if node not in halves.forward:
            found[node] = 0
        else:
            found[node] = min((found[u] + 1 for u in node.users), default=FAR)
    return found


class Bans:
    """What must not be computed again in backward, although it could be."""

    def __init__(self, halves: Halves):
        self.halves = halves
        self.forward = [n for n in halves.nodes if n in halves.forward]
        self.order = {n: i for i, n in enumerate(self.forward)}
        self.banned: set[Node] = set()
        aggressive = config.aggressive_recomputation
        self.only_cheap = config.ban_recompute_not_in_allowlist and not aggressive
        self.materialized = config.ban_recompute_materialized_backward and not aggressive
        self.far_apart = config.ban_recompute_used_far_apart and not aggressive
        self.long_chains = config.ban_recompute_long_fusible_chains and not aggressive

    def find(self) -> set[Node]:
        for node in self.forward:
            if node._op == "placeholder" or must_save(node) or self.expensive(node):
                self.ban(node)
        if self.far_apart:
            self.ban_far_uses()
        if self.long_chains:
            self.ban_long_chains()
        return self.banned

    def ban(self, node: Node) -> None:
        if node._op == "placeholder" or must_save(node) or not (is_view(node) or must_recompute(node)):
            self.banned.add(node)

    def expensive(self, node: Node) -> bool:
        """Whether computing a value again costs more than a pass over memory that would be made anyway."""
        if node._op != "call_function":
            return node._op not in ("get_attr", "output")
        kind = kind_of(node._target)
        if kind is Kind.VIEW or is_part(node) or is_number(node):
            return False
        if kind is Kind.RANDOM or kind is Kind.HEAVY and (self.only_cheap or is_compute_bound(node._target)):
            return True
        if self.materialized and self.stored_for_backward(node):
            return True
        return config.ban_recompute_reductions and SHRINKS * bytes_of(node) < sum(map(bytes_of, node._input_nodes))

    def stored_for_backward(self, node: Node) -> bool:
        """Whether backward needs the value in memory: for a contraction, say, be it through views."""
        waiting, forward = [node], self.halves.forward
        while waiting:
            at = waiting.pop()
            for user in at.users:
                if user not in forward and not fuses_into(at, user):
                    return True
                if is_view(user):
                    waiting.append(user)
        return False

    def ban_far_uses(self) -> None:
        """A value used at once and again after something that does not fuse: the later user is not computed again, or
        the value would have to be kept, or computed, for both."""
        for node in self.forward:
            users = [u for u in node.users if u in self.order and u._op != "output"]
            if len(users) > 1:
                limit = self.first_unfusible(users)
                for user in users:
                    if self.order[user] > limit and user not in self.banned and fuses_into(node, user):
                        self.ban(user)

    def first_unfusible(self, users: list[Node]) -> int:
        """The place of the first node after `users`, and up to the last of them, that is not in their loop."""
        last = max(self.order[u] for u in users)
        waiting = [(self.order[u], True) for u in users]
        heapq.heapify(waiting)
        seen: set[int] = set()
        while waiting:
            at, fused = heapq.heappop(waiting)
            if not fused:
                return at
            if at in seen:
                continue
            seen.add(at)
            node = self.forward[at]
            for user in node.users:
                place = self.order.get(user, FAR)
                if place <= last:
                    heapq.heappush(waiting, (place, fuses_into(node, user)))
        return last

    def ban_long_chains(self) -> None:
        """Keep a value now and then in a long chain of cheap nodes, or the whole chain would be computed again."""
        first: dict[Node, int] = {}
        for at, node in enumerate(self.forward):
            before = [
                first[n] for n in node._input_nodes if n in first and n not in self.banned and fuses_into(n, node)
            ]
            first[node] = min(before, default=at)
            if at - first[node] > LONG_CHAIN:
                self.ban(node)
                if node in self.banned:
                    first[node] = at


def is_part(node: Node) -> bool:
    """Whether a node takes one value out of several."""
    source: Any = node._args[0] if node._args else None
    return isinstance(source, Node) and is_sequence(source)
