"""Writing one tensor or one number into another: `copy_`, `fill_`, `zero_`."""

from __future__ import annotations

from ...core.arrays import assign, library
from ...core.dtype import by_numpy
from ...core.elements import fill as fill_array
from ...core.geometry import broadcast_shapes
from ...core.small import written_once
from ...core.storage import new_array
from ...core.tensor import META, Tensor, wrap
from ..family.base import Family, operator
from ..system.calls import export_operator, front
from ..system.dispatch import dispatch
from ..system.inplace import cast_array
from ..system.operator import Operator, Spec
from .factories import _as_number
from .like import like_strides
from .make_lowering import lower_copy_into


class Copying(Family):
    """The numbers of one tensor in the layout of another."""

    def execute(self, op: Operator, args: tuple) -> Tensor:
        target, src = args[:2]
        spec = _copy_spec(target, src)
        array = new_array(spec.shape, spec.dtype, spec.stride, library(target.device))
        assign(array, cast_array(src._array, src.dtype, target.dtype))
        return wrap(array, target.dtype, target.device)

    def write_plain(self, op: Operator, args: tuple) -> bool:
        target, src = args[:2]
        memory, out = target._memory, target._array
        if not isinstance(src, Tensor) or memory is not None and (src._memory is memory or not written_once(out)):
            return False
        if src._array.shape != out.shape and broadcast_shapes(out.shape, src._array.shape) != out.shape:
            return False
        assign(out, cast_array(src._array, src.dtype, target.dtype))
        target._counter[0] += 1
        return True


def _copy_spec(target: Tensor, src: Tensor, non_blocking=False) -> Spec:
    shape = target._array.shape
    common = broadcast_shapes(shape, src._array.shape)
    if common != shape:
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(common)}")
    return Spec(shape, target.dtype, like_strides(target, None))


def _copy_write(target: Tensor, src: Tensor, non_blocking=False) -> None:
    _copy_spec(target, src)
    if not target._keys & META:
        if src._keys & META:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        assign(target._array, cast_array(src._array, src.dtype, target.dtype))


copy = export_operator(
    Operator(
        "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
        Copying(),
        lower=lower_copy_into,
        meta=_copy_spec,
        function=False,
        method=False,
        inplace=True,
        node="CopyBackwards",
        write=_copy_write,
        vjp={"self": lambda g: g.new_zeros(g.shape), "src": lambda g: g},
        jvp={
            "self": lambda t: t.new_zeros(t.shape),
            "src": lambda t, self_info: t.to(self_info.dtype).expand(self_info.shape),
        },
        cost="cheap",
        cross_device=True,
        opaque="all",
        wraps_numbers=True,
    )
)


def _check_value(value: Tensor) -> None:
    if value._array.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions."
        )


def _fill_write(target: Tensor, value) -> None:
    if isinstance(value, Tensor):
        _check_value(value)
        if not (target._keys | value._keys) & META:  # as any other tensor is copied: what does not fit wraps
            assign(target._array, cast_array(value.to(target.device)._array, value.dtype, target.dtype))
    elif not target._keys & META:
        fill_array(target._array, _as_number(value, target.dtype))


def _zero_write(target: Tensor) -> None:
    _fill_write(target, 0)


def _filled(xp, self, value):
    return xp.full(self.shape, _as_number(value, by_numpy[self.dtype])).astype(self.dtype)


def _fill_meta(self: Tensor, value) -> Spec:
    _as_number(value, self.dtype)
    return Spec(self._array.shape, self.dtype)


fill_scalar = operator(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    kernel=_filled,
    meta=_fill_meta,
    function=False,
    method=False,
    inplace="hidden",
    inplace_node="FillBackward2",
    write=_fill_write,
    expanded=_fill_write,
    vjp=lambda g: g.new_zeros(g.shape),
    cost="cheap",
)
fill_tensor = operator(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    check=lambda self, value: _check_value(value),
    kernel=lambda xp, self, value: xp.broadcast_to(value, self.shape).astype(self.dtype),
    meta=lambda self, value: Spec(self._array.shape, self.dtype),
    function=False,
    method=False,
    inplace="hidden",
    number=1,
    inplace_node="FillBackward3",
    reads_first=True,
    write=_fill_write,
    vjp={"self": lambda g: g.new_zeros(g.shape), "value": lambda g: g.sum()},
    cost="cheap",
)
zero = operator(
    "zero(Tensor self) -> Tensor",
    kernel=lambda xp, self: xp.zeros_like(self),
    meta=lambda self: Spec(self._array.shape, self.dtype),
    function=False,
    method=False,
    inplace="function",
    write=_zero_write,
    expanded=_zero_write,
    vjp=lambda g: g.new_zeros(g.shape),
    cost="cheap",
    opaque="all",
)


@front("torch.fill")
def fill(input, value) -> Tensor:
    return dispatch(fill_tensor if isinstance(value, Tensor) else fill_scalar, (input, value))


_NUMBERS = frozenset((int, float, bool))


@front("torch.fill_", "Tensor.fill_")
def fill_(input, value) -> Tensor:
    if isinstance(value, Tensor):
        _check_value(value)
        return dispatch(fill_tensor.inplace, (input, value))
    if value.__class__ in _NUMBERS and isinstance(input, Tensor):
        return dispatch(fill_scalar.inplace, (input, value))
    return dispatch(fill_scalar.inplace, fill_scalar.convert((input, value)))
