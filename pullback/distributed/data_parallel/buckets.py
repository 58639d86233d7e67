"""Buckets: parameters whose gradients travel together.

In: parameters in the order in which a backward is expected to reach them (the reverse of their own). Out: `Bucket`s of up
to a number of bytes and one dtype. A bucket is the rule of its leaves (`autograd.leaf_rules`): in a graph it is one
all-reduce of the joined gradients; in the engine, the reducer fills and starts it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd.leaf_rules import LeafRule
from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...ops.system.operator import public
from .. import operators
from ..process_group import ProcessGroup

FIRST = 1 << 20  # bytes of the first bucket: it is small, so that communication begins early


class Bucket(LeafRule):
    """Some parameters, and one flat tensor for their gradients."""

    def __init__(self, index: int, members: list[Tensor], group: ProcessGroup, usable: Callable[[], bool]):
        self.index, self.members, self.group, self.usable = index, members, group, usable
        self.sizes = [p.numel() for p in members]
        self.offsets = [sum(self.sizes[:i]) for i in range(len(members))]
        self.flat: Tensor | None = None
        self.waiting = set(range(len(members)))  # members whose gradients have not come in this backward
        self.result: Any = None  # what is under way: gives the averaged flat tensor

    @property
    def nbytes(self) -> int:
        return sum(self.sizes) * self.members[0].dtype.itemsize

    # ---- in a graph
    def key(self):
        return ("bucket", id(self), self.group.group_name) if self.usable() else None

    def start(self, *totals: Tensor | None) -> Tensor:
        """Average the joined gradients over all ranks."""
        parts = [
            p.new_zeros(p.numel()) if g is None else g.reshape(-1) for p, g in zip(self.members, totals, strict=True)
        ]
        whole = public("torch", "cat")(parts) if len(parts) > 1 else parts[0]
        return operators.all_reduce(whole, "avg", self.group.group_name)

    def finish(self, started: Tensor) -> list[Tensor]:
        whole = operators.wait_tensor(started)
        parts = whole.split(self.sizes)
        return [part.reshape(p.shape).clone() for p, part in zip(self.members, parts, strict=True)]

    # ---- in the engine
    def view(self, i: int) -> Tensor:
        """The place of a member's gradient in the flat tensor, with the member's shape."""
        if self.flat is None:
            self.flat = self.members[0].detach().new_zeros(sum(self.sizes))
        return self.flat[self.offsets[i] : self.offsets[i] + self.sizes[i]].view(self.members[i].shape)

    def fill(self, i: int) -> None:
        """Copy a member's gradient into the flat tensor; none counts as zeros."""
        g, place = self.members[i].grad, self.view(i)
        with no_grad():
            if g is None:
                place.zero_()
            elif not shares(g, place):
                if g.is_sparse:
                    g = g.to_dense()
                place.copy_(g)
        self.waiting.discard(i)

    def spread(self, reduced: Tensor, as_views: bool, skip: set[int]) -> None:
        """Give the members their averaged gradients."""
        flat = self.flat
        with no_grad():
            if reduced is not flat:
                flat.copy_(reduced.reshape(-1))
            for i, p in enumerate(self.members):
                if i in skip:
                    continue
                place = self.view(i)
                if p.grad is None or as_views or p.grad.is_sparse:
                    p.grad = place if as_views else place.clone()
                elif not shares(p.grad, place):
                    p.grad.copy_(place)

    def reset(self) -> None:
        self.waiting, self.result = set(range(len(self.members))), None


def shares(a: Tensor, b: Tensor) -> bool:
    """Whether a gradient already lies at its place in a bucket."""
    return not a.is_sparse and a.data_ptr() == b.data_ptr() and a.shape == b.shape and bool(a.numel())


class GradBucket:
    """A bucket as communication hooks see it."""

    def __init__(self, bucket: Bucket, last: bool):
        self._bucket, self._last = bucket, last

    def index(self) -> int:
        return self._bucket.index

    def buffer(self) -> Tensor:
        """The joined gradients."""
        return self._bucket.flat

    def set_buffer(self, tensor: Tensor) -> None:
        with no_grad():
            self._bucket.flat.copy_(tensor)

    def gradients(self) -> list[Tensor]:
        return [self._bucket.view(i) for i in range(len(self._bucket.members))]

    def parameters(self) -> list[Tensor]:
        return list(self._bucket.members)

    def is_last(self) -> bool:
        return self._last


def make_buckets(params: list[Tensor], limit: int, group: ProcessGroup, usable: Callable[[], bool]) -> list[Bucket]:
    """Parameters in buckets, those that a backward reaches first in the first."""
    result: list[list[Tensor]] = []
    open_: dict[Any, list[Tensor]] = {}
    for p in reversed(params):
        kind = p.dtype, p.device
        have = open_.get(kind)
        size = 0 if have is None else sum(q.numel() * q.element_size() for q in have)
        cap = min(FIRST, limit) if have is None or have is result[0] else limit
        if have is None or size >= cap:
            open_[kind] = have = []
            result.append(have)
        have.append(p)
    return [Bucket(i, members, group, usable) for i, members in enumerate(result)]
