"""From one way to lie on a mesh to another: what ranks exchange of a distributed tensor's parts.

In: this rank's part, how the tensor lies and how it should. Out: this rank's part then. Along each dimension of the mesh:
parts are gathered, partial values reduced (or reduced and cut in one call), whole ones cut without communication.
"""

from __future__ import annotations

from ...core.tensor import Tensor
from ...ops.system.operator import public
from .. import operators
from .placements import Partial, Placement, Replicate, Shard, part_of
from .spec import Spec


def redistribute(local: Tensor, spec: Spec, target: tuple[Placement, ...]) -> Tensor:
    """A rank's part of the tensor, where it lies as `target` says."""
    current = list(spec.placements)
    changing = _changing(spec.placements, target)
    for i in reversed(changing):
        before = spec.with_placements(tuple(current))
        if current[i].is_partial() and isinstance(target[i], Shard) and not _nested(current, target, i):
            local = reduce_scattered(local, before, i, target[i].dim)
            current[i] = target[i]
        elif (
            not (current[i].is_replicate() or current[i] == target[i])
            or i in changing
            and isinstance(current[i], Shard)
        ):
            local = replicated(local, before, i)
            current[i] = Replicate()
    for i in changing:
        if current[i] != target[i]:
            local = cut(local, spec.with_placements(tuple(current)), i, target[i])
            current[i] = target[i]
    return local


def _changing(current: tuple[Placement, ...], target: tuple[Placement, ...]) -> list[int]:
    """The mesh dimensions along which something is done: those that differ, and those whose cuts lie inside theirs."""
    found = {i for i, (a, b) in enumerate(zip(current, target, strict=True)) if a != b}
    for i in sorted(found):
        cuts = {p.dim for p in (current[i], target[i]) if isinstance(p, Shard)}
        found |= {j for j in range(i + 1, len(current)) if isinstance(current[j], Shard) and current[j].dim in cuts}
    return sorted(found)


def _nested(current: list[Placement], target: tuple[Placement, ...], i: int) -> bool:
    """Whether other mesh dimensions cut the dimension that this one is about to cut."""
    dim = target[i].dim
    return any(p.is_shard(dim) for j, p in enumerate([*current, *target]) if j % len(current) != i)


def replicated(local: Tensor, spec: Spec, i: int) -> Tensor:
    """The whole along a mesh dimension."""
    p, group = spec.placements[i], spec.mesh.get_group(i)
    if isinstance(p, Partial):
        return operators.wait_tensor(operators.all_reduce(local.contiguous(), p.reduce_op, group.group_name))
    return gathered(local, p.dim, spec.size_at(i, p.dim), group)


def gathered(local: Tensor, dim: int, size: int, group) -> Tensor:
    """Parts of a dimension, joined; shorter ones travel with room behind them."""
    n = group.size()
    step = -(-size // n)
    moved = padded(local.movedim(dim, 0), step).contiguous()
    whole = operators.wait_tensor(operators.all_gather_into_tensor(moved, n, group.group_name))
    return whole.narrow(0, 0, size).movedim(0, dim).contiguous()


def padded(t: Tensor, rows: int) -> Tensor:
    """A tensor with as many rows, zeros behind its own."""
    missing = rows - t.shape[0]
    return t if not missing else public("torch", "cat")([t, t.new_zeros((missing, *t.shape[1:]))])


def reduce_scattered(local: Tensor, spec: Spec, i: int, dim: int) -> Tensor:
    """Partial values along a mesh dimension, reduced, of which each rank gets a part."""
    group, reduce_op = spec.mesh.get_group(i), spec.placements[i].reduce_op
    n, size = group.size(), local.shape[dim]
    step = -(-size // n)
    moved = local.movedim(dim, 0)
    parts = [padded(moved.narrow(0, *part_of(size, n, r)), step) for r in range(n)]
    whole = public("torch", "cat")(parts).contiguous()
    mine = operators.wait_tensor(operators.reduce_scatter_tensor(whole, reduce_op, n, group.group_name))
    return mine.narrow(0, 0, part_of(size, n, group.rank())[1]).movedim(0, dim).contiguous()


def cut(local: Tensor, spec: Spec, i: int, target: Placement) -> Tensor:
    """A replicated tensor's part along a mesh dimension. As partial values, the first rank keeps all."""
    group = spec.mesh.get_group(i)
    if isinstance(target, Shard):
        return local.narrow(target.dim, *part_of(local.shape[target.dim], group.size(), group.rank())).contiguous()
    if isinstance(target, Partial):
        if target.reduce_op in ("avg", "max", "min"):
            return local
        if target.reduce_op != "sum":
            raise ValueError(f"a replicated tensor cannot be made {target!r}")
        return local if group.rank() == 0 else public("torch", "zeros_like")(local)
    raise AssertionError(f"{target!r} is no part of a replicated tensor")
