"""Sums, extremes, softmaxes and norms of nested tensors.

A dimension behind the ragged one is one of the packed values. Along the ragged dimension components are reduced one by one,
and the result is dense; along the batch alone nothing can be reduced, since components have no common shape.
"""

from __future__ import annotations

from ....core.geometry import wrap_dim, wrap_dims
from ....core.tensor import Tensor
from ...system.dispatch import dispatch
from ...system.operator import Operator
from .layouts import is_jagged, is_nested
from .operators import (
    components,
    from_values,
    function,
    get_values,
    nest,
    nested_rule,
    not_implemented,
    packed,
    rebuild,
)


def _dims_at(op: Operator) -> int | None:
    """Where the schema has the dimensions; None for an overload that reduces everything."""
    return next((i for i, a in enumerate(op.schema.arguments) if a.name in ("dim", "dims")), None)


@nested_rule(
    "sum", "mean", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "any", "all", "logsumexp", "var", "std",
    "linalg_vector_norm", "nansum",
)  # fmt: skip
def reduce(op: Operator, self, *rest):
    if not is_jagged(self):
        return _reduce_strided(op, self, *rest)
    args = (self, *rest)
    at = _dims_at(op)
    if at is None or args[at] is None or args[at] == ():
        return _reduce_all(op, self, rest)
    given = args[at]
    dims = set(wrap_dims(given if isinstance(given, (tuple, list)) else (given,), self.ndim))
    ragged = self._array.ragged_idx
    _check_dims(op, self, dims)
    along = {d - 1 for d in dims if d}
    spread = args[: at + 1], args[at + 1 :]
    if {0, ragged} <= dims:
        result = _reduced(op, get_values(packed(self)), along, *spread)
        return result.unsqueeze(0) if _keeps(op, args) else result
    if ragged in dims:
        parts = [_reduced(op, p, along, *spread) for p in components(self)]
        return _stacked(parts)
    result = _reduced(op, get_values(self), along, *spread)
    if isinstance(result, Tensor):
        return nest(result, self._array.structure, _moved(op, args, dims, ragged))
    return type(result)([nest(r, self._array.structure, _moved(op, args, dims, ragged)) for r in result])


def _moved(op: Operator, args: tuple, dims: set, ragged: int) -> int:
    return ragged if _keeps(op, args) else ragged - sum(d < ragged for d in dims)


def _keeps(op: Operator, args: tuple) -> bool:
    return any(a.name == "keepdim" and v for a, v in zip(op.schema.arguments, args, strict=False))


def _reduced(op: Operator, values: Tensor, along: set, before: tuple, after: tuple):
    """The reduction of dense values along dimensions; an overload that takes one dimension gets one."""
    several = isinstance(before[-1], (tuple, list))
    return dispatch(op, (values, *before[1:-1], tuple(sorted(along)) if several else next(iter(along)), *after))


def _stacked(parts: list):
    stack = function("stack")
    if isinstance(parts[0], Tensor):
        return stack(parts)
    return type(parts[0])([stack(list(column)) for column in zip(*parts, strict=True)])


def _reduce_all(op: Operator, self: Tensor, rest: tuple):
    return dispatch(op, (get_values(packed(self)), *rest))


def _check_dims(op: Operator, self: Tensor, dims: set) -> None:
    ragged = self._array.ragged_idx
    if ragged in dims and self._array.structure.lengths is not None:
        raise RuntimeError(
            f"{op.name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes"
        )
    if ragged in dims and len(dims) > 1 and 0 not in dims:
        raise RuntimeError(
            f"{op.name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
        )
    if 0 in dims and ragged not in dims:
        raise RuntimeError(
            f"{op.name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors"
        )


def _reduce_strided(op: Operator, self: Tensor, *rest):
    at = _dims_at(op)
    if at is None:
        return _reduce_all(op, self, rest)
    if op.name != "sum":
        raise not_implemented(op, (self, *rest))
    dims, keepdim = rest[0], rest[1]
    if len(dims or ()) != 1:
        raise RuntimeError(f"NestedTensor only allows reduction of a single dimension for now, got {dims}")
    if wrap_dim(dims[0], self.ndim) != self.ndim - 1:
        raise RuntimeError(
            f"NestedTensor can only be reduced across the last dimension for now, got dimension {dims[0]}"
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return rebuild([dispatch(op, (p, (-1,), *rest[1:])) for p in components(self)], self)


# ---- along a dimension
@nested_rule("_softmax", "_log_softmax", "_safe_softmax", "cumsum", "cumprod", "logcumsumexp")
def along(op: Operator, self, dim: int, *rest):
    if not self._array.structure.count:
        return from_values(get_values(self).clone(), self)
    d = wrap_dim(dim, self.ndim)
    name = op.name.lstrip("_")
    if not is_jagged(self):
        if d == 0:
            raise RuntimeError("Cannot apply softmax across nested dimension 0")
        return rebuild([dispatch(op, (p, d - 1, *rest)) for p in components(self)], self)
    if d == 0:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if d != self._array.ragged_idx:
        return from_values(dispatch(op, (get_values(self), d - 1, *rest)), self)
    if self._array.ragged_idx > 1:
        raise RuntimeError(
            f"{name}(): not supported when reducing along the ragged dimension for ragged_idx > 1 for NestedTensor"
        )
    if self._array.structure.lengths is not None:
        raise RuntimeError(
            f"{name}(): not supported where lengths is not None if reducing across the ragged dimension for NestedTensor"
        )
    return rebuild([dispatch(op, (p, d - 1, *rest)) for p in components(self)], self)


# ---- norms
@nested_rule("native_layer_norm")
def layer_norm(op: Operator, self, normalized_shape, *rest):
    if not is_jagged(self):
        return _layer_norm_strided(op, self, normalized_shape, *rest)
    if self.ndim <= 2:
        raise RuntimeError("layer_norm(): not supported for NestedTensor objects with 2 or fewer dimensions")
    if len(normalized_shape) >= self.ndim:
        raise RuntimeError("layer_norm(): not supported when normalizing over the batch dimension for NestedTensor")
    ragged = self._array.ragged_idx
    if len(normalized_shape) < self.ndim - ragged:
        result = dispatch(op, (get_values(self), normalized_shape, *rest))
        return from_values(result[0], self), from_values(result[1], self), from_values(result[2], self)
    if self._array.structure.lengths is not None:
        raise RuntimeError(
            "layer_norm(): not supported where lengths is not None if operating on the ragged dimension for NestedTensor"
        )
    if ragged > 1:
        raise RuntimeError(
            "layer_norm(): not supported when normalizing over the ragged dimension for ragged_idx > 1 for NestedTensor"
        )
    weight, bias, eps = rest
    parts = [dispatch(op, (p, tuple(p.shape), None, None, eps)) for p in components(self)]
    out = rebuild([p[0] for p in parts], self)
    out = out if weight is None else out * weight
    stack = function("stack")
    return out if bias is None else out + bias, stack([p[1] for p in parts]), stack([p[2] for p in parts])


def _layer_norm_strided(op: Operator, self: Tensor, normalized_shape, *rest):
    parts = components(self)
    axis = self.ndim - len(normalized_shape)
    common = [len({p.shape[d] for p in parts}) == 1 for d in range(self.ndim - 1)]
    if axis < 2 and not all(common[axis - 1 :]) or axis < 1:
        raise RuntimeError(
            f"normalized_shape extends into irregular dimensions for the nested tensor: got {list(normalized_shape)}"
        )
    for d, wanted in enumerate(normalized_shape):
        have = parts[0].shape[axis - 1 + d]
        if have != wanted:
            raise RuntimeError(
                f"The shape at dimension {d} of normalized_shape, {wanted}, does not match that of the components, {have}"
            )
    results = [dispatch(op, (p, normalized_shape, *rest)) for p in parts]
    first = rebuild([r[0] for r in results], self)
    return first, *(function("cat")([r[i].reshape(-1) for r in results]) for i in (1, 2))


@nested_rule("masked_fill", "masked_scatter")
def masked(op: Operator, self, mask, value):
    from .operators import pointwise

    return pointwise(op, self, mask, value)


@nested_rule("frexp")
def frexp(op: Operator, self):
    return type(result := dispatch(op, (get_values(self),)))([from_values(r, self) for r in result])


@nested_rule("masked_select")
def masked_select(op: Operator, self: Tensor, mask: Tensor) -> Tensor:
    """The elements of each component where the mask holds, as components of one dimension."""
    if not is_nested(mask) or self.ndim != 2:
        raise RuntimeError("masked_select only support 2-D selections currently")
    pairs = zip(components(self), components(mask), strict=True)
    return rebuild([dispatch(op, (p, m)) for p, m in pairs], self)


@nested_rule("_is_all_true", "_is_any_true")
def truth_of_values(op: Operator, self: Tensor) -> Tensor:
    """Of all that the packed values hold, between components too."""
    return dispatch(op, (get_values(self),))
