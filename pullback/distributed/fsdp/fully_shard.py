"""`fully_shard`: a module whose parameters, gradients and optimizer state lie in parts on the ranks of a mesh.

In: a module, the same on all ranks; call it on the parts of a model first, then on the whole. Out: the same module, of a
class that is also `FSDPModule`; its parameters are `DTensor`s cut along their first dimension. Calls gather what they need,
layer by layer. After `backward()`, `.grad` holds this rank's part of the mean over ranks.
"""

from __future__ import annotations

import functools
from typing import Any

from ...capture.front.compile import compile as compile_function
from ...core.tensor import Tensor
from ...nn.module import Module
from ..device_mesh import DeviceMesh, init_device_mesh
from ..groups import get_world_size, is_initialized
from ..tensor.dtensor import DTensor
from .group import ParameterGroup
from .policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy


class FSDPModule:
    """What `fully_shard` adds to a module's class."""

    _fsdp: list[ParameterGroup]
    _fsdp_policy: MixedPrecisionPolicy

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        policy = self._fsdp_policy
        if policy.param_dtype is not None and policy.cast_forward_inputs:
            args, kwargs = _cast((args, kwargs), policy.param_dtype)
        inner = self.__dict__.get("_fsdp_compiled") or super().forward  # type: ignore[misc]
        if not self._fsdp:
            return inner(*args, **kwargs)
        with self._fsdp[0].unsharded():
            out = inner(*args, **kwargs)
        return out if policy.output_dtype is None else _cast(out, policy.output_dtype)

    # Gathering shows other parameters to modules while they run, which is no work of a graph: one ends here, around it.
    forward._torchdynamo_disable = True  # type: ignore[attr-defined]
    forward._torchdynamo_disable_msg = "fully_shard gathers parameters around it"  # type: ignore[attr-defined]

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile, in place, what the module computes of whole parameters, between the gathers."""
        self.__dict__["_fsdp_compiled"] = compile_function(super().forward, *args, **kwargs)  # type: ignore[misc]

    def unshard(self, async_op: bool = False) -> Any:
        """Show whole parameters until `reshard`; they have no history."""
        for group in self._fsdp:
            if not group.depth:
                for p, whole in zip(group.params, group.gather(), strict=True):
                    p.show(whole)
                group.depth += 1
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Hide whole parameters again."""
        for group in self._fsdp:
            if group.depth:
                group.depth -= 1
                for p in group.params:
                    p.hide()

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether whole parameters are dropped between forward and backward."""
        for group in self._groups(recurse):
            group.reshard = reshard_after_forward

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backwards reduce gradients. Those of backwards that do not are kept whole, `.grad` is not written, and the next
        that does reduces the sum; compiled backwards reduce theirs at once, which comes to the same."""
        for group in self._groups(recurse):
            group.reductions.synchronised = requires_gradient_sync

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Every backward is complete in itself: its reductions are awaited when it ends."""

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """With a mesh of two dimensions, whether backwards reduce over replicas too; else the next that does reduces the sum."""
        for group in self._groups(recurse):
            group.reductions.over_replicas = requires_all_reduce

    def _groups(self, recurse: bool) -> list[ParameterGroup]:
        modules = self.modules() if recurse else [self]  # type: ignore[attr-defined]
        return [group for m in modules if isinstance(m, FSDPModule) for group in m._fsdp]

    def set_modules_to_forward_prefetch(self, modules: list) -> None:
        """Whose parameters to gather while this module computes; else those that came next in the forward before."""
        for group in self._fsdp:
            group.ahead.named_next = [g for m in modules for g in m._fsdp]

    def set_modules_to_backward_prefetch(self, modules: list) -> None:
        """Whose parameters to gather again while gradients of this module are computed; else those that came before it."""
        for group in self._fsdp:
            group.ahead.named_previous = [g for m in modules for g in m._fsdp]


class UnshardHandle:
    """Of an `unshard` that is done."""

    def wait(self) -> None: ...


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Have another method than `forward` see whole parameters too; one of a module that is not sharded stays as it is."""
    if not isinstance(module, FSDPModule) or not module._fsdp:
        return
    method = getattr(module, method_name)
    group = module._fsdp[0]

    @functools.wraps(method)
    def unsharded(*args: Any, **kwargs: Any) -> Any:
        with group.unsharded():
            return method(*args, **kwargs)

    module.__dict__[method_name] = unsharded


def _cast(value: Any, kind: Any) -> Any:
    """Floating tensors in nested values, of another dtype."""
    if isinstance(value, Tensor):
        return value.to(kind) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {k: _cast(v, kind) for k, v in value.items()}
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(_cast(v, kind) for v in value)
    return value


_classes: dict[type, type] = {}


def fully_shard(
    module: Any, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None, shard_placement_fn: Any = None,
    mp_policy: MixedPrecisionPolicy | None = None, offload_policy: OffloadPolicy | None = None, ignored_params: set | None = None,
) -> Any:  # fmt: skip
    """Cut the parameters of a module, or of a list of modules, that no inner `fully_shard` has cut."""
    if shard_placement_fn is not None:
        raise NotImplementedError("fully_shard: shard_placement_fn: parameters are cut along their first dimension")
    if isinstance(module, (list, tuple)):
        for m in module:
            fully_shard(
                m, mesh=mesh, reshard_after_forward=reshard_after_forward, mp_policy=mp_policy,
                offload_policy=offload_policy, ignored_params=ignored_params,
            )  # fmt: skip
        return module
    if isinstance(offload_policy, CPUOffloadPolicy) and any(p.is_cuda for p in module.parameters()):
        raise NotImplementedError("fully_shard: CPUOffloadPolicy moves no parameters of GPUs to the host")
    if isinstance(module, FSDPModule):
        raise ValueError("fully_shard has already been applied to this module")
    if mesh is None:
        mesh = init_device_mesh("cpu", (get_world_size() if is_initialized() else 1,))
    params = _own_parameters(module, ignored_params or set())
    reshard = True if reshard_after_forward is None else bool(reshard_after_forward)
    policy = mp_policy or MixedPrecisionPolicy()
    module.__dict__["_fsdp"] = [ParameterGroup(params, mesh, policy, reshard)] if params else []
    module.__dict__["_fsdp_policy"] = policy
    cls = type(module)
    if cls not in _classes:
        _classes[cls] = type(f"FSDP{cls.__name__}", (FSDPModule, cls), {"__module__": cls.__module__})
    module.__class__ = _classes[cls]
    if module.__dict__.pop("_compiled_call_impl", None) is not None:  # what was compiled is what runs between gathers
        args, kwargs = module.__dict__.pop("_compile_arguments")
        module.compile(*args, **kwargs)
    return module


def _own_parameters(module: Module, ignored: set) -> dict[int, tuple[Tensor, list]]:
    """Parameters that nobody has cut yet, each with all places where modules hold it."""
    found: dict[int, tuple[Tensor, list]] = {}
    for m in module.modules():
        for name, p in m._parameters.items():
            if p is None or isinstance(p, DTensor) or any(p is i for i in ignored):
                continue
            found.setdefault(id(p), (p, []))[1].append((m, name))
    return found
