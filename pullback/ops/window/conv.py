"""Convolution operators: `convolution` and its backward, and the functions of one to three dimensions over them.

Comes in: input (N, C, spatial...), weight (O, C/groups, kernel...), bias (O). Goes out: (N, O, positions...). A
transposed convolution is the same form read the other way: its weight is (C, O/groups, kernel...). Always holds: the
derivative of either operator is written in the two, so that gradients of every order exist.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from ...core import native
from ...core.geometry import channels_last_strides
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..family.formats import prefers_channels_last
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import Spec
from . import shortcuts
from .batching import in_front
from .conv_lowering import lower_convolution, lower_convolution_backward
from .conv_shape import check_dtypes, conv_shape, expanded, settings
from .kernels import conv as kernels
from .kernels.geometry import narrow_to, widen
from .pad import constant_pad_nd
from .words import listed

Array = Any
_ATTRIBUTES = (
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups"
)


# ---- the operator and its backward
def _convolution_spec(input, weight, bias, *attributes) -> Spec:
    x, w, b = input._array, weight._array, None if bias is None else bias._array
    check_dtypes(x.dtype, w.dtype, None if b is None else b.dtype)
    return Spec(conv_shape(x.shape, w.shape, None if b is None else b.shape, *attributes), input.dtype)


def _convolution(xp: Any, x: Array, w: Array, bias: Array | None, *attributes) -> Array:
    check_dtypes(x.dtype, w.dtype, None if bias is None else bias.dtype)
    shape = conv_shape(x.shape, w.shape, None if bias is None else bias.shape, *attributes)
    stride, padding, dilation, transposed, extra, groups = attributes
    stride, padding, dilation, _ = settings(w.ndim, stride, padding, dilation, extra)
    if not transposed:
        return kernels.convolution(xp, x, w, bias, stride, padding, dilation, groups)
    return kernels.convolution_input(xp, x, w, shape[2:], stride, padding, dilation, groups, bias)


def _convolution_backward(xp: Any, g: Array, x: Array, w: Array, bias_sizes, *rest) -> tuple:
    """Gradients of input, weight and bias, None for those not wanted."""
    stride, padding, dilation, transposed, extra, groups, (want_x, want_w, want_b) = rest
    stride, padding, dilation, _ = settings(w.ndim, stride, padding, dilation, extra)
    shared = (stride, padding, dilation, groups)
    gx = gw = gb = None
    if want_x and transposed:
        gx = kernels.convolution(xp, g, _conj(xp, w), None, *shared, like=(x, w))
        if gx.shape != x.shape:  # output padding can make room for more positions
            gx = gx[(..., *(slice(n) for n in x.shape[2:]))]
    elif want_x:
        gx = kernels.convolution_input(xp, g, _conj(xp, w), x.shape[2:], *shared, like=(x, w))
    if want_w:
        near, far = (_conj(xp, x), g) if transposed else (g, _conj(xp, x))
        gw = kernels.convolution_weight(xp, near, far, w.shape[2:], *shared)
    if want_b:
        axes = (0, *range(2, g.ndim))
        wide = widen(g)
        sums = native.channel_sums(wide) if xp is np else None
        gb = narrow_to(wide.sum(axes) if sums is None else sums, g.dtype)
    return gx, gw, gb


def _conj(xp: Any, array: Array) -> Array:
    return xp.conj(array) if array.dtype.kind == "c" else array


def _backward_spec(grad_output, input, weight, bias_sizes, *rest) -> tuple:
    shapes = (input._array.shape, weight._array.shape, (grad_output._array.shape[1],))
    return tuple(Spec(s, grad_output.dtype) if wanted else None for s, wanted in zip(shapes, rest[-1]))


def _like_either(shape: tuple, input, weight, *_) -> tuple | None:
    """Channels-last where input or weight is; a filter alone says nothing of sequences, nor of what has no elements."""
    if len(shape) != weight._array.ndim or not weight._array.size:
        return None
    return channels_last_strides(shape) if prefers_channels_last(input) or prefers_channels_last(weight) else None


def _convolution_vjp(
    g, input, weight, bias_shape, stride, padding, dilation, transposed, output_padding, groups, mask
):  # fmt: skip
    sizes = tuple(bias_shape) or None
    attributes = (stride, padding, dilation, transposed, output_padding, groups)
    found = shortcuts.convolution_backward(g, input, weight, attributes, mask)
    if found is not None:
        return found
    return dispatch(convolution_backward, (g, input, weight, sizes, *attributes, tuple(mask)))


def _backward_vjp(
    gs, grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, mask
):  # fmt: skip
    """The form is linear in each of its three tensors, so each derivative is the form with one of them replaced."""
    attributes = (stride, padding, dilation, transposed, output_padding, groups)
    gi, gw, gb = gs
    on_output = on_input = on_weight = None
    if mask[0]:
        parts = [] if gi is None else [dispatch(convolution, (gi, weight, None, *attributes))]
        parts += [] if gw is None else [dispatch(convolution, (input, gw, None, *attributes))]
        parts += [] if gb is None else [gb.reshape(-1, *(1,) * (grad_output.ndim - 2)).expand(grad_output.shape)]
        for part in parts:
            on_output = part if on_output is None else on_output + part
    if mask[1] and gw is not None:
        args = (grad_output, input, gw, None, *attributes, (True, False, False))
        on_input = dispatch(convolution_backward, args)[0]
    if mask[2] and gi is not None:
        args = (grad_output, gi, weight, None, *attributes, (False, True, False))
        on_weight = dispatch(convolution_backward, args)[1]
    return on_output, on_input, on_weight


def _convolution_jvp(args: tuple, tangents: list, out: Tensor) -> Tensor | None:
    """Linear in input, in weight and in bias: a convolution for each tangent."""
    (input, weight, _, *attributes), (on_input, on_weight, on_bias) = args, tangents[:3]
    total = None if on_bias is None else on_bias.reshape(-1, *(1,) * (out.ndim - 2)).expand(out.shape)
    for x, w in ((on_input, weight), (input, on_weight)):
        if x is not None and w is not None:
            part = dispatch(convolution, (x, w, None, *attributes))
            total = part if total is None else total + part
    return total


# ---- vmap: a mapped batch becomes more images where the weight is shared, and more groups where it is not
def _convolution_vmap(args: tuple, dims: tuple, size: int) -> tuple:
    input, weight, bias, *attributes = args
    if dims[1] is None and dims[2] is None:
        x = in_front(input, dims[0], size)
        y = dispatch(convolution, (x.flatten(0, 1), weight, bias, *attributes))
        return y.unflatten(0, (size, x.shape[1])), 0
    groups = attributes[-1]
    x, w = in_front(input, dims[0], size).movedim(0, 1), in_front(weight, dims[1], size)
    y = dispatch(convolution, (x.flatten(1, 2), w.flatten(0, 1), None, *attributes[:-1], groups * size))
    y = y.unflatten(1, (size, -1)).movedim(1, 0)
    if bias is not None:
        y = y + in_front(bias, dims[2], size).reshape(size, 1, -1, *(1,) * (w.ndim - 3))
    return y, 0


def _backward_vmap(args: tuple, dims: tuple, size: int) -> tuple:
    g, input, weight, sizes, *attributes, mask = args
    g, x, w = (in_front(t, d, size) for t, d in zip((g, input, weight), dims[:3]))
    if dims[2] is None and not mask[1]:
        folded = (g.flatten(0, 1), x.flatten(0, 1), weight, sizes)
        gx = dispatch(convolution_backward, (*folded, *attributes, (mask[0], False, False)))[0]
        gx, gw = gx.unflatten(0, (size, -1)) if mask[0] else None, None
    else:
        folded = [g.movedim(0, 1).flatten(1, 2), x.movedim(0, 1).flatten(1, 2), w.flatten(0, 1)]
        wider = (*attributes[:-1], attributes[-1] * size, (mask[0], mask[1], False))
        gx, gw, _ = dispatch(convolution_backward, (*folded, None, *wider))
        gx = gx.unflatten(1, (size, -1)).movedim(1, 0) if mask[0] else None
        gw = gw.unflatten(0, (size, -1)) if mask[1] else None
    gb = g.sum((1, *range(3, g.ndim))) if mask[2] else None
    return (gx, gw, gb), tuple(0 if wanted else None for wanted in mask)


def _flops(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) -> int:
    """Each output element (of the input, where transposed) is a product with one filter."""
    taps = 2 * math.prod(weight.shape[1:])
    if transposed:
        return taps * input.numel()
    sizes = zip(input.shape[2:], weight.shape[2:], stride, padding, dilation, strict=False)
    out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes]
    return taps * input.shape[0] * weight.shape[0] * math.prod(out)


def _check_groups(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, *_
):
    if groups <= 0:
        raise RuntimeError(f"expected groups to be greater than 0, but got groups={groups}")


LOWER_PRECISION = {"autocast_cpu": "lower", "autocast_cuda": "lower"}

convolution = operator(
    f"convolution(Tensor input, Tensor weight, Tensor? bias, {_ATTRIBUTES}) -> Tensor",
    lower=lower_convolution,
    kernel=_convolution,
    strides=_like_either,
    meta=_convolution_spec,
    vjp={("input", "weight", "bias"): _convolution_vjp},
    jvp=_convolution_jvp,
    vmap=_convolution_vmap,
    method=False,
    out=False,
    autocast_cuda="lower",  # on CPUs, convolutions of so many dimensions
    cost="compute",
    opaque="mixed",
    flops=_flops,
)

convolution_backward = operator(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
    f"{_ATTRIBUTES}, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    lower=lower_convolution_backward,
    kernel=_convolution_backward,
    strides=lambda shape, grad_output, input, weight, *_: _like_either(shape, input, weight),
    check=_check_groups,
    meta=_backward_spec,
    vjp={("grad_output", "input", "weight"): _backward_vjp},
    vmap=_backward_vmap,
    function=False,
    method=False,
    cost="compute",
)


@composite(
    f"_convolution(Tensor input, Tensor weight, Tensor? bias, {_ATTRIBUTES}, bool benchmark, bool deterministic, "
    "bool cudnn_enabled, bool allow_tf32) -> Tensor",
    method=False,
)
def _convolution_with_flags(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *flags):
    return dispatch(convolution, (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups))


# ---- conv1d, conv2d, conv3d
def _batched(name: str, input: Tensor, spatial: int, run) -> Tensor:
    """`run` on a batch: of one image where the input has no batch axis."""
    if input.ndim == spatial + 2:
        return run(input)
    if input.ndim != spatial + 1:
        raise RuntimeError(
            f"Expected {spatial + 1}D (unbatched) or {spatial + 2}D (batched) input to {name}, but got input of size: "
            f"{listed(input.shape)}"
        )
    return run(input.unsqueeze(0)).squeeze(0)


def _same_padding(input: Tensor, weight: Tensor, bias, stride: tuple, dilation: tuple, groups: int) -> Tensor:
    """Pad so that the result is as large as the input; an odd total leaves one more entry at the end."""
    spatial = weight.ndim - 2
    stride, dilation = expanded("stride", stride, spatial), expanded("dilation", dilation, spatial)
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
    left = tuple(t // 2 for t in total)
    if any(t % 2 for t in total):
        warnings.warn(
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the "
            "input be created",
            stacklevel=4,
        )

        pad = [e for t in reversed(total) for e in (0, t % 2)]
        input = dispatch(constant_pad_nd, (input, tuple(pad), 0))
    return dispatch(convolution, (input, weight, bias, stride, left, dilation, False, (0,) * spatial, groups))


def _padded_by_name(name: str, spatial: int, input, weight, bias, stride, padding: str, dilation, groups) -> Tensor:
    def run(x: Tensor) -> Tensor:
        if padding == "same":
            return _same_padding(x, weight, bias, stride, dilation, groups)
        if padding == "valid":
            zeros = (0,) * spatial
            return dispatch(convolution, (x, weight, bias, stride, zeros, dilation, False, zeros, groups))
        raise RuntimeError(f"Invalid padding string: '{padding}'")

    return _batched(name, input, spatial, run)


def _declare_conv(spatial: int) -> None:
    name, n = f"conv{spatial}d", spatial
    head, tail = "Tensor input, Tensor weight, Tensor? bias=None", f"SymInt[{n}] dilation=1, SymInt groups=1) -> Tensor"
    strides = f"SymInt[{n}] stride=1"

    @composite(
        f"{name}({head}, {strides}, SymInt[{n}] padding=0, {tail}", function=False, method=False, **LOWER_PRECISION
    )
    def by_amount(input, weight, bias, stride, padding, dilation, groups):
        zeros = (0,) * spatial
        rest = (weight, bias, stride, padding, dilation, False, zeros, groups)
        return _batched(name, input, spatial, lambda x: dispatch(convolution, (x, *rest)))

    @composite(
        f'{name}.padding({head}, {strides}, str padding="valid", {tail}',
        function=False,
        method=False,
        **LOWER_PRECISION,
    )
    def by_name(input, weight, bias, stride, padding, dilation, groups):
        return _padded_by_name(name, spatial, input, weight, bias, stride, padding, dilation, groups)

    def public(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        t = shortcuts.convolution(input, weight, bias, stride, padding, dilation, groups)
        if t is not None:
            return t
        op = by_name if isinstance(padding, str) else by_amount
        return op(input, weight, bias, stride, padding, dilation, groups)

    public.__name__ = name
    public.__doc__ = f"Convolve `input` with `weight` over {spatial} spatial axes; `padding` may be 'same' or 'valid'."
    front(f"torch.{name}", f"nn.functional.{name}")(public)


def _declare_conv_transpose(spatial: int) -> None:
    name, n = f"conv_transpose{spatial}d", spatial
    overload = "" if spatial == 1 else ".input"

    @composite(
        f"{name}{overload}(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{n}] stride=1, "
        f"SymInt[{n}] padding=0, SymInt[{n}] output_padding=0, SymInt groups=1, SymInt[{n}] dilation=1) -> Tensor",
        function=False,
        method=False,
        **LOWER_PRECISION,
    )
    def op(input, weight, bias, stride, padding, output_padding, groups, dilation):
        rest = (weight, bias, stride, padding, dilation, True, output_padding, groups)
        return _batched(name, input, spatial, lambda x: dispatch(convolution, (x, *rest)))

    def public(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        t = shortcuts.convolution(input, weight, bias, stride, padding, dilation, groups, output_padding)
        if t is not None:
            return t
        return op(input, weight, bias, stride, padding, output_padding, groups, dilation)

    public.__name__ = name
    public.__doc__ = f"The transpose of a convolution over {spatial} spatial axes."
    front(f"torch.{name}", f"nn.functional.{name}")(public)


for _spatial in (1, 2, 3):
    _declare_conv(_spatial)
    _declare_conv_transpose(_spatial)


# ---- (time, batch, channels)
def _check_tbc(x: tuple, w: tuple, bias: tuple) -> None:
    if len(x) != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if len(w) != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if len(bias) != 1:
        raise RuntimeError("Bias must be 1-D")
    if x[2] != w[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if w[2] != bias[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")


def _conv_tbc(xp: Any, x: Array, w: Array, bias: Array, pad: int) -> Array:
    _check_tbc(x.shape, w.shape, bias.shape)
    y = kernels.convolution(xp, x.transpose(1, 2, 0), w.transpose(2, 1, 0), bias, (1,), (pad,), (1,), 1)
    return xp.ascontiguousarray(y.transpose(2, 0, 1))


def _conv_tbc_spec(self, weight, bias, pad) -> Spec:
    _check_tbc(self.shape, weight.shape, bias.shape)
    return Spec((self.shape[0] + 2 * pad - weight.shape[0] + 1, self.shape[1], weight.shape[2]), self.dtype)


def _conv_tbc_vjp(g, self, weight, bias_shape, pad, mask):
    args = (g.permute(1, 2, 0), self.permute(1, 2, 0), weight.permute(2, 1, 0), tuple(bias_shape), (1,), (pad,), (1,))
    gx, gw, gb = dispatch(convolution_backward, (*args, False, (0,), 1, tuple(mask)))
    return None if gx is None else gx.permute(2, 0, 1), None if gw is None else gw.permute(2, 1, 0), gb


conv_tbc_op = operator(
    "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    kernel=_conv_tbc,
    meta=_conv_tbc_spec,
    vjp={("self", "weight", "bias"): _conv_tbc_vjp},
    function=False,
    method=False,
    **LOWER_PRECISION,
    cost="compute",
)


@front("torch.conv_tbc", "nn.functional.conv_tbc")
def conv_tbc(input, weight, bias, pad=0):
    """Convolve (time, batch, channels) over time."""
    return conv_tbc_op(input, weight, bias, pad)
