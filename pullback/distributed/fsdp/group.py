"""Parameters that are gathered together: those of one `fully_shard`.

In: parameters of a module. Out: each of them cut along its first dimension over a mesh (`DTensor`s, which the optimizer
sees), and whole while the module computes. All parts of a group travel in one gather, and all gradients in one
reduce-scatter, which is its gradient. What a backward saved of whole parameters is dropped after the forward and gathered
again when it is needed. While one group computes, the gather of the next is under way: of the one that came next in the forward
before, or came before it, in a backward. What was gathered ahead is used only where it is still what would be gathered now.
Gradients travel while the backward goes on (`later.py`).
"""

from __future__ import annotations

import contextlib
from typing import Any

from ...autograd.saved import saved_tensors_hooks
from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...nn.module import Module
from ...nn.parameter import Parameter
from ...ops.family.base import operator
from ...ops.make.make_lowering import lower_copy
from ...ops.system.operator import Spec as ResultSpec
from ...ops.system.operator import public
from ...surface.compiler import is_compiling
from ..device_mesh import DeviceMesh
from ..operators import all_gather_into_tensor, all_reduce, reduce_scatter_tensor, wait_tensor
from ..tensor.dtensor import distribute_tensor
from ..tensor.placements import Placement, Replicate, Shard
from ..tensor.redistribute import padded
from .ahead import Ahead, forget_order
from .later import Later, Reductions, is_hooked
from .policies import MixedPrecisionPolicy


def _average(g: Tensor, group_size: int, replicas: int, replica_group: str) -> Tensor:
    mine = g / group_size
    return wait_tensor(all_reduce(mine, "avg", replica_group)) if replicas > 1 else mine


average_gradient = operator(
    "average_gradient(Tensor shard, int group_size, int replicas, str replica_group) -> Tensor",
    kernel=lambda xp, shard, *_: shard.copy(),
    lower=lower_copy,
    meta=lambda shard, *_: ResultSpec(shard.shape, shard.dtype),
    vjp={"shard": lambda g, group_size, replicas, replica_group: _average(g, group_size, replicas, replica_group)},
    library="pullback",
    function=False,
    method=False,
    out=False,
)  # a shard whose gradient is the mean over ranks of what comes in, summed over them already


def _unshard_kernel(xp, shard, group_size, group_name, replicas, replica_group, reduce_dtype):
    return wait_tensor.kernel(xp, all_gather_into_tensor.kernel(xp, shard, group_size, group_name))


def _mean_gradient(
    g: Tensor, group_size: int, group_name: str, replicas: int, replica_group: str, reduce_dtype
) -> Tensor:
    """The mean over ranks of the gradients of the whole; of it, this rank's part."""
    wide = g if reduce_dtype is None else g.to(reduce_dtype)
    mine = wait_tensor(reduce_scatter_tensor(wide.contiguous(), "avg", group_size, group_name))
    if replicas > 1:
        mine = wait_tensor(all_reduce(mine, "avg", replica_group))
    return mine.to(g.dtype)


unshard = operator(
    "unshard(Tensor shard, int group_size, str group_name, int replicas, str replica_group, ScalarType? reduce_dtype) -> Tensor",
    kernel=_unshard_kernel,
    meta=lambda shard, group_size, *_: ResultSpec((shard.shape[0] * group_size, *shard.shape[1:]), shard.dtype),
    vjp={
        "shard": lambda g, group_size, group_name, replicas, replica_group, reduce_dtype: _mean_gradient(
            g, group_size, group_name, replicas, replica_group, reduce_dtype
        )
    },
    library="pullback",
    function=False,
    method=False,
    out=False,
)


class ShardedParameter:
    """A parameter in parts, and where modules hold it."""

    def __init__(self, param: Tensor, homes: list[tuple[Module, str]], mesh: DeviceMesh, placements: list[Placement]):
        whole = param.detach()
        self.shape = tuple(whole.shape)
        parts = mesh.size(mesh.ndim - 1)
        self.rows = -(-self.shape[0] // parts) if self.shape else 1
        cut = distribute_tensor(whole if self.shape else whole.reshape(1), mesh, placements, src_data_rank=None)
        self.sharded = Parameter(cut, param.requires_grad)
        self.homes = homes
        for module, name in homes:
            module._parameters[name] = self.sharded
        self.whole: Tensor | None = None

    @property
    def numel(self) -> int:
        """Of what each rank sends."""
        inner = 1
        for n in self.shape[1:]:
            inner *= n
        return self.rows * inner

    def sent(self) -> Tensor:
        """This rank's part, with as many rows as every other's."""
        return padded(self.sharded.to_local(), self.rows).reshape(-1)

    def joined(self, parts: Tensor) -> Tensor:
        """The whole of all ranks' parts (ranks, elements)."""
        if not self.shape:
            return parts.reshape(-1)[0]
        return parts.reshape(parts.shape[0] * self.rows, *self.shape[1:]).narrow(0, 0, self.shape[0]).clone()

    def show(self, whole: Tensor) -> None:
        self.whole = whole
        for module, name in self.homes:
            module.__dict__[name] = whole

    def hide(self) -> None:
        self.whole = None
        for module, name in self.homes:
            module.__dict__.pop(name, None)


class ParameterGroup:
    """The parameters of one `fully_shard`, gathered and reduced together."""

    def __init__(self, params: dict, mesh: DeviceMesh, policy: MixedPrecisionPolicy, reshard: bool):
        if mesh.ndim > 2:
            raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
        placements: list[Placement] = [Replicate()] * (mesh.ndim - 1) + [Shard(0)]
        self.mesh, self.policy, self.reshard = mesh, policy, reshard
        self.params = [ShardedParameter(p, homes, mesh, placements) for p, homes in params.values()]
        kinds = {p.sharded.dtype for p in self.params}
        if len(kinds) > 1 and policy.param_dtype is None:
            raise ValueError(
                f"fully_shard: parameters that are gathered together have one dtype, got {sorted(map(str, kinds))}"
            )
        self.group = mesh.get_group(mesh.ndim - 1)
        self.replicas = mesh.get_group(0) if mesh.ndim == 2 else None
        self.regathered: list[Tensor] | None = None
        self.depth = 0
        self.ahead = Ahead(self)
        self.reductions = Reductions(self)

    # ---- whole and in parts
    def begin(self) -> Tensor:
        """All ranks' parts, under way: for `finish`. With a dtype to reduce in, they are there."""
        cat = public("torch", "cat")
        kind = self.policy.param_dtype
        flat = cat([p.sent() if kind is None else p.sent().to(kind) for p in self.params])
        if flat.requires_grad:
            flat.register_hook(self._after_backward)
        size, name = self.group.size(), self.group.group_name
        replicas = (1, "") if self.replicas is None else (self.replicas.size(), self.replicas.group_name)
        if self.policy.reduce_dtype is not None:
            return unshard(flat, size, name, *replicas, self.policy.reduce_dtype)
        return all_gather_into_tensor(average_gradient(flat, size, *replicas), size, name)

    def finish(self, every: Tensor) -> list[Tensor]:
        """The whole parameters, as functions of the parts."""
        if self.policy.reduce_dtype is None:
            every = wait_tensor(every)
        if every.requires_grad and not is_compiling():
            every = Later(self)(every)
        parts = every.reshape(self.group.size(), -1).split([p.numel for p in self.params], 1)
        return [p.joined(part) for p, part in zip(self.params, parts, strict=True)]

    def gather(self) -> list[Tensor]:
        """The whole parameters, as functions of the parts; gathered ahead, or now."""
        begun = self.ahead.take()
        return self.finish(self.begin() if begun is None else begun)

    def is_hooked(self) -> bool:
        """Whether somebody sees gradients of the parts on their way to `.grad`."""
        return any(is_hooked(p.sharded) for p in self.params)

    def _after_backward(self, g: Tensor) -> None:
        self.regathered = None
        forget_order()

    @contextlib.contextmanager
    def unsharded(self):
        """Inside, modules see whole parameters; what a backward needs of them is gathered again, where they are dropped."""
        if self.depth:  # a module that calls itself, or is shown by hand
            yield
            return
        self.depth += 1
        try:
            self.ahead.entered()
            wholes = self.gather()
            self.ahead.begin_next()
            for p, whole in zip(self.params, wholes, strict=True):
                p.show(whole)
            known = {w.untyped_storage().data_ptr(): i for i, w in enumerate(wholes) if w.numel()}
            del wholes
            with (
                saved_tensors_hooks(lambda t: self._pack(t, known), self._unpack)
                if self.reshard
                else contextlib.nullcontext()
            ):
                yield
        finally:
            self.depth -= 1
            for p in self.params:
                p.hide()

    def _pack(self, t: Tensor, known: dict[int, int]) -> Any:
        plain = type(t) is Tensor and not t.is_sparse
        index = known.get(t.untyped_storage().data_ptr()) if plain else None
        return t if index is None else (index, tuple(t.shape), t.stride(), t.storage_offset())

    def _unpack(self, packed: Any) -> Tensor:
        if isinstance(packed, Tensor):
            return packed
        index, shape, stride, offset = packed
        if self.regathered is None:
            with no_grad():
                self.regathered = [t.detach() for t in self.gather()]
                self.ahead.begin_previous()
        return self.regathered[index].as_strided(shape, stride, offset)
