"""How results of operators lie on a mesh.

In: an operator and its arguments, some of them `DTensor`s. Out: its result. A rule says how arguments must lie (they are
moved) so that running the operator on parts gives parts of the result, and how the result lies then. Without a rule, or
where it does not apply, all arguments are gathered and every rank computes the whole: slower, and always right. So do
operators that draw random numbers, of which those of the mesh's first rank count: ranks need not have the same seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.tensor import Tensor, wrap_meta
from ...core.tree import tree_leaves, tree_map
from ...ops.family.along import Along
from ...ops.family.pointwise import Pointwise
from ...ops.system.operator import Operator
from ..device_mesh import DeviceMesh
from .dtensor import DTensor, moved, of_first_rank
from .placements import Partial, Placement, Replicate, Shard
from .spec import Spec

Places = tuple[Placement, ...]
RULES: dict[str, Callable] = {}
LINEAR = frozenset(("neg", "clone", "_to_copy", "detach", "alias", "positive"))  # a sum of parts stays one
LIKE = frozenset(("zeros_like", "ones_like", "empty_like", "full_like"))


def rule(*names: str) -> Callable:
    """Register the rule of operators: rule(op, args, kwargs) -> result, or NotImplemented."""

    def register(function: Callable) -> Callable:
        for name in names:
            RULES[name] = function
        return function

    return register


plain_is_replicated = False  # inside `implicit_replication`


def run(op: Operator, args: tuple, kwargs: dict) -> Any:
    """An operator on distributed tensors."""
    mesh = _mesh_of(op, args, kwargs)
    if op.schema.is_mutable:
        return _in_place(op, args, kwargs)
    args, kwargs = tree_map(lambda a: _distributed(op, a, mesh), (args, kwargs))
    found = None if is_random(op) else _rule_for(op)
    result = NotImplemented if found is None else found(op, args, kwargs)
    return on_wholes(op, args, kwargs, mesh) if result is NotImplemented else result


def _rule_for(op: Operator) -> Callable | None:
    by_family = (rule for family, rule in FAMILY_RULES.items() if isinstance(op.family, family))
    return RULES.get(op.name) or next(by_family, None)


def _mesh_of(op: Operator, args: tuple, kwargs: dict) -> DeviceMesh:
    meshes = [t.device_mesh for t in tree_leaves((args, kwargs)) if isinstance(t, DTensor)]
    if any(m != meshes[0] for m in meshes):
        raise RuntimeError(f"{op.qualified_name}: its arguments are on different meshes: {meshes}")
    return meshes[0]


def _distributed(op: Operator, value: Any, mesh: DeviceMesh) -> Any:
    """A plain tensor of one element counts as replicated; a larger one might differ between ranks, unless the user says not."""
    if not isinstance(value, Tensor) or isinstance(value, DTensor):
        return value
    if value.numel() > 1 and not plain_is_replicated:
        raise RuntimeError(
            f"{op.qualified_name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before "
            "calling distributed operators! (distribute_tensor, or DTensor.from_local with Replicate())"
        )
    return DTensor(value, Spec(mesh, (Replicate(),) * mesh.ndim, tuple(value.shape)))


def local(value: Any) -> Any:
    return value._local_tensor if isinstance(value, DTensor) else value


def on_locals(op: Operator, args: tuple, kwargs: dict) -> Any:
    args, kwargs = tree_map(local, (args, kwargs))
    return op(*args, **kwargs)


def on_wholes(op: Operator, args: tuple, kwargs: dict, mesh: DeviceMesh) -> Any:
    """Every rank computes the whole."""
    places = (Replicate(),) * mesh.ndim
    args, kwargs = tree_map(lambda a: moved(a, places) if isinstance(a, DTensor) else a, (args, kwargs))
    results = drawn_alike(op, on_locals(op, args, kwargs), mesh)
    return tree_map(lambda r: wrapped(r, mesh, places, r.shape) if isinstance(r, Tensor) else r, results)


def is_random(op: Operator) -> bool:
    return "nondeterministic_seeded" in (op.inplace_of or op).tags


def drawn_alike(op: Operator, results: Any, mesh: DeviceMesh) -> Any:
    """What an operator gave on the wholes; where it drew, what it gave the mesh's first rank."""
    if not is_random(op) or mesh.size() == 1:
        return results
    return tree_map(lambda r: of_first_rank(r, mesh) if isinstance(r, Tensor) else r, results)


def wrapped(part: Tensor, mesh: DeviceMesh, places: Places, shape: Any) -> DTensor:
    return DTensor(part, Spec(mesh, places, tuple(shape)))


def shape_of(op: Operator, args: tuple, kwargs: dict) -> Any:
    """The shape of an operator's result on the wholes; of several results, a list."""
    blank = lambda a: wrap_meta(tuple(a.shape), a.dtype) if isinstance(a, DTensor) else a
    args, kwargs = tree_map(blank, (args, kwargs))
    result = op(*args, **kwargs)
    return [tuple(m.shape) for m in result] if isinstance(result, (tuple, list)) else tuple(result.shape)


# ---- element by element
def _common_places(tensors: list[DTensor], ndim: int, keeps_partial: bool) -> Places:
    """How arguments that are broadcast against one another lie best, as the result does."""
    mesh = tensors[0].device_mesh
    result: list[Placement] = []
    for i in range(mesh.ndim):
        cuts = [
            Shard(t.placements[i].dim + ndim - t.dim())
            for t in tensors
            if isinstance(t.placements[i], Shard) and t.shape[t.placements[i].dim] != 1
        ]
        partial = next((t.placements[i] for t in tensors if t.placements[i].is_partial()), None)
        if keeps_partial and partial is not None and not cuts:
            result.append(partial)
        else:
            result.append(cuts[0] if cuts else Replicate())
    return tuple(result)


def aligned(t: DTensor, places: Places, ndim: int) -> DTensor:
    """An argument as it must lie for a result of `ndim` dimensions to lie as `places` say."""
    own: list[Placement] = []
    for p in places:
        if isinstance(p, Shard):
            dim = p.dim - (ndim - t.dim())
            own.append(Shard(dim) if dim >= 0 and t.shape[dim] != 1 else Replicate())
        else:
            own.append(p)
    return moved(t, tuple(own))


def pointwise(op: Operator, args: tuple, kwargs: dict) -> Any:
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, DTensor)]
    shape = shape_of(op, args, kwargs)
    if isinstance(shape, list):
        return NotImplemented
    places = _common_places(tensors, len(shape), _keeps_partial(op, args, kwargs, tensors))
    args, kwargs = tree_map(lambda a: aligned(a, places, len(shape)) if isinstance(a, DTensor) else a, (args, kwargs))
    return wrapped(on_locals(op, args, kwargs), tensors[0].device_mesh, places, shape)


def _keeps_partial(op: Operator, args: tuple, kwargs: dict, tensors: list[DTensor]) -> bool:
    """Whether a sum of what the ranks give is the result on sums."""
    kinds = {p for t in tensors for p in t.placements if p.is_partial()}
    if kinds != {Partial("sum")}:
        return False
    if op.name in ("add", "sub"):
        return all(isinstance(a, DTensor) for a in args[:2])
    if op.name == "mul":
        return len(tensors) == 1
    return op.name == "div" and len(tensors) == 1 and tensors[0] is args[0] and kwargs.get("rounding_mode") is None


@rule(*LIKE)
def _like(op: Operator, args: tuple, kwargs: dict) -> Any:
    t = args[0]
    if any(p.is_partial() for p in t.placements) or kwargs.get("memory_format") is not None:
        return NotImplemented
    return wrapped(on_locals(op, args, kwargs), t.device_mesh, t.placements, t.shape)


@rule(*LINEAR)
def _same(op: Operator, args: tuple, kwargs: dict) -> Any:
    t = args[0]
    partial = {p for p in t.placements if p.is_partial()}
    if op.name == "neg" and partial - {Partial("sum")} or op.name == "_to_copy" and partial and _rounds(t, kwargs):
        return NotImplemented
    return wrapped(on_locals(op, args, kwargs), t.device_mesh, t.placements, t.shape)


def _rounds(t: DTensor, kwargs: dict) -> bool:
    """Whether a copy is of a dtype that drops what a sum of parts needs: fractions, or counts above one."""
    dtype = kwargs.get("dtype") or t.dtype
    exact = not (dtype.is_floating_point or dtype.is_complex)
    return dtype is not t.dtype and (
        dtype.name == "bool" or exact and (t.dtype.is_floating_point or t.dtype.is_complex)
    )


# ---- writes
def _in_place(op: Operator, args: tuple, kwargs: dict) -> Any:
    """A write to a distributed tensor: to each rank's part."""
    target = args[0]
    if not isinstance(target, DTensor) or "out" in kwargs:
        raise RuntimeError(
            f"{op.qualified_name}: got mixed torch.Tensor and DTensor: a plain tensor cannot take a distributed result"
        )
    if any(p.is_partial() for p in target.placements):
        raise RuntimeError(
            f"{op.qualified_name}: a tensor of partial values cannot be written, its placements are {target.placements}"
        )
    by_parts = isinstance(getattr(op.inplace_of, "family", None), Pointwise) or op.name in WRITES
    if is_random(op) or not by_parts:
        return _replace(op, args, kwargs)
    mesh = target.device_mesh
    rest = tree_map(lambda a: _distributed(op, a, mesh), (args[1:], kwargs))
    rest, kwargs = tree_map(
        lambda a: aligned(a, target.placements, target.dim()) if isinstance(a, DTensor) else a, rest
    )
    on_locals(op, (target, *rest), kwargs)
    return target


WRITES = frozenset(("copy_", "zero_", "fill_", "addcmul_", "addcdiv_", "lerp_", "masked_fill_", "clamp_"))


def _replace(op: Operator, args: tuple, kwargs: dict) -> Any:
    """A write that looks at more than single elements: on the whole, of which each rank keeps its part."""
    target = args[0]
    places = (Replicate(),) * target.device_mesh.ndim
    whole = moved(target, places)
    copy = DTensor(whole._local_tensor.clone(), whole._spec)
    rest, kwargs = tree_map(lambda a: moved(a, places) if isinstance(a, DTensor) else a, (args[1:], kwargs))
    on_locals(op, (copy, *rest), kwargs)
    copy._local_tensor.copy_(drawn_alike(op, copy._local_tensor, target.device_mesh))
    target._local_tensor.copy_(moved(copy, target.placements)._local_tensor)
    return target


@rule("_local_scalar_dense", "equal", "is_same_size")
def _number(op: Operator, args: tuple, kwargs: dict) -> Any:
    places = (Replicate(),) * args[0].device_mesh.ndim
    return on_locals(op, tuple(moved(a, places) if isinstance(a, DTensor) else a for a in args), kwargs)


# ---- products
@rule("mm", "bmm")
def _product(op: Operator, args: tuple, kwargs: dict) -> Any:
    a, b = args[:2]
    extra = a.dim() - 2  # dimensions before those of the matrices
    pairs = [_factors(p, q, extra) for p, q in zip(a.placements, b.placements, strict=True)]
    a, b = moved(a, tuple(p for p, _, _ in pairs)), moved(b, tuple(q for _, q, _ in pairs))
    shape = (*a.shape[:-1], b.shape[-1])
    return wrapped(on_locals(op, (a, b), kwargs), a.device_mesh, tuple(r for _, _, r in pairs), shape)


def _factors(a: Placement, b: Placement, extra: int) -> tuple[Placement, Placement, Placement]:
    """(how factors must lie, how the product lies) for how they lie along one dimension of the mesh."""
    row, inner, outer_b, column, whole = Shard(extra), Shard(extra + 1), Shard(extra), Shard(extra + 1), Replicate()
    if extra and (a.is_shard(0) or b.is_shard(0)):
        return Shard(0), Shard(0), Shard(0)
    if a == inner or b == outer_b:
        return inner, outer_b, Partial("sum")
    if a == row:
        return row, whole, row
    if b == column:
        return whole, column, column
    if a == Partial("sum") and not b.is_partial():
        return a, whole, a
    if b == Partial("sum") and not a.is_partial():
        return whole, b, b
    return whole, whole, whole


@rule("addmm")
def _product_and_sum(op: Operator, args: tuple, kwargs: dict) -> Any:
    if set(kwargs) - {"beta", "alpha"}:
        return NotImplemented
    result = args[1].mm(args[2])
    alpha, beta = kwargs.get("alpha", 1), kwargs.get("beta", 1)
    result = result if alpha == 1 else result * alpha
    bias = args[0] if beta == 1 else args[0] * beta
    return result + bias


# ---- views
@rule("t", "transpose", "permute")
def _permuted(op: Operator, args: tuple, kwargs: dict) -> Any:
    t = args[0]
    order = list(range(t.dim()))
    if op.name == "permute":
        order = [d % t.dim() for d in args[1]]
    elif t.dim() > 1:
        i, j = (0, 1) if op.name == "t" else (args[1] % t.dim(), args[2] % t.dim())
        order[i], order[j] = order[j], order[i]
    places = tuple(Shard(order.index(p.dim)) if isinstance(p, Shard) else p for p in t.placements)
    return wrapped(on_locals(op, args, kwargs), t.device_mesh, places, [t.shape[d] for d in order])


@rule("view", "_unsafe_view", "reshape")
def _reshaped(op: Operator, args: tuple, kwargs: dict) -> Any:
    t, shape = args[0], list(shape_of(op, args, kwargs))
    places, sizes = [], list(shape)
    for i, p in enumerate(t.placements):
        if isinstance(p, Shard):
            n = t.device_mesh.size(i)
            dim = _same_cut(tuple(t.shape), shape, p.dim, n)
            if dim is None or sum(q.is_shard(p.dim) for q in t.placements) > 1:
                p = Replicate()
            else:
                p = Shard(dim)
                sizes[dim] //= n
        places.append(p)
    source = tuple(
        q if not isinstance(q, Shard) or isinstance(p, Shard) else p for p, q in zip(places, t.placements, strict=True)
    )
    part = moved(t, source)._local_tensor
    return wrapped(part.reshape(sizes), t.device_mesh, tuple(places), shape)


def _same_cut(old: tuple, new: list, dim: int, n: int) -> int | None:
    """The dimension of a new shape whose parts are those of a dimension of the old one, in memory."""
    before = math.prod(old[:dim])
    for i in range(len(new)):
        if math.prod(new[:i]) == before and new[i] % n == 0 and old[dim] % n == 0 and new[i] > 1:
            return i
    return None


@rule("unsqueeze")
def _unsqueezed(op: Operator, args: tuple, kwargs: dict) -> Any:
    t = args[0]
    dim = args[1] % (t.dim() + 1)
    places = tuple(Shard(p.dim + (p.dim >= dim)) if isinstance(p, Shard) else p for p in t.placements)
    return wrapped(on_locals(op, args, kwargs), t.device_mesh, places, shape_of(op, args, kwargs))


@rule("slice", "select", "split", "split_with_sizes", "unbind", "narrow", "chunk")
def _taken(op: Operator, args: tuple, kwargs: dict) -> Any:
    """Parts along a dimension: of the ranks' parts, where these are cut along another."""
    names = [a.name for a in op.schema.arguments]
    given = dict(zip(names, args, strict=False)) | kwargs
    t, dim = args[0], given.get("dim", 0) % args[0].dim()
    if any(p.is_shard(dim) for p in t.placements):
        return NotImplemented
    gone = op.name in ("select", "unbind")
    places = tuple(Shard(p.dim - (gone and p.dim > dim)) if isinstance(p, Shard) else p for p in t.placements)
    result, shapes = on_locals(op, args, kwargs), shape_of(op, args, kwargs)
    if isinstance(result, Tensor):
        return wrapped(result, t.device_mesh, places, shapes)
    return type(result)(wrapped(m, t.device_mesh, places, s) for m, s in zip(result, shapes, strict=True))


@rule("expand")
def _expanded(op: Operator, args: tuple, kwargs: dict) -> Any:
    t, shape = args[0], shape_of(op, args, kwargs)
    extra = len(shape) - t.dim()
    places = tuple(Shard(p.dim + extra) if isinstance(p, Shard) else p for p in t.placements)
    if any(isinstance(p, Shard) and t.shape[p.dim] != shape[p.dim + extra] for p in t.placements):
        return NotImplemented
    part = Spec(t.device_mesh, places, tuple(shape)).local_part()
    return wrapped(t._local_tensor.expand([n for _, n in part]), t.device_mesh, places, shape)


# ---- along dimensions
@rule("sum", "mean")
def _summed(op: Operator, args: tuple, kwargs: dict) -> Any:
    t = args[0]
    given = dict(zip([a.name for a in op.schema.arguments], args, strict=False)) | kwargs
    dims = given.get("dim")
    dims = [dims] if isinstance(dims, int) else list(dims) if dims else list(range(t.dim()))
    dims = [d % max(t.dim(), 1) for d in dims]
    keep = bool(given.get("keepdim", False))
    places: list[Placement] = []
    for i, p in enumerate(t.placements):
        if isinstance(p, Shard) and p.dim in dims:
            if op.name == "mean" and t.shape[p.dim] % t.device_mesh.size(i):
                return NotImplemented
            places.append(Partial("sum" if op.name == "sum" else "avg"))
        elif isinstance(p, Shard):
            places.append(Shard(p.dim if keep else p.dim - sum(d < p.dim for d in dims)))
        elif p.is_partial() and p != Partial("sum"):
            return NotImplemented
        else:
            places.append(p)
    return wrapped(on_locals(op, args, kwargs), t.device_mesh, tuple(places), shape_of(op, args, kwargs))


@rule("linalg_vector_norm")
def _vector_norm(op: Operator, args: tuple, kwargs: dict) -> Any:
    """The norm of all elements: of the ranks' parts, joined."""
    given = dict(zip([a.name for a in op.schema.arguments], args, strict=False)) | kwargs
    t, order = args[0], given.get("ord", 2)
    special = given.get("dim") is not None or given.get("keepdim") or given.get("dtype") is not None or order == 0
    if special or any(p.is_partial() for p in t.placements):
        return NotImplemented
    if (order < 0 or math.isinf(order)) and _some_part_is_empty(t):  # nothing has no such norm
        return NotImplemented
    cut = [isinstance(p, Shard) for p in t.placements]
    if math.isinf(order):
        kind = Partial("max" if order > 0 else "min")
        extreme = wrapped(
            on_locals(op, args, kwargs), t.device_mesh, tuple(kind if c else Replicate() for c in cut), ()
        )
        return moved(extreme, (Replicate(),) * len(cut))
    part = on_locals(op, args, kwargs)
    powers = wrapped(part**order, t.device_mesh, tuple(Partial("sum") if c else Replicate() for c in cut), ())
    whole = moved(powers, (Replicate(),) * len(cut))
    return wrapped(whole._local_tensor ** (1 / order), t.device_mesh, whole.placements, ())


def _some_part_is_empty(t: DTensor) -> bool:
    """Whether a rank has no elements. The last has the fewest, so all ranks find the same."""
    last = [n - 1 for n in t.device_mesh.shape]
    return not all(length for _, length in t._spec.local_part(last))


def _rows(op: Operator, args: tuple, kwargs: dict, dims: range) -> Any:
    """An operator that works along `dims` of its first argument and row by row otherwise."""
    t = args[0]
    cut_there = any(isinstance(p, Shard) and p.dim in dims or p.is_partial() for p in t.placements)
    others = [a for a in args[1:] if isinstance(a, DTensor)]
    if cut_there or any(a.dim() == t.dim() and a.shape == t.shape and a.placements != t.placements for a in others):
        return NotImplemented
    whole = (Replicate(),) * t.device_mesh.ndim
    fit = lambda a: a if not isinstance(a, DTensor) or a.shape == t.shape else moved(a, whole)
    args = (t, *[fit(a) for a in args[1:]])
    result, shapes = on_locals(op, args, kwargs), shape_of(op, args, kwargs)
    if isinstance(result, Tensor):
        return wrapped(result, t.device_mesh, t.placements, shapes)
    return tuple(
        None if m is None else wrapped(m, t.device_mesh, t.placements, s) for m, s in zip(result, shapes, strict=True)
    )


def along(op: Operator, args: tuple, kwargs: dict) -> Any:
    """An operator along one dimension, such as softmax or a scan, with one result of the same shape."""
    place = op.schema.index["dim"]
    if op.declared.reduces or op.declared.length is not None or len(op.schema.returns) > 1 or len(args) <= place:
        return NotImplemented
    if not args[0].dim():
        return NotImplemented
    dim = args[place] % args[0].dim()
    return _rows(op, args, kwargs, range(dim, dim + 1))


@rule("native_layer_norm")
def _layer_norm(op: Operator, args: tuple, kwargs: dict) -> Any:
    t = args[0]
    return _rows(op, args, kwargs, range(t.dim() - len(args[1]), t.dim()))


@rule("embedding")
def _embedding(op: Operator, args: tuple, kwargs: dict) -> Any:
    """Rows of a replicated table, by indices that are cut."""
    table, index = args[:2]
    if any(not p.is_replicate() for p in table.placements) or any(p.is_partial() for p in index.placements):
        return NotImplemented
    return wrapped(on_locals(op, args, kwargs), index.device_mesh, index.placements, (*index.shape, table.shape[1]))


FAMILY_RULES = {Pointwise: pointwise, Along: along}  # of operators without a rule by name
