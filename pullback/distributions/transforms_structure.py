"""Transforms that change what counts as one event, or apply several transforms side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import Size, Tensor, cat, stack
from . import constraints
from .parameters import lazy_property, sum_rightmost
from .transform import Transform


class IndependentTransform(Transform):
    """Another transform whose last batch dimensions count as part of the event."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _with_cache(self, cache_size: int) -> Transform:
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Events of shape `in_shape` in another shape with as many elements."""

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0):
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def _with_cache(self, cache_size: int) -> Transform:
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape):
        return _exchange(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return _exchange(shape, self.out_shape, self.in_shape)


def _exchange(shape, old: Size, new: Size):
    """`shape` with the sizes `old` at its end replaced by `new`."""
    if len(shape) < len(old):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(old)
    if tuple(shape[cut:]) != tuple(old):
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
    return shape[:cut] + new


class _SideBySide(Transform):
    """Transforms of parts along dimension `dim`."""

    transforms: list[Transform]
    dim: int

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int):
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def _check(self, value: Tensor, name: str, shown: str | None = None) -> None:
        """`value` has the dimension, and along it as much as the parts take; `name` is what errors call it."""
        expected, described = self._expected()
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for {shown or name} with {value.dim()} dimensions")
        if value.size(self.dim) != expected:
            raise AssertionError(f"{name}.size({self.dim}) = {value.size(self.dim)} must equal {described} {expected}")

    def _expected(self) -> tuple[int, str]:
        raise NotImplementedError

    def _parts(self, value: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def _joined(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x):
        self._check(x, "x", "tensor")
        return self._joined([t(part) for t, part in zip(self.transforms, self._parts(x))])

    def _inverse(self, y):
        self._check(y, "y", "tensor")
        return self._joined([t.inv(part) for t, part in zip(self.transforms, self._parts(y))])

    def _log_dets(self, x: Tensor, y: Tensor) -> list[Tensor]:
        self._check(x, "x")
        self._check(y, "y")
        parts = zip(self.transforms, self._parts(x), self._parts(y))
        return [t.log_abs_det_jacobian(x_part, y_part) for t, x_part, y_part in parts]

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)


class CatTransform(_SideBySide):
    """Stretches of lengths `lengths` along `dim`, each with its own transform."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        return sum(self.lengths)

    def _with_cache(self, cache_size: int) -> Transform:
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _expected(self) -> tuple[int, str]:
        return self.length, "length"

    def _parts(self, value: Tensor) -> list[Tensor]:
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        return [value.narrow(self.dim, start, length) for start, length in zip(starts, self.lengths)]

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = [
            sum_rightmost(term, self.event_dim - t.event_dim) for t, term in zip(self.transforms, self._log_dets(x, y))
        ]
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self):
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_SideBySide):
    """Slices along `dim`, each with its own transform."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)

    def _with_cache(self, cache_size: int) -> Transform:
        return StackTransform(self.transforms, self.dim, cache_size)

    def _expected(self) -> tuple[int, str]:
        return len(self.transforms), "len(transforms)"

    def _parts(self, value: Tensor) -> list[Tensor]:
        return [value.select(self.dim, i) for i in range(value.size(self.dim))]

    _slice = _parts

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        return self._joined(self._log_dets(x, y))

    @constraints.dependent_property
    def domain(self):
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
