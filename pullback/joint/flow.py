"""Minimum cuts of networks of pipes.

In: the pipes of a network, as lists of their beginnings, ends and widths (whole numbers). Out: which of them to cut. Of all the cheapest
cuts it is the one nearest to the end, so it does not depend on the order in which water was sent. The method is Dinic's: levels by
distance from the end, then water along paths that go down one level at a time, until none reaches the end.
"""

from __future__ import annotations

BEGIN, END = 0, 1  # the vertices between which the network is cut


def minimum_cut(begins: list[int], ends: list[int], widths: list[int], size: int) -> list[int]:
    """The pipes to cut between vertex 0 and vertex 1, as near to 1 as can be; pipe i leads from 2i + 2 to 2i + 3."""
    network = Flow(begins, ends, widths, size)
    levels = network.fill()
    if network.flow >= max(widths):
        raise RuntimeError(
            "AOT Autograd failed to partition the joint forward-backward graph: backward needs a value that can neither "
            "be saved (it is a sequence) nor computed again"
        )
    return [i for i in range(size // 2 - 1) if levels[2 * i + 3] and not levels[2 * i + 2]]


class Flow:
    """A network and the water in it. Pipe k is arcs 2k, along it, and 2k + 1, back: what went along it may be taken back."""

    def __init__(self, begins: list[int], ends: list[int], widths: list[int], size: int):
        self.size = size
        self.flow = 0
        self.arcs: list[list[int]] = [[] for _ in range(size)]  # that leave each vertex
        self.heads: list[int] = []  # where each arc leads
        self.room: list[int] = []  # what each arc can still take
        for k, (begin, end, width) in enumerate(zip(begins, ends, widths, strict=True)):
            self.arcs[begin].append(2 * k)
            self.arcs[end].append(2 * k + 1)
            self.heads += (end, begin)
            self.room += (width, 0)

    def fill(self) -> list[int]:
        """Send as much water as can be; the levels that are left: 0 where no water could go on to the end."""
        while True:
            levels = self.levels()
            if not levels[BEGIN]:
                return levels
            self.send(levels)

    def levels(self) -> list[int]:
        """The steps from each vertex to the end along arcs that have room, plus one; 0 where there is no way."""
        found = [0] * self.size
        found[END] = 1
        reached = [END]
        for vertex in reached:  # which grows
            further = found[vertex] + 1
            for arc in self.arcs[vertex]:
                before = self.heads[arc]
                if not found[before] and self.room[arc ^ 1]:
                    found[before] = further
                    reached.append(before)
        return found

    def send(self, levels: list[int]) -> None:
        """Send water along every way that goes down a level with each step, until all are full."""
        tried = [0] * self.size  # the arcs of each vertex that lead nowhere any more
        path: list[int] = []
        vertex = BEGIN
        while True:
            if vertex == END:
                vertex = self.push(path)
            elif (arc := self.downward(vertex, levels, tried)) is not None:
                path.append(arc)
                vertex = self.heads[arc]
            elif path:
                vertex = self.heads[path.pop() ^ 1]
                tried[vertex] += 1
            else:
                return

    def downward(self, vertex: int, levels: list[int], tried: list[int]) -> int | None:
        """The next arc from a vertex that has room and goes down one level."""
        arcs, below = self.arcs[vertex], levels[vertex] - 1
        for k in range(tried[vertex], len(arcs)):
            if self.room[arcs[k]] and levels[self.heads[arcs[k]]] == below:
                tried[vertex] = k
                return arcs[k]
        tried[vertex] = len(arcs)
        return None

    def push(self, path: list[int]) -> int:
        """Fill a path, and shorten it to the part before its first full arc; the vertex where that ends."""
        amount = min(self.room[arc] for arc in path)
        self.flow += amount
        for arc in path:
            self.room[arc] -= amount
            self.room[arc ^ 1] += amount
        full = next(k for k, arc in enumerate(path) if not self.room[arc])
        vertex = self.heads[path[full] ^ 1]
        del path[full:]
        return vertex
