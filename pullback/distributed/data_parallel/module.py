"""`DistributedDataParallel`: a module whose gradients are averaged over ranks.

In: a module, the same on all ranks (rank 0's parameters and buffers are given to all). Out: calls like the module's own;
after `backward()`, `.grad` holds the mean over ranks. In the engine, buckets travel while the backward runs; under compiled
autograd and in a compiled step, the all-reduces are nodes of the backward's graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ...core.modes import is_grad_enabled, no_grad
from ...nn.module import Module
from ...surface.compiler import is_compiling
from ..algorithms.join import DataParallelHook, Join
from ..groups import world_or_raise
from ..process_group import ProcessGroup
from .reducer import Reducer
from .states import state_tensors, sync_states, verify_shapes

MEGABYTE = 1 << 20


class DistributedDataParallel(Module):
    """A module on all ranks of a group, each with its part of the batch."""

    def __init__(
        self, module: Module, device_ids: list | None = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool = True, init_sync: bool = True, process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False, check_reduction: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False, delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None, mixed_precision: Any = None, device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
    ):  # fmt: skip
        super().__init__()
        for name, given in (
            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce), ("mixed_precision", mixed_precision),
        ):  # fmt: skip
            if given is not None:
                raise NotImplementedError(
                    f"DistributedDataParallel: {name} is not there; autocast gives mixed precision"
                )
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        group = device_mesh.get_group() if device_mesh is not None else process_group
        self.process_group = group if group is not None else world_or_raise()
        self.several = self.process_group.size() > 1
        self.module, self.device_ids, self.output_device, self.dim = module, device_ids, output_device, dim
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.parameters_to_ignore = ignored
        named = [(n, p) for n, p in module.named_parameters() if p.requires_grad and n not in ignored]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a gradient."
            )
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters
        self.gradient_as_bucket_view, self.static_graph = gradient_as_bucket_view, static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.bucket_bytes_cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * MEGABYTE)
        if init_sync:
            verify_shapes(self.process_group, module, ignored)
            sync_states(state_tensors(module, ignored), self.process_group)
        self.reducer = Reducer(
            named, self.process_group, self.bucket_bytes_cap,
            find_unused=find_unused_parameters or static_graph, as_views=gradient_as_bucket_view,
        )  # fmt: skip

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not is_compiling() and is_grad_enabled() and self.require_backward_grad_sync:
            self.reducer.active = Join.notify_join_context(self) or None
        if self.require_forward_param_sync and self.broadcast_buffers:
            self._sync_buffers()
        averages = is_grad_enabled() and self.require_backward_grad_sync
        self.reducer.sync = averages
        out = self.module(*inputs, **kwargs)
        if averages and not is_compiling():
            self.reducer.prepare(out)
        self.require_forward_param_sync = averages
        return out

    def _sync_buffers(self) -> None:
        buffers = [b for n, b in self.module.named_buffers() if b is not None and n not in self.parameters_to_ignore]
        if buffers and self.several:
            with no_grad():
                sync_states(buffers, self.process_group)

    @contextlib.contextmanager
    def no_sync(self):
        """Gradients of forwards inside are added up on each rank, and averaged by the first backward after."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Callable) -> None:
        """Replace the averaging: `hook(state, bucket)` gives a future of the bucket's new joined gradients."""
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        self.reducer.hook = lambda bucket: hook(state, bucket)

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Join:
        """Ranks with fewer inputs than others take part in their collectives until all are done."""
        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> DataParallelHook:
        return DataParallelHook(self, **kwargs)

    @property
    def join_process_group(self) -> ProcessGroup:
        return self.process_group

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, params_and_buffers_to_ignore: list[str]) -> None:
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def _set_static_graph(self) -> None:
        self.static_graph = self.reducer.find_unused = True

    def __getstate__(self) -> dict:
        raise TypeError(
            "DistributedDataParallel holds a group of running processes: pickle its .module, or a state_dict()"
        )
