"""`ShardedGradScaler`: gradient scaling where every rank has a part of the gradients, so all skip a step or none does."""

from __future__ import annotations

from typing import Any

from ...amp.grad_scaler import GradScaler
from ...ops.system.operator import public
from ..collectives import all_reduce
from ..groups import get_world_size, is_initialized
from ..reduce_op import ReduceOp

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """A `GradScaler` that counts a gradient which is not finite on one rank as found on all of the group."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: Any = None,
    ):
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self.process_group = process_group

    def unscale_(self, optimizer: Any) -> None:
        super().unscale_(optimizer)
        if not self._enabled or not is_initialized() or get_world_size(self.process_group) == 1:
            return
        found = self._found[id(optimizer)]
        everywhere = public("torch", "tensor")([float(found is not None), float(bool(found))])
        all_reduce(everywhere, ReduceOp.MAX, group=self.process_group)
        any_gradient, any_found = everywhere.tolist()
        self._found[id(optimizer)] = bool(any_found) if any_gradient else None
