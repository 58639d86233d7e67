"""New tensors like another one: `zeros_like(x)` has its shape, `x.new_zeros(...)` its dtype and device alone.

In: a tensor, and the options of every factory. Out: a tensor in the order of dimensions that the memory format asks for.
"""

from __future__ import annotations

from ...core import device as devices
from ...core import dtype as dtypes
from ...core import modes
from ...core.device import preserve_format
from ...core.layers import above
from ...core.modes import ambient
from ...core.storage import unset
from ...core.tensor import DISPATCH_SUBCLASS, FAKE, SPARSE, TRANSFORMED, Tensor
from ..eager.functions import bypassing
from ..family.factory import factory
from ..family.formats import dense_strides
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import Operator, Spec, exports, key_of
from .factories import (
    _OPTIONS,
    _SPARSE,
    _as_number,
    _blank,
    _options,
    _sized,
    _strided_blank,
    _strided_spec,
    empty,
    empty_op,
    empty_strided,
    filled,
    finish,
    format_strides,
    full,
    ones,
    ones_op,
    sizes_from,
    zeros,
    zeros_op,
)
from .make_lowering import filled_with, filled_with_argument

_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None"


def _like_spec(self, *rest) -> Spec:
    dtype, layout, device, pin, memory_format = rest[-5:]
    return Spec(self._array.shape, dtype or self.dtype, like_strides(self, memory_format))


def like_strides(t: Tensor, memory_format) -> tuple | None:
    """Strides of a new tensor like `t` in a memory format; without one, `dense_strides`."""
    return (
        dense_strides(t) if memory_format in (None, preserve_format) else format_strides(t._array.shape, memory_format)
    )


def _filled_with(xp, spec: Spec, self, value, *_):
    return filled(xp, spec, _as_number(value, spec.dtype))


empty_like_op = factory(
    f"empty_like(Tensor self, {_LIKE}) -> Tensor",
    shape=_like_spec,
    kernel=lambda xp, spec, *_: unset(_blank(xp, spec)),
    reads_shape_only=True,
)
zeros_like_op = factory(
    f"zeros_like(Tensor self, {_LIKE}) -> Tensor",
    lower=filled_with(0),
    shape=_like_spec,
    kernel=lambda xp, spec, *_: filled(xp, spec, 0),
)
ones_like_op = factory(
    f"ones_like(Tensor self, {_LIKE}) -> Tensor",
    lower=filled_with(1),
    shape=_like_spec,
    kernel=lambda xp, spec, *_: filled(xp, spec, 1),
)
full_like_op = factory(
    f"full_like(Tensor self, Scalar fill_value, {_LIKE}) -> Tensor",
    lower=filled_with_argument(1),
    shape=_like_spec,
    kernel=_filled_with,
)


def _new_spec(self, size, dtype, *rest) -> Spec:
    return Spec(_sized(size, dtype, 0, 0, 0).shape, dtype or self.dtype)


new_empty_op = factory(
    f"new_empty(Tensor self, SymInt[] size, {_OPTIONS}) -> Tensor",
    shape=_new_spec,
    kernel=lambda xp, spec, *_: unset(_blank(xp, spec)),
    reads_shape_only=True,
)
new_zeros_op = factory(
    f"new_zeros(Tensor self, SymInt[] size, {_OPTIONS}) -> Tensor",
    lower=filled_with(0),
    shape=_new_spec,
    kernel=lambda xp, spec, *_: filled(xp, spec, 0),
)
new_ones_op = factory(
    f"new_ones(Tensor self, SymInt[] size, {_OPTIONS}) -> Tensor",
    lower=filled_with(1),
    shape=_new_spec,
    kernel=lambda xp, spec, *_: filled(xp, spec, 1),
)
new_full_op = factory(
    f"new_full(Tensor self, SymInt[] size, Scalar fill_value, {_OPTIONS}) -> Tensor",
    lower=filled_with_argument(2),
    shape=lambda self, size, fill_value, *rest: _new_spec(self, size, *rest),
    kernel=lambda xp, spec, self, size, value, *_: filled(xp, spec, _as_number(value, spec.dtype)),
)


def _batched_strided(args: tuple, dims: tuple, size: int):
    """Examples one after another, each with the strides that were asked for."""
    like, shape, stride, *rest = args
    own = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    return new_empty_strided_op(like, (size, *shape), (own, *stride), *rest), 0


new_empty_strided_op = factory(
    f"new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, {_OPTIONS}) -> Tensor",
    shape=lambda self, size, stride, dtype, *_: _strided_spec(size, dtype or self.dtype, stride),
    kernel=lambda xp, spec, *_: unset(_strided_blank(xp, spec)),
    vmap=_batched_strided,
)


def check_input(name: str, input) -> None:
    """`ones_like` and its kin take a tensor to be like."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")


def _make_like(name: str, op: Operator, filled: bool = False):
    def make_filled(
        input,
        fill_value,
        *,
        dtype=None,
        layout=None,
        device=None,
        requires_grad=False,
        pin_memory=None,
        memory_format=None,
    ):
        check_input(name, input)
        dtype, layout, device = _options(name, op, dtype, layout, device, like=input)
        return finish(
            dispatch(op, (input, fill_value, dtype, layout, device, pin_memory, memory_format)), requires_grad
        )

    def make(input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None, memory_format=None):
        check_input(name, input)
        sparse = input.__class__ is Tensor and input._keys & SPARSE and layout is not devices.strided
        if memory_format is not None and sparse:
            raise RuntimeError("memory format option is only supported by strided tensors")
        if op is zeros_like_op and layout in _SPARSE and not input._keys:
            return finish(
                above.empty_sparse(input.shape, layout, dtype or input.dtype, device or input.device), requires_grad
            )
        dtype, layout, device = _options(name, op, dtype, layout, device, like=input)
        return finish(dispatch(op, (input, dtype, layout, device, pin_memory, memory_format)), requires_grad)

    chosen = make_filled if filled else make
    chosen.__name__ = name
    return front(f"torch.{name}")(chosen)


empty_like = _make_like("empty_like", empty_like_op)
zeros_like = _make_like("zeros_like", zeros_like_op)
ones_like = _make_like("ones_like", ones_like_op)
full_like = _make_like("full_like", full_like_op, filled=True)


def batched_as(t, result):
    """Inside vmap: a new tensor with one copy per example, as the tensor it is made from has, so that it can be written to."""
    if not t.numel():
        return result
    example = t.detach().reshape(-1)[0].to(result.dtype)
    always = ones((), dtype=dtypes.bool)
    return exports["torch"]["where"](always, result, example)


_NEW = ("empty", "empty_strided", "full", "ones", "zeros")


def _always(t: Tensor) -> bool:
    return True


@bypassing(*[f"new_{name}.default" for name in _NEW], otherwise=_always)
def _is_watched(t: Tensor) -> bool:
    """Whether it matters from which tensor a new one is made: others only take its dtype and device."""
    return bool(
        t._keys & (FAKE | DISPATCH_SUBCLASS | SPARSE) or ambient.mode & modes.DISPATCH and not t._keys & TRANSFORMED
    )


def _make_new(name: str, build, op: Operator, build_op: Operator):
    @front(f"Tensor.{name}", past=(f"{name}.default", key_of(build_op)))
    def make(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=None, **extra):
        shape = sizes_from(name, size, extra.pop("size", None))
        names = extra.pop("names", None)
        if extra:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(extra))}'")
        if _is_watched(self):
            dtype, layout, device = _options(name, op, dtype, layout, device, like=self)
            return finish(dispatch(op, (self, shape, dtype, layout, device, pin_memory)), requires_grad, names=names)
        result = build(
            shape, dtype=dtype or self.dtype, layout=layout, device=device or self.device,
            requires_grad=requires_grad, names=names,
        )  # fmt: skip
        return batched_as(self, result) if self._keys & TRANSFORMED else result

    make.__name__ = make.__qualname__ = name
    return make


new_empty = _make_new("new_empty", empty, new_empty_op, empty_op)
new_zeros = _make_new("new_zeros", zeros, new_zeros_op, zeros_op)
new_ones = _make_new("new_ones", ones, new_ones_op, ones_op)


@front("Tensor.new_full", past=("new_full.default", "full.default"))
def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=None):
    if _is_watched(self):
        dtype, layout, device = _options("new_full", new_full_op, dtype, layout, device)
        args = (self, sizes_from("new_full", (size,)), fill_value, dtype, layout, device, pin_memory)
        return finish(dispatch(new_full_op, new_full_op.convert(args)), requires_grad)
    result = full(
        size, fill_value, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )
    return batched_as(self, result) if self._keys & TRANSFORMED else result


@front("Tensor.new_empty_strided")
def new_empty_strided(
    self, size, stride, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=None
):
    if _is_watched(self):
        dtype, layout, device = _options("new_empty_strided", new_empty_strided_op, dtype, layout, device)
        args = (self, tuple(size), tuple(stride), dtype, layout, device, pin_memory)
        return finish(dispatch(new_empty_strided_op, args), requires_grad)
    if self._keys & TRANSFORMED:  # each example has memory of its own
        extent = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
        memory = empty((extent,), dtype=dtype or self.dtype, device=device or self.device)
        return finish(batched_as(self, memory).as_strided(tuple(size), tuple(stride)), requires_grad)
    return empty_strided(
        size, stride, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )
