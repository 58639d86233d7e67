"""Views and joins of nested tensors: the batch stays where it is, and the ragged dimension is never cut.

Jagged tensors are views on their values. Components of the strided layout may lie anywhere in the values, so transposing one
moves nothing either.
"""

from __future__ import annotations

import itertools
import math

from ....core import device as devices
from ....core.geometry import wrap_dim
from ....core.tensor import Tensor
from ...system.dispatch import dispatch
from ...system.operator import Operator
from .layouts import RaggedSize, Structure, is_jagged, is_nested
from .operators import (
    components,
    function,
    get_values,
    nest,
    nest_view,
    nested_rule,
    not_implemented,
    packed,
    rebuild,
)


def _inner(op: Operator, self: Tensor, dim: int, ragged_too: bool = False) -> int:
    """A dimension that is neither the batch nor the ragged one, as a dimension of a component."""
    d = wrap_dim(dim, self.ndim)
    if d == 0:
        raise RuntimeError(f"{op.name}(): not supported for NestedTensor on dim=0")
    if not ragged_too and is_jagged(self) and d == self._array.ragged_idx:
        raise RuntimeError(f"{op.name}(): not supported for NestedTensor on ragged dim")
    return d - 1


@nested_rule("unbind")
def unbind(op: Operator, self, dim: int = 0):
    if wrap_dim(dim, self.ndim):
        if is_jagged(self):
            raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0, got dimension {dim} instead.")
    if is_jagged(self):
        _check_spans(self)
    return tuple(components(self))


def _check_spans(self: Tensor) -> None:
    if self._array.ragged_idx < 1:
        raise RuntimeError(
            f"unbind(): nested tensor ragged_idx out of bounds (>= 1): the batch comes before it, but it is {self._array.ragged_idx}"
        )
    total = self._array.values.shape[self._array.ragged_idx - 1]
    for i, (start, length) in enumerate(self._array.structure.spans()):
        if start + length > total:
            raise RuntimeError(
                f"unbind(): nested tensor offsets and lengths do not match ragged_idx dimension: component {i} ends at "
                f"{start + length}, out of bounds for {total}"
            )


@nested_rule("select")
def select(op: Operator, self, dim: int, index: int):
    if wrap_dim(dim, self.ndim) == 0:
        parts = components(self)
        if not -len(parts) <= index < len(parts):
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {len(parts)}")
        return parts[index]
    if not is_jagged(self):
        return rebuild([dispatch(op, (p, wrap_dim(dim, self.ndim) - 1, index)) for p in components(self)], self)
    if self._array.structure.lengths is not None:
        raise RuntimeError("select(): not yet supported on dim != 0 for non-contiguous nested tensor with holes")
    d = wrap_dim(dim, self.ndim)
    ragged = self._array.ragged_idx
    if d == ragged:
        return function("stack")([dispatch(op, (p, d - 1, index)) for p in components(self)])
    return nest_view(dispatch(op, (get_values(self), d - 1, index)), self._array.structure, ragged - (d < ragged))


@nested_rule("slice")
def slice_(op: Operator, self, dim: int = 0, start=None, end=None, step: int = 1):
    d = wrap_dim(dim, self.ndim)
    if d == 0:
        rows = slice(start, end, step)
        return rebuild(components(self)[rows], self) if is_jagged(self) else _some(self, rows)
    if is_jagged(self) and d == self._array.ragged_idx:
        whole = (start or 0) == 0 and (end is None or isinstance(end, RaggedSize) or end == 2**63 - 1) and step == 1
        if not whole:
            raise RuntimeError("slice(): not supported for NestedTensor on ragged dim")
        return self
    if is_jagged(self):
        return view_like(dispatch(op, (get_values(self), d - 1, start, end, step)), self)
    return _sliced(self, d - 1, start, end, step)


@nested_rule("narrow")
def narrow(op: Operator, self, dim: int, start, length):
    if wrap_dim(dim, self.ndim) == 0 and not is_jagged(self):
        return _some(self, slice(int(start), int(start) + length))
    inner = _inner(op, self, dim)
    if is_jagged(self):
        return view_like(get_values(self).narrow(inner, start, length), self)
    return _narrowed(self, inner, int(start), length)


# ---- pieces
@nested_rule("split", "split_with_sizes")
def split(op: Operator, self, sizes, dim: int = 0):
    if not is_jagged(self):
        if wrap_dim(dim, self.ndim) != self.ndim - 1:
            raise RuntimeError(f"{op.name} for nested tensors is currently only supported for the last dimension.")
        if not self.is_contiguous():
            raise RuntimeError(f"{op.name} expects `self` to be contiguous.")
        _check_sum(op, self, sizes)
    inner = _inner(op, self, dim)
    if is_jagged(self):
        return type(pieces := dispatch(op, (get_values(self), sizes, inner)))([view_like(p, self) for p in pieces])
    if not self._array.structure.sizes:
        return (self,)
    last = self._array.structure.sizes[0][-1]
    lengths = [min(sizes, last - at) for at in range(0, last, sizes)] if isinstance(sizes, int) else list(sizes)
    return _pieces(self, inner, lengths)


def _pieces(self: Tensor, d: int, lengths: list[int]) -> tuple:
    starts = itertools.accumulate(lengths, initial=0)
    return tuple(_narrowed(self, d, start, length) for start, length in zip(starts, lengths, strict=False))


def _check_sum(op: Operator, self: Tensor, sizes) -> None:
    last = self._array.structure.sizes[0][-1] if self._array.structure.sizes else 0
    if op.name == "split_with_sizes" and sum(sizes) != last:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {last} (input tensor's size at dimension -1), but got "
            f"split_sizes={list(sizes)}"
        )


def _last_part(i: int, chunks: int):
    """The i-th of equal parts of each component along the last dimension."""

    def window(size, stride, first):
        length = size[-1] // chunks
        return (*size[:-1], length), stride, first + i * length * stride[-1]

    return window


@nested_rule("chunk")
def chunk(op: Operator, self, chunks: int, dim: int = 0):
    d = wrap_dim(dim, self.ndim)
    if not is_jagged(self):
        if d != self.ndim - 1:
            raise RuntimeError("Chunk for nested tensors is currently only supported for the last dimension.")
        if not self.is_contiguous():
            raise RuntimeError("chunk expects `self` to be contiguous.")
        if any(s[-1] % chunks for s in self._array.structure.sizes):
            raise RuntimeError(
                f"Chunk for nested tensors is only supported for nested tensors with trailing dimension divisible by chunks. Got {chunks}"
            )
        return tuple(strided_view(self, _last_part(i, chunks)) for i in range(chunks))
    if d == 0:
        parts = components(self)
        per = -(-len(parts) // chunks)
        return tuple(rebuild(parts[i : i + per], self) for i in range(0, len(parts), per))
    inner = _inner(op, self, dim)
    return tuple(view_like(p, self) for p in dispatch(op, (get_values(self), chunks, inner)))


# ---- order of dimensions
@nested_rule("transpose")
def transpose(op: Operator, self, dim0: int, dim1: int):
    a, b = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    if a == b:
        return self
    if 0 in (a, b):
        if is_jagged(self):
            raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    order = list(range(self.ndim))
    order[a], order[b] = b, a
    return _permuted(self, order)


@nested_rule("permute")
def permute(op: Operator, self, dims):
    if len(dims) != self.ndim:
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({self.ndim}) does not match the length of the desired "
            f"ordering of dimensions ({len(dims)})."
        )
    order = [wrap_dim(d, self.ndim) for d in dims]
    if len(set(order)) != len(order):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if order[0]:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    if is_jagged(self) and self._array.structure.lengths is not None:
        raise ValueError("permute(): not supported on jagged layout nested tensor with holes")
    return _permuted(self, order)


def _permuted(self: Tensor, order: list[int]) -> Tensor:
    inner = [d - 1 for d in order[1:]]
    if is_jagged(self):
        return nest_view(get_values(self).permute(inner), self._array.structure, order.index(self._array.ragged_idx))
    return strided_view(
        self, lambda size, stride, start: (tuple(size[d] for d in inner), tuple(stride[d] for d in inner), start)
    )


def strided_view(self: Tensor, window) -> Tensor:
    """The same memory, of which `window(size, stride, start)` says what each component now is."""
    s = self._array.structure
    rows = [window(*row) for row in zip(s.sizes, *s.places(), strict=True)]
    sizes, strides, starts = (tuple(column) for column in zip(*rows, strict=True))
    return nest_view(get_values(self), _structure(sizes, strides, starts))


def _structure(sizes: tuple, strides: tuple, starts: tuple) -> Structure:
    """Components that lie anywhere; where they are packed row by row, it says so."""
    plain = Structure(devices.strided, sizes=sizes)
    if plain.places() == (strides, starts):
        return plain
    return Structure(devices.strided, sizes=sizes, strides=strides, starts=starts)


def _some(self: Tensor, rows: slice) -> Tensor:
    """Some components of the strided layout, in the memory where they are: from the first of them to the last."""
    s = self._array.structure
    sizes, strides, starts = (column[rows] for column in (s.sizes, *s.places()))
    first = min(starts, default=0)
    end = max((at + _extent(size, stride) for size, stride, at in zip(sizes, strides, starts, strict=True)), default=0)
    return nest_view(
        get_values(self).narrow(0, first, max(end - first, 0)),
        _structure(sizes, strides, tuple(at - first for at in starts)),
    )


def _extent(size: tuple, stride: tuple) -> int:
    """How many elements of the memory a component spans."""
    return 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if math.prod(size) else 0


def _as_parts(self: Tensor, change) -> Tensor:
    """The strided layout with `change(component)` in the place of each component."""
    return _of_parts(self, [change(p) for p in components(self)])


def _of_parts(self: Tensor, parts: list[Tensor]) -> Tensor:
    """Tensors in the place of components: a view where they all are still where those were, a copy otherwise."""
    memory, at = self._array.values._memory, self._array.values._offset
    if not parts or memory is None or any(p._memory is not memory for p in parts):
        return rebuild(parts, self)
    sizes, strides = tuple(tuple(p.shape) for p in parts), tuple(tuple(p.stride()) for p in parts)
    return nest_view(get_values(self), _structure(sizes, strides, tuple(p._offset - at for p in parts)))


def _sliced(self: Tensor, d: int, start, end, step: int) -> Tensor:
    """A part of each component of the strided layout, where that is."""
    return _as_parts(self, lambda p: p[(slice(None),) * d + (slice(start, end, step),)])


def view_like(values: Tensor, template: Tensor) -> Tensor:
    """Packed values that view those of `template`, in its structure."""
    return nest_view(values, template._array.structure, template._array.ragged_idx)


def _narrowed(self: Tensor, d: int, start: int, length: int) -> Tensor:
    """A part of each component of the strided layout along one of its dimensions."""

    def window(size, stride, first):
        return (*size[:d], length, *size[d + 1 :]), stride, first + start * stride[d]

    return strided_view(self, window)


# ---- dimensions of size one
@nested_rule("unsqueeze")
def unsqueeze(op: Operator, self, dim: int):
    d = wrap_dim(dim, self.ndim + 1)
    if d == 0:
        if is_jagged(self):
            raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
        raise RuntimeError("For nested tensors, unsqueezing dimension 0 is not supported")
    if not is_jagged(self):
        return _as_parts(self, lambda p: p.unsqueeze(d - 1))
    ragged = self._array.ragged_idx
    return nest_view(get_values(self).unsqueeze(d - 1), self._array.structure, ragged + (d <= ragged))


@nested_rule("squeeze")
def squeeze(op: Operator, self, dim=None):
    if not is_jagged(self):
        return _squeeze_strided(self, dim)
    if dim is None:
        raise not_implemented(op, (self,))
    dims = sorted(_inner(op, self, d) for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))
    gone = [d for d in dims if self._array.values.shape[d] == 1]
    ragged = self._array.ragged_idx - sum(d + 1 < self._array.ragged_idx for d in gone)
    return nest_view(get_values(self).squeeze(tuple(gone)), self._array.structure, ragged) if gone else self


def _squeeze_strided(self: Tensor, dim) -> Tensor:
    if dim is None:
        raise RuntimeError("For nested tensors, squeeze without the dim argument is not supported at this time.")
    d = wrap_dim(dim[0] if isinstance(dim, (tuple, list)) else dim, self.ndim)
    if d == 0:
        raise RuntimeError("For nested tensors, squeezing dimension 0 is not supported at the moment.")
    parts = components(self)
    if any(p.shape[d - 1] != 1 for p in parts):
        return self
    if self.ndim == 2:
        raise RuntimeError("For nested tensors, squeezing a nested tensor of singleton dimensions is not supported")
    return _as_parts(self, lambda p: p.squeeze(d - 1))


# ---- sizes
@nested_rule("view", "reshape", "_unsafe_view", "expand")
def view(op: Operator, self, size, *rest):
    if op.overload == "dtype":
        return view_like(dispatch(op, (get_values(self), size)), self)
    size = tuple(size)
    if not is_jagged(self):
        return _view_strided(op, self, size)
    a = self._array
    if op.name == "expand":
        return _expand(self, size)
    if len(size) == self.ndim and tuple(_known(size, a.shape)) == tuple(a.shape):
        return self
    if a.structure.lengths is not None and op.name == "reshape":
        self = packed(self)
    at = next((i for i, s in enumerate(size) if isinstance(s, RaggedSize)), None)
    if at is None:
        at = a.ragged_idx if len(size) > a.ragged_idx and size[a.ragged_idx] == -1 else None
    if not size or size[0] not in (a.shape[0], -1) or at is None:
        raise RuntimeError(f"view(): cannot view shape {tuple(a.shape)} as {size}")
    before, after = a.shape[1 : a.ragged_idx], a.shape[a.ragged_idx + 1 :]
    inner = list(size[1:])
    inner[at - 1] = a.values.shape[a.ragged_idx - 1]
    if -1 in inner[: at - 1] and -1 not in inner[at:]:
        inner[inner.index(-1)] = math.prod(before) // max(math.prod(s for s in inner[: at - 1] if s != -1), 1)
    if -1 not in inner and (
        math.prod(inner[: at - 1]) != math.prod(before) or math.prod(inner[at:]) != math.prod(after)
    ):
        raise RuntimeError(f"view(): cannot view shape {tuple(a.shape)} as {size}")
    run = "reshape" if op.name == "reshape" else "view"
    values = getattr(get_values(self), run)(inner)
    return (nest if op.name == "_unsafe_view" else nest_view)(values, a.structure, at)


def _known(size: tuple, shape: tuple) -> list:
    return [s if w == -1 else w for w, s in zip(size, shape, strict=True)]


def _expand(self: Tensor, size: tuple) -> Tensor:
    a = self._array
    wanted = _known(size, a.shape) if len(size) == self.ndim else None
    fits = wanted is not None and wanted[0] == a.shape[0] and wanted[a.ragged_idx] == a.shape[a.ragged_idx]
    if not fits:
        raise RuntimeError(f"expand(): cannot expand shape {tuple(a.shape)} -> {size}")
    inner = list(wanted[1:])
    inner[a.ragged_idx - 1] = -1
    return view_like(get_values(self).expand(inner), self)


def _view_strided(op: Operator, self: Tensor, size: tuple) -> Tensor:
    parts = components(self)
    name = "reshape" if op.name == "reshape" else "view"
    if not size:
        raise RuntimeError("shape '[]' is invalid for a nested tensor")
    if not parts:
        raise RuntimeError("empty nested tensor cannot be reshaped")
    if size[0] != len(parts):
        raise RuntimeError(f"{name}: For now nested {name} cannot change or infer the implicit batch dimension")
    if sum(isinstance(s, int) and s == -1 for s in size[1:]) > 1 and len(size) > self.ndim:
        raise RuntimeError("only one dimension can be inferred")
    results = []
    for p in parts:
        wanted = [p.shape[i] if s == -1 and i < p.ndim else s for i, s in enumerate(size[1:])]
        if -1 not in wanted and math.prod(wanted) != p.numel():
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {p.numel()}")
        results.append(p.reshape(wanted) if op.name != "expand" else p.expand(wanted))
    return _of_parts(self, results)


@nested_rule("flatten")
def flatten(op: Operator, self, start_dim: int = 0, end_dim: int = -1):
    a, b = wrap_dim(start_dim, self.ndim), wrap_dim(end_dim, self.ndim)
    if a == b:
        return self
    if a == 0 or is_jagged(self) and a <= self._array.ragged_idx <= b:
        raise RuntimeError("flatten(): not supported for NestedTensor on the batch or the ragged dimension")
    if not is_jagged(self):
        return _as_parts(self, lambda p: p.flatten(a - 1, b - 1))
    ragged = self._array.ragged_idx
    return nest_view(
        get_values(self).flatten(a - 1, b - 1), self._array.structure, ragged - (b - a if b < ragged else 0)
    )


@nested_rule("unflatten")
def unflatten(op: Operator, self, dim: int, sizes):
    d = _inner(op, self, dim)
    ragged = self._array.ragged_idx
    if not is_jagged(self):
        return _as_parts(self, lambda p: p.unflatten(d, sizes))
    return nest_view(
        get_values(self).unflatten(d, sizes), self._array.structure, ragged + (len(sizes) - 1 if d + 1 < ragged else 0)
    )


# ---- joins
@nested_rule("cat")
def cat(op: Operator, tensors, dim: int = 0):
    tensors = tuple(tensors)
    if not all(is_nested(t) for t in tensors):
        if any(is_nested(t) and is_jagged(t) for t in tensors):
            template = next(t for t in tensors if is_nested(t))
            tensors = tuple(t if is_nested(t) else t.expand_as(template) for t in tensors)
        else:
            raise RuntimeError("cat(): expected each tensor in given list to be nested")
    first = tensors[0]
    d = wrap_dim(dim, first.ndim)
    if not is_jagged(first):
        return _cat_strided(op, tensors, d)
    if d == 0:
        raise RuntimeError("cat(): not supported for NestedTensor on dim=0")
    if any(t._array.structure.ragged != first._array.structure.ragged for t in tensors):
        raise RuntimeError(
            "cat(): expected all nested tensors to have matching ragged structures outside of the concatenated dim"
        )
    return nest(dispatch(op, (tuple(map(get_values, tensors)), d - 1)), first._array.structure, first._array.ragged_idx)


def _cat_strided(op: Operator, tensors: tuple, d: int) -> Tensor:
    first = tensors[0]
    if not all(t.is_contiguous() for t in tensors):
        raise RuntimeError("cat(): only contiguous nested tensors are supported")
    if d == 0:
        return rebuild([p for t in tensors for p in components(t)], first)
    sizes = [[(*s[: d - 1], *s[d:]) for s in t._array.structure.sizes] for t in tensors]
    if any(s != sizes[0] for s in sizes):
        raise RuntimeError(
            "cat(): expected all nested tensors to have matching ragged structures outside of the concatenated dim"
        )
    return rebuild([dispatch(op, (parts, d - 1)) for parts in zip(*map(components, tensors), strict=True)], first)


@nested_rule("stack")
def stack(op: Operator, tensors, dim: int = 0):
    tensors = tuple(tensors)
    if not all(is_nested(t) for t in tensors):
        raise RuntimeError("stack(): expected all nested tensors inputs")
    first = tensors[0]
    if any(t.ndim != first.ndim for t in tensors):
        raise RuntimeError("stack(): expected all nested tensors to have the same dim")
    if any(t._array.shape != first._array.shape for t in tensors) or not is_jagged(first):
        raise RuntimeError("stack(): expected all nested tensors to have the same nested structure")
    d = wrap_dim(dim, first.ndim + 1)
    if d == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    ragged = first._array.ragged_idx
    return nest(dispatch(op, (tuple(map(get_values, tensors)), d - 1)), first._array.structure, ragged + (d <= ragged))


@nested_rule("new_zeros", "new_ones", "new_full", "new_empty")
def new(op: Operator, self, *rest):
    """A dense tensor of the dtype and device of a nested one."""
    return dispatch(op, (self._array.values, *rest))


@nested_rule("expand_as")
def expand_as(op: Operator, self: Tensor, other: Tensor) -> Tensor:
    return self + function("zeros_like")(other)
