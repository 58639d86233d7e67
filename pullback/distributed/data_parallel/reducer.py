"""The reducer: averages gradients over ranks while a backward still runs.

In: hooks of parameters, as their gradients are complete. Out: `.grad`, the same on all ranks when the backward returns. A
bucket whose gradients are all there is sent while others are computed; buckets go in their order, which is the same on
all ranks. A parameter that takes no part in a backward must be announced (`find_unused_parameters`) or is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd.engine import queue_callback
from ...core.node import AccumulateGrad, edge_of
from ...core.tensor import Tensor
from ...core.tree import tree_leaves
from ...ops.system.operator import public
from ..collectives import all_reduce, start_all_reduce
from ..process_group import ProcessGroup
from ..reduce_op import ReduceOp
from .buckets import GradBucket, make_buckets

UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your "
    "module has parameters that were not used in producing loss. You can enable unused parameter detection by passing the "
    "keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by making sure all "
    "`forward` function outputs participate in calculating loss. Parameters which did not receive grad on this rank: "
)


class Hook:
    """What a parameter calls when its gradient is complete. A graph holds its bucket's rule instead."""

    def __init__(self, reducer: Reducer, bucket: int, index: int):
        self.reducer, self.bucket, self.index = reducer, bucket, index
        self.leaf_rule = reducer.buckets[bucket]

    def __call__(self, param: Tensor) -> None:
        self.reducer.arrived(self.bucket, self.index)


class Reducer:
    """Buckets of parameters, and what is under way of them."""

    def __init__(
        self, params: list[tuple[str, Tensor]], group: ProcessGroup, limit: int, *, find_unused: bool, as_views: bool
    ) -> None:
        self.group, self.find_unused, self.as_views = group, find_unused, as_views
        self.names = {id(p): name for name, p in params}
        self.buckets = make_buckets([p for _, p in params], limit, group, self.fits_graphs)
        self.place = {id(p): (b.index, i) for b in self.buckets for i, p in enumerate(b.members)}
        self.sync = True  # whether the next backward averages
        self.hook: Callable | None = None  # a communication hook
        self.next = 0  # the bucket that is sent next
        self.begun = False
        self.active: int | None = None  # how many ranks take part in a step, where some have run out of inputs
        self.divide_by_active = False
        self.unused: set[tuple[int, int]] = set()
        self.handles = [
            p.register_post_accumulate_grad_hook(Hook(self, b.index, i))
            for b in self.buckets
            for i, p in enumerate(b.members)
        ]

    def fits_graphs(self) -> bool:
        """Whether a graph may hold the averaging: nothing of it is the user's Python or depends on the data."""
        return self.sync and self.hook is None and not self.find_unused and self.active is None

    # ---- a backward
    def prepare(self, outputs: Any) -> None:
        """A forward has run: look whether the last backward was whole, and which parameters the next will not reach."""
        if self.begun:
            late = [self.names[id(b.members[i])] for b in self.buckets for i in sorted(b.waiting)]
            raise RuntimeError(UNFINISHED + ", ".join(late))
        self.unused = set()
        if self.find_unused and self.sync:
            reached = reachable(outputs)
            self.unused = {place for key, place in self.place.items() if key not in reached}

    def arrived(self, bucket: int, index: int) -> None:
        """A parameter's gradient is complete."""
        if not self.sync:
            return
        if not self.begun:
            self._begin()
        b = self.buckets[bucket]
        if index not in b.waiting:
            if (bucket, index) in self.unused:
                self.unused.discard((bucket, index))
            else:
                raise RuntimeError(
                    "Expected to mark a variable ready only once. The parameter "
                    f"{self.names[id(b.members[index])]} got its gradient twice in one backward: it is shared between "
                    "several reentrant backward passes, or the module ran twice before backward()"
                )
        b.fill(index)
        self._send_ready()

    def _begin(self) -> None:
        self.begun = True
        for bucket, index in self.unused:
            self.buckets[bucket].fill(index)

    def _send_ready(self) -> None:
        while self.next < len(self.buckets) and not self.buckets[self.next].waiting:
            self._send(self.next)
            self.next += 1
            if self.next == len(self.buckets):
                queue_callback(self._finish)

    def shadow(self) -> None:
        """Take part in a step of the others, with gradients that are zero and are not kept."""
        for bucket in self.buckets:
            bucket.view(0)
            bucket.flat.zero_()
        for index in range(len(self.buckets)):
            self._send(index)
        self._unused_everywhere(nothing_used=True)
        for bucket in self.buckets:
            bucket.result()
            bucket.reset()

    def _send(self, index: int) -> None:
        bucket = self.buckets[index]
        if self.hook is not None:
            bucket.result = self.hook(GradBucket(bucket, index == len(self.buckets) - 1)).wait
            return
        work = start_all_reduce(self.group, bucket.flat, ReduceOp.AVG, watched=True)
        bucket.result = lambda: work.wait() and bucket.flat

    def _finish(self) -> None:
        """All buckets are under way: wait, and hand the averages out."""
        idle = self._unused_everywhere()
        for bucket in self.buckets:
            reduced = bucket.result()
            if isinstance(reduced, (list, tuple)):
                reduced = reduced[0]
            if self.divide_by_active and self.active is not None:
                reduced = reduced * (self.group.size() / self.active)
            bucket.spread(reduced, self.as_views, {i for b, i in idle if b == bucket.index})
            bucket.reset()
        self.next, self.begun = 0, False

    def _unused_everywhere(self, nothing_used: bool = False) -> set[tuple[int, int]]:
        """Parameters that no rank used: their gradients stay as they are."""
        if not self.find_unused:
            return set()
        places = list(self.place.values())
        used = public("torch", "tensor")([place not in self.unused and not nothing_used for place in places])
        all_reduce(used, ReduceOp.MAX, self.group)
        return {place for place, on in zip(places, used.tolist(), strict=True) if not on}


def reachable(outputs: Any) -> set[int]:
    """Identities of the leaves that gradients of some outputs reach."""
    tensors = [t for t in tree_leaves(outputs) if isinstance(t, Tensor)]
    waiting = [edge[0] for edge in map(edge_of, tensors) if edge is not None]
    seen: set[int] = set()
    found: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, AccumulateGrad):
            found.add(id(node.variable))
        waiting += [edge[0] for edge in node.edges if edge is not None]
    return found
