"""Writing one tensor or one number into another: `copy_`, `fill_`, `zero_`."""

from __future__ import annotations

from ..core.geometry import broadcast_shapes
from ..core.tensor import (
    META,
    Tensor,
)
from .calls import front
from .dispatch import dispatch
from .family.base import operator
from .inplace import cast_array
from .operator import Spec


def _copy_kernel(xp, self, src, non_blocking):
    return (
        xp.broadcast_to(src, self.shape).astype(self.dtype)
        if not (src.dtype.kind == "c" and self.dtype.kind != "c")
        else xp.broadcast_to(src.real, self.shape).astype(self.dtype)
    )


def _copy_write(target: Tensor, src: Tensor, non_blocking=False) -> None:
    if broadcast_shapes(target.array.shape, src.array.shape) != target.array.shape:
        raise RuntimeError(
            f"output with shape {list(target.array.shape)} doesn't match the broadcast shape {list(broadcast_shapes(target.array.shape, src.array.shape))}"
        )
    if not target.keys & META:
        if src.keys & META:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        target.array[...] = cast_array(src.array, src.dtype, target.dtype)


copy = operator(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    kernel=_copy_kernel,
    meta=lambda self, src, non_blocking: Spec(self.array.shape, self.dtype),
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
)


def _fill_write(target: Tensor, value) -> None:
    if isinstance(value, Tensor):
        if value.array.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.array.ndim} dimensions."
            )
        value = value.item()
    from .factories import _as_number

    if not target.keys & META:
        target.array.fill(_as_number(value, target.dtype))


fill_scalar = operator(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    kernel=lambda xp, self, value: xp.full(self.shape, value).astype(self.dtype),
    meta=lambda self, value: Spec(self.array.shape, self.dtype),
    function=False,
    method=False,
    inplace="hidden",
    inplace_node="FillBackward2",
    write=_fill_write,
    vjp=lambda g: g.new_zeros(g.shape),
)
fill_tensor = operator(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    kernel=lambda xp, self, value: xp.broadcast_to(value, self.shape).astype(self.dtype),
    meta=lambda self, value: Spec(self.array.shape, self.dtype),
    function=False,
    method=False,
    inplace="hidden",
    number=1,
    inplace_node="FillBackward3",
    reads_first=True,
    write=_fill_write,
    vjp={"self": lambda g: g.new_zeros(g.shape), "value": lambda g: g.sum()},
)
zero = operator(
    "zero(Tensor self) -> Tensor",
    kernel=lambda xp, self: xp.zeros_like(self),
    meta=lambda self: Spec(self.array.shape, self.dtype),
    function=False,
    method=False,
    inplace="function",
    write=lambda target: _fill_write(target, 0),
    vjp=lambda g: g.new_zeros(g.shape),
)


@front("torch.fill")
def fill(input, value) -> Tensor:
    return dispatch(fill_tensor if isinstance(value, Tensor) else fill_scalar, (input, value))


@front("torch.fill_", "Tensor.fill_")
def fill_(input, value) -> Tensor:
    if isinstance(value, Tensor):
        if value.array.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.array.ndim} dimensions."
            )
        return dispatch(fill_tensor.inplace, (input, value))
    return dispatch(fill_scalar.inplace, fill_scalar.convert((input, value)))
