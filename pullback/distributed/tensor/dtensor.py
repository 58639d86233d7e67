"""`DTensor`: a tensor of which each rank of a mesh has a part.

It has the shape of the whole, and `_local_tensor`, this rank's part. Operators run on parts where rules (`rules`) say how
results lie; elsewhere the arguments are gathered first, so every operator works. Recording stands above: gradients are
distributed tensors, and changes of placement have gradients of their own.
"""

from __future__ import annotations

from typing import Any

from ...autograd.function import Function
from ...core.tensor import Tensor
from ..device_mesh import DeviceMesh
from ..process_group import ProcessGroup
from .placements import Partial, Placement, Replicate, Shard
from .redistribute import redistribute
from .spec import Spec, normal_placements


class DTensor(Tensor):
    """A tensor spread over a mesh."""

    _local_tensor: Tensor
    _spec: Spec

    @staticmethod
    def __new__(cls, local: Tensor, spec: Spec, *, requires_grad: bool = False) -> DTensor:
        result = Tensor._make_wrapper_subclass(
            cls, spec.shape, dtype=local.dtype, device=local.device, requires_grad=requires_grad
        )
        result._local_tensor, result._spec = local, spec
        return result

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        from .rules import run

        return run(func, args, kwargs or {})

    def __repr__(self) -> str:
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self.device_mesh}, placements={self.placements})"
        )

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner: dict, context: Any, outer_size: Any, outer_stride: Any) -> DTensor:
        spec, requires_grad = context
        return DTensor(inner["_local_tensor"], spec, requires_grad=requires_grad)

    def __deepcopy__(self, memo: dict) -> DTensor:
        if id(self) not in memo:
            result = DTensor(self._local_tensor.detach().clone(), self._spec, requires_grad=self.requires_grad)
            if getattr(self, "_is_param", False):
                result._is_param = True
            memo[id(self)] = result
        return memo[id(self)]

    # ---- facts
    @property
    def device_mesh(self) -> DeviceMesh:
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        return self._spec.placements

    # ---- to and from parts
    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh, placements: Any = None, *, run_check: bool = False, shape: Any = None,
        stride: Any = None,
    ) -> DTensor:  # fmt: skip
        """The tensor of which each rank gives its part. Its size is this part's times the ranks, unless given."""
        placed = normal_placements(device_mesh, placements, local_tensor.dim())
        if shape is None:
            sizes = list(local_tensor.shape)
            for i, p in enumerate(placed):
                if isinstance(p, Shard):
                    sizes[p.dim] *= device_mesh.size(i)
            shape = tuple(sizes)
        return _FromLocal.apply(local_tensor, Spec(device_mesh, placed, tuple(shape)))

    def to_local(self, *, grad_placements: Any = None) -> Tensor:
        """This rank's part. Its gradient lies as the tensor does, unless `grad_placements` say how."""
        return _ToLocal.apply(self, grad_placements)

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Any = None, *, async_op: bool = False, **types: Any
    ) -> DTensor:
        """The same tensor, lying otherwise."""
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError(f"redistribute: from {self.device_mesh} to another mesh, {device_mesh}")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        placed = normal_placements(self.device_mesh, placements, self.dim())
        for p, old in zip(placed, self.placements, strict=True):
            if p.is_partial() and p != old:
                raise RuntimeError(
                    "Can not redistribute to Partial, redistributing to Partial is for internal use only!"
                )
        return _Redistribute.apply(self, placed)

    def full_tensor(self, *, grad_placements: Any = None) -> Tensor:
        """The whole, on every rank."""
        whole = self.redistribute(placements=[Replicate()] * self.device_mesh.ndim)
        return _ToLocal.apply(whole, grad_placements)


def as_gradient(placements: tuple[Placement, ...]) -> tuple[Placement, ...]:
    """How the gradient of a tensor lies: every rank has all of that of partial values."""
    return tuple(Replicate() if p.is_partial() else p for p in placements)


def moved(t: DTensor, placements: tuple[Placement, ...]) -> DTensor:
    """A tensor that lies otherwise; nothing is recorded."""
    if t.placements == placements:
        return t
    return DTensor(redistribute(t._local_tensor, t._spec, placements), t._spec.with_placements(placements))


class _FromLocal(Function):
    @staticmethod
    def forward(ctx, local, spec):
        ctx.spec = spec
        return DTensor(local.detach().view_as(local), spec)

    @staticmethod
    def backward(ctx, g):
        return moved(g, as_gradient(ctx.spec.placements))._local_tensor, None


class _ToLocal(Function):
    @staticmethod
    def forward(ctx, t, grad_placements):
        ctx.spec, ctx.grad_placements = t._spec, grad_placements
        ctx.set_materialize_grads(False)
        return t._local_tensor.detach().view_as(t._local_tensor)

    @staticmethod
    def backward(ctx, g):
        if g is None:
            return None, None
        spec = ctx.spec
        given = ctx.grad_placements
        placed = as_gradient(spec.placements) if given is None else normal_placements(spec.mesh, given, len(spec.shape))
        return DTensor(g.contiguous(), spec.with_placements(placed)), None


class _Redistribute(Function):
    @staticmethod
    def forward(ctx, t, placements):
        ctx.before = t.placements
        result = moved(t, placements)
        return result if result is not t else DTensor(t._local_tensor, t._spec)

    @staticmethod
    def backward(ctx, g):
        return moved(g, as_gradient(ctx.before)), None


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Any = None, *, src_data_rank: int | None = 0
) -> DTensor:
    """A tensor cut and spread over a mesh: that of the first rank, or with `src_data_rank=None` each rank's own."""
    if device_mesh is None:
        raise RuntimeError("distribute_tensor: device_mesh is needed")
    if isinstance(tensor, DTensor):
        return tensor.redistribute(device_mesh, placements)
    placed = normal_placements(device_mesh, placements, tensor.dim())
    if any(isinstance(p, Partial) for p in placed):
        raise ValueError("distribute_tensor: placements are Shard or Replicate; a whole tensor is no partial one")
    whole = tensor.detach()
    if src_data_rank is not None and device_mesh.size() > 1:
        whole = of_first_rank(whole, device_mesh)
    spec = Spec(device_mesh, (Replicate(),) * device_mesh.ndim, tuple(tensor.shape))
    local = redistribute(whole, spec, placed)
    if local is tensor or local.data_ptr() == tensor.data_ptr():
        local = local.clone()
    result = DTensor(local.detach(), spec.with_placements(placed), requires_grad=tensor.requires_grad)
    if getattr(tensor, "_is_param", False):
        result._is_param = True
    return result


def of_first_rank(whole: Tensor, mesh: DeviceMesh) -> Tensor:
    """The tensor of the mesh's first rank."""
    from ..collectives import broadcast

    result = whole.contiguous().clone()
    for i in reversed(range(mesh.ndim)):
        group: ProcessGroup = mesh.get_group(i)
        broadcast(result, group=group, group_src=0)
    return result
