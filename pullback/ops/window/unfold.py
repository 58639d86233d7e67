"""Windows as columns and back: `im2col`, `col2im`, and the functions `unfold` and `fold` over them.

Comes in: images (N, C, H, W) or (C, H, W), or columns (N, C * kernel, positions). Goes out: the other of the two.
Always holds: each operator is the other's transpose, hence its derivative.
"""

from __future__ import annotations

from ...core.dtype import BOOL
from ...core.tensor import Tensor
from ..family.base import operator
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import LINEAR, Spec
from ..system.scalars import exact_out
from .batching import fold_batch
from .kernels import unfold as kernels
from .kernels.geometry import conv_size
from .words import INEXACT, listed, require


def _check_attributes(kernel: tuple, dilation: tuple, padding: tuple, stride: tuple) -> None:
    for name, value in (("kernel_size", kernel), ("dilation", dilation), ("padding", padding), ("stride", stride)):
        if len(value) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    for what, prefix, value in (("kernel size", "kernel", kernel), ("dilation", "dilation", dilation)):
        _positive(what, prefix, value)
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")
    _positive("stride", "stride", stride)


def _positive(what: str, prefix: str, value: tuple) -> None:
    if min(value) <= 0:
        raise RuntimeError(
            f"{what} should be greater than zero, but got {prefix}_height: {value[0]} {prefix}_width: {value[1]}"
        )


def _pair(value: tuple) -> str:
    return f"({value[0]}, {value[1]})"


def _positions(size, kernel, dilation, padding, stride) -> tuple:
    return tuple(map(conv_size, size, kernel, stride, padding, dilation))


def _columns_shape(shape: tuple, kernel, dilation, padding, stride) -> tuple:
    _check_attributes(kernel, dilation, padding, stride)
    if len(shape) < 3:
        rank = len(shape)
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {rank})")
    if len(shape) not in (3, 4) or any(n == 0 for n in shape[-3:]):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {listed(shape)}"
        )
    height, width = _positions(shape[-2:], kernel, dilation, padding, stride)
    if height < 1 or width < 1:
        raise RuntimeError(
            f"Given input with spatial size {_pair(shape[-2:])}, kernel_size={_pair(kernel)}, "
            f"dilation={_pair(dilation)}, padding={_pair(padding)}, calculated shape of the array of sliding blocks as "
            f"({height}, {width}), but its components must be at least one."
        )
    return (*shape[:-3], shape[-3] * kernel[0] * kernel[1], height * width)


def _images_shape(shape: tuple, size, kernel, dilation, padding, stride) -> tuple:
    if len(size) != 2:
        raise RuntimeError(f"It is expected output_size equals to 2, but got size {len(size)}")
    _check_attributes(kernel, dilation, padding, stride)
    if len(shape) not in (2, 3) or any(n == 0 for n in shape[-2:]):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {listed(shape)}"
        )
    if kernel[0].__class__ is kernel[1].__class__ is int and kernel[0] * kernel[1] > 2**63 - 1:
        raise RuntimeError(
            f"Given kernel_width = {kernel[1]} and kernel_height = {kernel[0]} the product of kernel_width and "
            "kernel_height overflowed."
        )
    if shape[-2] % (kernel[0] * kernel[1]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)="
            f"{shape[-2]} and kernel_size={_pair(kernel)}."
        )
    height, width = _positions(size, kernel, dilation, padding, stride)
    if shape[-1] != height * width:
        raise RuntimeError(
            f"Given output_size={_pair(size)}, kernel_size={_pair(kernel)}, dilation={_pair(dilation)}, "
            f"padding={_pair(padding)}, stride={_pair(stride)}, expected size of input's dimension 2 to match the "
            f"calculated number of sliding blocks {height} * {width} = {height * width}, but got "
            f"input.size(2)={shape[-1]}."
        )
    if height < 1 or width < 1:
        raise RuntimeError(
            f"Given output_size={_pair(size)}, kernel_size={_pair(kernel)}, dilation={_pair(dilation)}, "
            f"padding={_pair(padding)}, stride={_pair(stride)}, calculated shape of the array of sliding blocks as "
            f"({height}, {width}), which is too small (non-positive)"
        )
    return (*shape[:-2], shape[-2] // (kernel[0] * kernel[1]), *size)


def _im2col(xp, x, *attributes):
    shape = _columns_shape(x.shape, *attributes)
    require("im2col_out_cpu", x.dtype, BOOL, *INEXACT)
    return kernels.unfold(xp, x if x.ndim == 4 else x[None], *attributes).reshape(shape)


def _col2im(xp, x, *attributes):
    shape = _images_shape(x.shape, *attributes)
    require("col2im_out_cpu", x.dtype, BOOL, *INEXACT)
    return kernels.fold(xp, x if x.ndim == 3 else x[None], *attributes).reshape(shape)


_ATTRIBUTES = "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride"

im2col = operator(
    f"im2col(Tensor self, {_ATTRIBUTES}) -> Tensor",
    kernel=_im2col,
    meta=lambda self, *attributes: Spec(_columns_shape(self.shape, *attributes), self.dtype),
    vjp={
        "self": lambda g, self_shape, kernel_size, dilation, padding, stride: dispatch(
            col2im, (g, tuple(self_shape[-2:]), kernel_size, dilation, padding, stride)
        )
    },
    jvp=LINEAR,
    vmap=fold_batch(lambda: im2col, 2),
    check_out=exact_out,
    function=False,
    method=False,
)

col2im = operator(
    f"col2im(Tensor self, SymInt[2] output_size, {_ATTRIBUTES}) -> Tensor",
    kernel=_col2im,
    meta=lambda self, *attributes: Spec(_images_shape(self.shape, *attributes), self.dtype),
    vjp={
        "self": lambda g, kernel_size, dilation, padding, stride: dispatch(
            im2col, (g, kernel_size, dilation, padding, stride)
        )
    },
    jvp=LINEAR,
    vmap=fold_batch(lambda: col2im, 1),
    check_out=exact_out,
    function=False,
    method=False,
)


@front("nn.functional.unfold")
def unfold(input: Tensor, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """The windows of `input` as columns (N, C * kernel, positions)."""
    return im2col(input, kernel_size, dilation, padding, stride)


@front("nn.functional.fold")
def fold(input: Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor:
    """Columns added back to where `unfold` takes them from."""
    return col2im(input, output_size, kernel_size, dilation, padding, stride)
