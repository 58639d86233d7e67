"""Ranks with different numbers of inputs: `Join`.

In: objects (`Joinable`) that take part in collectives in each step. Out: a context in which a rank that has run out of
inputs goes on with its part of the others' collectives, until all have. Each step begins with one all-reduce that counts
the ranks which still have inputs; `DistributedDataParallel` makes it in its forward.
"""

from __future__ import annotations

from typing import Any

from ...core import dtype as dtypes
from ...ops.system.operator import public
from ..collectives import all_reduce, broadcast
from ..process_group import ProcessGroup


class JoinHook:
    """What a rank that has joined does in the place of a step (`main_hook`), and at the end (`post_hook`)."""

    def main_hook(self) -> None: ...

    def post_hook(self, is_last_joiner: bool) -> None: ...


class Joinable:
    """An object that can say what a joined rank must do for it."""

    def join_hook(self, **kwargs: Any) -> JoinHook:
        raise NotImplementedError

    @property
    def join_device(self) -> Any:
        return "cpu"

    @property
    def join_process_group(self) -> ProcessGroup:
        raise NotImplementedError


_active: list[Join] = []


class Join:
    """A context for loops whose lengths differ between ranks."""

    def __init__(
        self, joinables: list, enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self.joinables, self.enable, self.throws = joinables, enable, throw_on_early_termination
        self.hooks = [j.join_hook(**kwargs) for j in joinables] if enable else []
        self.group = joinables[0].join_process_group

    def __enter__(self) -> Join:
        if self.enable:
            _active.append(self)
        return self

    def __exit__(self, kind: type | None, error: Any, trace: Any) -> None:
        if not self.enable:
            return
        _active.remove(self)
        if kind is not None:
            return
        last = True
        while self.count(has_inputs=False):
            last = False
            if self.throws:
                raise RuntimeError(f"Rank {self.group.rank()} exhausted all inputs.")
            for hook in self.hooks:
                hook.main_hook()
        for hook in self.hooks:
            hook.post_hook(last)

    def count(self, has_inputs: bool) -> int:
        """How many ranks still have inputs."""
        here = public("torch", "tensor")([int(has_inputs)], dtype=dtypes.int64)
        all_reduce(here, group=self.group)
        return int(here.item())

    @staticmethod
    def notify_join_context(joinable: Any) -> int:
        """A rank begins a step: gives how many ranks take part in it."""
        for join in _active:
            if join.joinables[0] is joinable:
                active = join.count(has_inputs=True)
                if join.throws and active < join.group.size():
                    raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
                return active
        return 0


class DataParallelHook(JoinHook):
    """A joined rank of `DistributedDataParallel`: its gradients count as zeros."""

    def __init__(self, ddp: Any, divide_by_initial_world_size: bool = True):
        self.ddp, self.whole = ddp, divide_by_initial_world_size
        ddp.reducer.divide_by_active = not self.whole

    def main_hook(self) -> None:
        ddp = self.ddp
        if ddp.require_forward_param_sync and ddp.broadcast_buffers:
            ddp._sync_buffers()
        ddp.reducer.shadow()

    def post_hook(self, is_last_joiner: bool) -> None:
        """All ranks take the parameters of one that trained to the end."""
        group, reducer = self.ddp.process_group, self.ddp.reducer
        reducer.active = None
        last = public("torch", "tensor")([group.rank() if is_last_joiner else -1], dtype=dtypes.int64)
        all_reduce(last, "max", group)
        for _, t in [*self.ddp.module.named_parameters(), *self.ddp.module.named_buffers()]:
            broadcast(t.detach(), group=group, group_src=int(last.item()))
