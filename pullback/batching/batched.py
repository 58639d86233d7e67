"""Batched tensors: what a function sees inside `vmap`.

A batched tensor has the shape of one example; it stands for all of them. It wraps a `value` that has one more dimension,
`dim`, at the `level` of its vmap. It shares the value's place in the autograd graph, so gradients flow through it.
`BatchLevel.process` runs an operator on batched arguments by the operator's vmap rule, its family's, or else by a loop.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress

from ..core import modes
from ..core.geometry import Geometry
from ..core.modes import ambient
from ..core.node import requires_grad
from ..core.tensor import TRANSFORMED, Tensor, assemble, stride_of
from ..ops.system.dispatch import dispatch
from ..ops.system.inplace import check_cast
from ..ops.system.operator import DataDependent, Operator
from ..ops.system.return_types import ResultTuple
from .examples import draw_examples, draws, loop_rule, unbatched_write
from .interpreters import TransformType


class Wrapped:
    """How a batched tensor is made: value, batch dimension, level."""

    __slots__ = ("value", "dim", "level")

    def __init__(self, value: Tensor, dim: int, level: BatchLevel):
        self.value = value
        self.dim = dim
        self.level = level


def make_batched(value: Tensor, dim: int, level: BatchLevel) -> Tensor:
    """A batched tensor around `value`, whose dimension `dim` is the batch."""
    dim %= value.ndim
    shape, stride = tuple(value.shape), stride_of(value)
    array = Geometry(shape[:dim] + shape[dim + 1 :], stride[:dim] + stride[dim + 1 :], value.dtype.numpy)
    t = assemble(
        Tensor, array, value.dtype, value.device, TRANSFORMED, value._autograd, value._counter, None, value._offset
    )
    t.wrapped = Wrapped(value, dim, level)
    return t


def unwrap(t, level: BatchLevel):
    """(value, batch dimension) of an argument at a level; (itself, None) where it is not batched there."""
    if isinstance(t, Tensor) and t._keys & TRANSFORMED:
        w = t.__dict__.get("wrapped")
        if w is not None and w.level is level:
            return w.value, w.dim
    return t, None


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The value under a batched tensor (under all its levels if `recurse`), to look at; any other tensor as it is."""
    wrapped = tensor.__dict__.get("wrapped")
    if wrapped is None:
        return tensor
    return debug_unwrap(wrapped.value) if recurse else wrapped.value


def unwrap_argument(value, level: BatchLevel):
    if isinstance(value, tuple) and any(isinstance(v, Tensor) for v in value):
        pairs = [unwrap(v, level) for v in value]
        dims = tuple(d for _, d in pairs)
        return tuple(v for v, _ in pairs), dims if any(d is not None for d in dims) else None
    return unwrap(value, level)


class outside(modes.other_stack):
    """Run a block as if a level (and all levels inside it) were not there."""

    name, bit = "transforms", modes.TRANSFORM

    def __init__(self, level):
        self.level = level

    def __enter__(self) -> None:
        self.replace(ambient.transforms[: ambient.transforms.index(self.level)])


@contextmanager
def drawing_once():
    """Inside, what draws random numbers draws once for all examples of every vmap."""
    before = [(level, level.randomness) for level in ambient.transforms]
    for level, _ in before:
        level.randomness = "same"
    try:
        yield
    finally:
        for level, randomness in before:
            level.randomness = randomness


class BatchLevel:
    """One active vmap."""

    def __init__(self, size: int, randomness: str = "error"):
        self.size = size
        self.randomness = randomness
        self.transparent = False  # whether custom functions need no batching rule of their own inside

    def __enter__(self) -> BatchLevel:
        ambient.transforms = [*ambient.transforms, self]
        ambient.switch(modes.TRANSFORM, True)
        ambient.function_levels += 1
        self.depth = ambient.function_levels
        return self

    def __exit__(self, *exc) -> None:
        ambient.transforms = [t for t in ambient.transforms if t is not self]
        ambient.switch(modes.TRANSFORM, ambient.transforms)
        ambient.function_levels -= 1

    # ---- as an interpreter (`interpreters`)
    def key(self) -> TransformType:
        return TransformType.Vmap

    def level(self) -> BatchLevel:
        return self

    def lower(self) -> outside:
        return outside(self)

    def process(self, op: Operator, args: tuple):
        """Run an operator under this level."""
        pairs = [unwrap_argument(a, self) for a in args]
        values, dims = tuple(v for v, _ in pairs), tuple(d for _, d in pairs)
        with outside(self):
            if draws(op):
                result = draw_examples(op, values, dims, self.size, self.randomness)
                return args[0] if op.inplace_of is not None else self.wrap_result(*result)
            if all(d is None for d in dims):
                return dispatch(op, values)
            if op.inplace_of is not None:
                return (
                    self.reshape(op, args[0], values, dims)
                    if op.inplace_of.is_view
                    else self.write(op, args[0], values, dims)
                )
            own = op.batching
            if own is None and op.meta_rule is not None and op.family.checks_examples(op):
                with suppress(DataDependent):
                    op.family.check_example(
                        op, args
                    )  # an example has fewer dimensions than the batch: the rule below could not tell
            out, out_dims = batch_rule(op, values, dims, self.size) if own is None else own(values, dims, self)
            return self.wrap_result(out, out_dims)

    def wrap_result(self, out, dims):
        if isinstance(out, Tensor):
            return out if dims is None else make_batched(out, dims, self)
        if isinstance(out, (tuple, list)):
            each = dims if isinstance(dims, (tuple, list)) else [dims] * len(out)
            result = [self.wrap_result(o, d) for o, d in zip(out, each, strict=True)]
            return type(out)(result) if isinstance(out, (list, ResultTuple)) else tuple(result)
        return out

    def reshape(self, op: Operator, target: Tensor, values: tuple, dims: tuple) -> Tensor:
        """An in-place operator that writes no element: the batched tensor becomes the view of its value."""
        value, dim = batch_rule(op.inplace_of, values, dims, self.size)
        result = make_batched(value, dim, self)
        for name in ("_array", "_autograd", "_counter", "_memory", "_offset", "_view_info", "wrapped"):
            setattr(target, name, getattr(result, name))
        return target

    def write(self, op: Operator, written: Tensor, values: tuple, dims: tuple) -> Tensor:
        """An in-place operator: the functional rule, then a copy into the value."""
        if dims[0] is None:
            raise unbatched_write(op)
        target = values[0]
        if op.differentiable and any(
            requires_grad(t) for t in op.tensors(values)
        ):  # rules keep what the copy overwrites
            values = (target.clone(), *values[1:])
        out, out_dim = batch_rule(op.inplace_of, values, dims, self.size)
        if out_dim is None:
            out = out.unsqueeze(dims[0])
        else:
            out = out.movedim(out_dim, dims[0])
        if out.shape != target.shape:
            raise RuntimeError(
                f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(out.shape)}"
            )
        check_cast(out.dtype, target.dtype)
        target.copy_(out)
        return written


def batch_rule(op: Operator, values: tuple, dims: tuple, size: int):
    """(result, batch dimension) by the operator's own rule, its family's, or a loop over examples."""
    result = op.vmap(values, dims, size) if op.vmap is not None else op.family.vmap(op, values, dims, size)
    return result if result is not None else loop_rule(op, values, dims, size)
