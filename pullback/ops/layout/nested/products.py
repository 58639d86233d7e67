"""Products of nested tensors: with matrices, with one another, attention, and look-ups in tables."""

from __future__ import annotations

from ....core.tensor import Tensor
from ...system.dispatch import dispatch
from ...system.operator import Operator
from .layouts import is_jagged, is_nested
from .operators import components, from_values, function, get_values, nest, nested_rule, rebuild


@nested_rule("matmul")
def matmul(op: Operator, self: Tensor, other: Tensor) -> Tensor:
    """A nested tensor times a matrix, or component by component with another tensor of as many."""
    template = self if is_nested(self) else other
    if not is_jagged(template):
        return _matmul_strided(self, other)
    if is_nested(self) and not is_nested(other) and other.ndim == 2 and self._array.ragged_idx < self.ndim - 1:
        return nest(get_values(self).matmul(other), self._array.structure, self._array.ragged_idx)
    return _by_component(self, other)


def _by_component(self: Tensor, other: Tensor) -> Tensor:
    template = self if is_nested(self) else other
    count = template._array.structure.count
    left, right = (_parts(t, count) for t in (self, other))
    if left is None or right is None:
        shapes = " and ".join(str(tuple(t._array.shape)) for t in (self, other))
        raise RuntimeError(f"matmul(): not supported between inputs of shapes {shapes}")
    results = [a.matmul(b) for a, b in zip(left, right, strict=True)]
    row = is_nested(self) and self._array.ragged_idx == self.ndim - 2
    column = is_nested(other) and other._array.ragged_idx == other.ndim - 1
    rank = results[0].ndim + 1
    if row:
        return rebuild(results, self, rank - 2)
    if column:
        return rebuild(results, other, rank - 1)
    batch = is_nested(self) and self._array.ragged_idx < self.ndim - 2
    return rebuild(results, template, template._array.ragged_idx if batch else None)


def _parts(t: Tensor, count: int) -> list[Tensor] | None:
    """What each component meets: its own component, its own matrix of a dense stack, or the one matrix that there is."""
    if is_nested(t):
        return components(t) if t._array.structure.count == count else None
    if t.ndim <= 2:
        return [t] * count
    return list(t.unbind(0)) if t.shape[0] == count else None


def _matmul_strided(self: Tensor, other: Tensor) -> Tensor:
    nested = is_nested(self), is_nested(other)
    if not all(nested) and not (nested[0] and other.ndim == 2):
        kind = "a nested self and non-nested other" if nested[0] else "a non-nested self and nested other"
        if not (nested[0] and other.ndim > 2 and other.shape[0] == self._array.shape[0]):
            raise RuntimeError(f"Expected both to be nested, but got {kind}")
    if not nested[1] and other.ndim == 2:
        return rebuild([p.matmul(other) for p in components(self)], self)
    for place, t in (("1st", self), ("2nd", other)):
        if t.ndim < 3:
            raise RuntimeError(
                f"matmul: For nested tensors, only inputs with >= 3 dims are currently supported. {place} input has rank: {t.ndim}"
            )
    counts = [t._array.shape[0] for t in (self, other)]
    if counts[0] != counts[1]:
        raise RuntimeError(
            f"matmul: Expected size for the 1st dimension of 2nd input tensor to be: {counts[0]} but got: {counts[1]}."
        )
    if self.ndim != other.ndim:
        raise RuntimeError(f"matmul: both inputs must have the same rank, got {self.ndim} and {other.ndim}")
    right = components(other) if nested[1] else list(other.unbind(0))
    return rebuild([_product(a, b) for a, b in zip(components(self), right, strict=True)], self)


def _product(a: Tensor, b: Tensor) -> Tensor:
    if a.shape[:-2] != b.shape[:-2]:
        raise RuntimeError(
            f"matmul: For nested tensors, batch dimensions must have the same sizes, got {list(a.shape)} and {list(b.shape)}"
        )
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"matmul: Nested tensors cannot be matrix multiplied {_sizes_of(a, b)}")
    return a.matmul(b)


def _matrix_product(i: int, a: Tensor, b: Tensor) -> Tensor:
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(f"{i}-th nested matrices in batch cannot be multiplied {_sizes_of(a, b)}")
    return a.mm(b)


def _sizes_of(a: Tensor, b: Tensor) -> str:
    return f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"


@nested_rule("bmm")
def bmm(op: Operator, self: Tensor, other: Tensor) -> Tensor:
    for name, t in (("batch1", self), ("batch2", other)):
        if t.ndim != 3:
            if is_jagged(self if is_nested(self) else other):
                raise ValueError(f"bmm(): {'input' if t is self else 'mat2'} must be 3D")
            raise RuntimeError(f"{name} must be a 3D tensor")
    if is_jagged(self if is_nested(self) else other):
        return _by_component(self, other)
    counts = [t._array.shape[0] for t in (self, other)]
    if counts[0] != counts[1]:
        raise RuntimeError(
            f"Expected size for the 1st dimension of batch2 tensor to be: {counts[0]} but got: {counts[1]}."
        )
    left, right = (components(t) if is_nested(t) else list(t.unbind(0)) for t in (self, other))
    template = self if is_nested(self) else other
    return rebuild([_matrix_product(i, a, b) for i, (a, b) in enumerate(zip(left, right, strict=True))], template)


@nested_rule("linear")
def linear(op: Operator, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if is_nested(weight):
        raise RuntimeError("Linear does not support nested weight when input is a nested tensor.")
    if not is_jagged(input):
        _check_linear(input, weight)
        return rebuild([dispatch(op, (p, weight, bias)) for p in components(input)], input)
    if input._array.ragged_idx == input.ndim - 1:
        raise RuntimeError("linear(): not supported for NestedTensor on ragged dim")
    return from_values(dispatch(op, (get_values(input), weight, bias)), input)


def _check_linear(input: Tensor, weight: Tensor) -> None:
    if input.ndim != 3 or weight.ndim != 2:
        raise RuntimeError(
            "Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. "
            f"Nested tensor dim: {input.ndim}. Dense tensor dim: {weight.ndim}"
        )
    if not input.is_contiguous():
        raise RuntimeError("for now linear only supports contiguous nested tensor")
    lasts = sorted({s[-1] for s in input._array.structure.sizes})
    if len(lasts) > 1:
        raise RuntimeError(
            "Expected all tensors in nested tensor to have the same trailing dimension, instead last dimension equals: "
            + ", ".join(map(str, lasts))
        )
    if lasts and lasts[0] != weight.shape[1]:
        raise RuntimeError(
            "Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) 'last_dim' to equal 'weight.size(1), "
            f"but got: last_dim = {lasts[0]}, and weight.size(1) = {weight.shape[1]}"
        )


@nested_rule("scaled_dot_product_attention")
def attention(op: Operator, query, key, value, mask=None, dropout: float = 0.0, causal: bool = False, *rest):
    """Attention of each component on its own."""
    strided = any(is_nested(t) and not is_jagged(t) for t in (query, key, value))
    if mask is not None and (strided or not is_nested(mask)):
        raise RuntimeError(
            "scaled_dot_product_attention(): not supported when an explicit attn_mask is set and inputs are nested"
        )
    if mask is None and _ragged_batch(query, key, value):
        return from_values(dispatch(op, (*map(get_values, (query, key, value)), None, dropout, causal, *rest)), query)
    count = query._array.structure.count if is_nested(query) else query.shape[0]
    if causal and strided:
        raise RuntimeError("scaled_dot_product_attention(): not supported when is_causal=True for nested inputs")
    rows = [components(t) if is_nested(t) else [t[i] for i in range(count)] for t in (query, key, value)]
    masks = [None] * count if mask is None else components(mask)
    results = [
        dispatch(op, (q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), m, dropout, causal, *rest)).squeeze(0)
        for q, k, v, m in zip(*rows, masks, strict=True)
    ]
    if not is_nested(query):
        return function("stack")(results)
    return rebuild(results, query)


def _ragged_batch(*tensors: Tensor) -> bool:
    """Whether jagged tensors are ragged alike in front of their matrices, so that attention can take all rows at once."""
    first = tensors[0]
    if not all(is_nested(t) and is_jagged(t) for t in tensors) or first._array.ragged_idx >= first.ndim - 2:
        return False
    return all(t._array.form[:2] == first._array.form[:2] for t in tensors)


@nested_rule("embedding")
def embedding(op: Operator, weight: Tensor, indices: Tensor, *rest) -> Tensor:
    if is_jagged(indices):
        return nest(
            dispatch(op, (weight, get_values(indices), *rest)), indices._array.structure, indices._array.ragged_idx
        )
    return rebuild([dispatch(op, (weight, p, *rest)) for p in components(indices)], indices)
