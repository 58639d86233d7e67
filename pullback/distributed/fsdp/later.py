"""Gradients that travel while a backward goes on: each group's reduce-scatter begins when its gradient is complete, and is awaited
when the backward is done.

In: the gradient of a group's whole parameters, where the engine walks a backward that adds to `.grad`. Out: this rank's part of the
mean, added to the sharded parameters as a backward of its own does (hooks after accumulation included). What always holds: all
ranks begin the same calls in the same order; wherever somebody would see the gradient on its way (`autograd.grad`, a graph of the
backward, compiled autograd, hooks on sharded parameters), it goes through the graph and is awaited at once, with the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...autograd.calls import backward
from ...autograd.engine import Walk, queue_callback
from ...autograd.nodes import insert
from ...core import modes
from ...core.modes import ambient
from ...core.node import AccumulateGrad, Node, accumulator_of
from ...core.tensor import Tensor
from ..operators import all_reduce, reduce_scatter_tensor, wait_tensor
from ..tensor.dtensor import DTensor

if TYPE_CHECKING:
    from .group import ParameterGroup

UNDER_WAY = 2  # reduce-scatters at once: more would keep as many whole gradients


class Later(Node):
    """`Later(group)(whole)`: the whole parameters of a group, whose gradient is reduced later, where nobody waits for it."""

    group: ParameterGroup | None = None  # None: a node in a graph of a backward, which has nothing to add

    def __init__(self, group: ParameterGroup):
        self.group = group

    def __call__(self, whole: Tensor) -> Tensor:
        return insert(self, (whole,))

    def run(self, grads: list) -> tuple:
        task, (g,) = ambient.tasks[-1] if ambient.tasks else None, grads
        if g is None or task is None or task.needed is not None or self.group is None:
            return (g,)
        reductions = self.group.reductions
        if type(task) is not Walk or task.node is not self or self._is_seen(self.group):
            return (reductions.joined(g),)
        reductions.begin(g, task)
        return (None,)

    @staticmethod
    def _is_seen(group: ParameterGroup) -> bool:
        """Whether somebody sees the gradient before it is added to `.grad`."""
        return bool(ambient.mode & (modes.GRAD | modes.ANOMALY)) or group.is_hooked()

    def saved_state(self, differentiable: bool = False) -> dict | None:
        kept = None if self.group is None else self.group.reductions.unreduced
        return {} if kept is None else None


class Reductions:
    """What one group still owes its parameters' `.grad`."""

    def __init__(self, group: ParameterGroup):
        self.group = group
        self.synchronised = True  # by `set_requires_gradient_sync`
        self.over_replicas = True  # by `set_requires_all_reduce`
        self.unreduced: Tensor | None = None  # gradients of the whole, of backwards that did not reduce
        self.partial: Tensor | None = None  # reduced over shards, and not yet over replicas

    def begin(self, g: Tensor, task: Walk) -> None:
        """Take a gradient of the whole into the calls of a backward, or keep it for a later one."""
        g = self.joined(g)
        if not self.synchronised:
            self.unreduced = g
        else:
            kind, group = self.group.policy.reduce_dtype, self.group.group
            wide = g if kind is None else g.to(kind)
            mine = reduce_scatter_tensor(wide.contiguous(), "avg", group.size(), group.group_name)
            calls_of(task).add(self, mine)

    def joined(self, g: Tensor) -> Tensor:
        """A gradient, with those of backwards that did not reduce theirs."""
        kept, self.unreduced = self.unreduced, None
        return g if kept is None else g + kept

    def finish(self, mine: Tensor) -> None:
        """Add this rank's part of a mean to `.grad`."""
        replicas = self.group.replicas
        if self.partial is not None:
            mine = mine + self.partial
        keeps = replicas is not None and not self.over_replicas
        self.partial = mine if keeps else None
        if not keeps:
            if replicas is not None and replicas.size() > 1:
                mine = wait_tensor(all_reduce(mine, "avg", replicas.group_name))
            self._accumulate(mine)

    def _accumulate(self, mine: Tensor) -> None:
        params = self.group.params
        pieces = mine.split([p.numel for p in params])
        wanted = [(p.sharded, piece) for p, piece in zip(params, pieces, strict=True) if p.sharded.requires_grad]
        backward([t for t, _ in wanted], [_part(t, piece) for t, piece in wanted])


def _part(sharded: DTensor, piece: Tensor) -> DTensor:
    """The gradient of a sharded parameter, of what its rank received: rows behind its own are padding."""
    local = sharded._local_tensor
    return DTensor(piece[: local.numel()].reshape(local.shape).to(local.dtype, copy=True), sharded._spec)


class Begun:
    """A reduce-scatter under way, or done."""

    def __init__(self, owner: Reductions, mine: Tensor):
        self.owner, self.mine, self.done = owner, mine, False

    def wait(self) -> Tensor:
        if not self.done:
            self.mine, self.done = wait_tensor(self.mine), True
        return self.mine


class Calls:
    """The reduce-scatters of one backward, in the order in which they began."""

    def __init__(self, number: int):
        self.number = number
        self.begun: list[Begun] = []

    def add(self, owner: Reductions, mine: Tensor) -> None:
        if not self.begun:
            queue_callback(self.finish)
        if len(self.begun) >= UNDER_WAY:
            self.begun[-UNDER_WAY].wait()
        self.begun.append(Begun(owner, mine))

    def finish(self) -> None:
        begun, self.begun = self.begun, []
        for call in begun:
            call.owner.finish(call.wait())


_calls: list[Calls] = []  # of the backward that came last: one that failed leaves calls that nobody awaits


def calls_of(task: Walk) -> Calls:
    if not _calls or _calls[0].number != task.id:
        _calls[:] = [Calls(task.id)]
    return _calls[0]


def is_hooked(sharded: Tensor) -> bool:
    """Whether somebody sees the gradient of a parameter on its way."""
    sink: AccumulateGrad = accumulator_of(sharded)
    return bool(sharded._autograd is not None and sharded._autograd.hooks) or bool(sink.pre_hooks or sink.post_hooks)
