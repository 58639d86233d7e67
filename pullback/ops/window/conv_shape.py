"""The shape rule of convolution, with every check that PyTorch makes, in its order and words.

Comes in: shapes, NumPy dtypes and attributes as given. Goes out: attributes with one entry per spatial axis, the
result's shape, or an exception. Always holds: only arithmetic on sizes, so that symbolic sizes work.
"""

from __future__ import annotations

from typing import Any

from ...core.dtype import by_numpy
from .kernels.geometry import conv_size, conv_transpose_size
from .words import NUMBERS, listed, require

_AXES = ("depth", "height", "width")
MOST_PADDING = (2**63 - 1) // 2  # an axis is padded at both ends, and its size is a 64-bit integer


def expanded(name: str, value: tuple, spatial: int) -> tuple:
    """One entry per spatial axis, from a list of one or of all."""
    if len(value) == spatial:
        return tuple(value)
    if len(value) == 1:
        return tuple(value) * spatial
    raise RuntimeError(
        f"expected {name} to be a single integer value or a list of {spatial} values to match the convolution "
        f"dimensions, but got {name}={listed(value)}"
    )


def settings(weight_rank: int, stride, padding, dilation, output_padding) -> tuple:
    """The four attributes, one entry per spatial axis."""
    spatial = weight_rank - 2
    if spatial < 1:
        raise RuntimeError("weight should have at least three dimensions")
    names = ("stride", "padding", "dilation", "output_padding")
    return tuple(expanded(n, v, spatial) for n, v in zip(names, (stride, padding, dilation, output_padding)))


def conv_shape(
    x: tuple, w: tuple, bias: tuple | None, stride, padding, dilation, transposed: bool, output_padding, groups: int
) -> tuple:
    """The shape of a convolution's result, after every check that PyTorch makes."""
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    stride, padding, dilation, extra = settings(len(w), stride, padding, dilation, output_padding)
    _check_signs(stride, padding, dilation, extra)
    _check_channels(x, w, bias, transposed, groups)
    if any(k == 0 for k in w[2:]):
        sizes = " ".join(f"kernel_{a}: {k}" for a, k in zip(_AXES[-len(stride) :], w[2:]))
        raise RuntimeError(f"kernel size should be greater than zero, but got {sizes}")
    if transposed:
        return (x[0], w[1] * groups, *_transposed_size(x[2:], w[2:], stride, padding, dilation, extra))
    padded = [n + 2 * p for n, p in zip(x[2:], padding)]
    covered = [d * (k - 1) + 1 for d, k in zip(dilation, w[2:])]
    if any(c > n for c, n in zip(covered, padded)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_times(padded)}). Kernel size: ({_times(covered)}). "
            "Kernel size can't be greater than actual input size"
        )
    return (x[0], w[0], *map(conv_size, x[2:], w[2:], stride, padding, dilation))


def _times(sizes) -> str:
    return " x ".join(str(s) for s in sizes)


def _check_signs(stride, padding, dilation, output_padding) -> None:
    if any(p < 0 for p in padding):
        raise RuntimeError("negative padding is not supported")
    for i, p in enumerate(padding):
        if p.__class__ is int and p > MOST_PADDING:
            raise RuntimeError(f"Given padding={p} at dimension {i} , expected padding to be at most {MOST_PADDING}")
    if any(p < 0 for p in output_padding):
        raise RuntimeError("negative output_padding is not supported")
    if any(s <= 0 for s in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(d <= 0 for d in dilation):
        raise RuntimeError(f"dilation should be greater than zero, but got {listed(dilation)}")


def _check_channels(x: tuple, w: tuple, bias: tuple | None, transposed: bool, groups: int) -> None:
    if len(x) != len(w):
        raise RuntimeError(
            f"Expected {len(w)}-dimensional input for {len(w)}-dimensional weight {listed(w)}, but got "
            f"{len(x)}-dimensional input of size {listed(x)} instead"
        )
    if w[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{listed(w)} instead"
        )
    if w[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{listed(w)}] instead"
        )
    given = "transposed=1" if transposed else f"groups={groups}"
    channels = w[0] if transposed else w[1] * groups
    if x[1] != channels:
        raise RuntimeError(
            f"Given {given}, weight of size {listed(w)}, expected input{listed(x)} to have {channels} channels, "
            f"but got {x[1]} channels instead"
        )
    outputs = w[1] * groups if transposed else w[0]
    if bias is not None and (len(bias) != 1 or bias[0] != outputs):
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {listed(w)}, expected bias to be "
            f"1-dimensional with {outputs} elements, but got bias of size {listed(bias)} instead"
        )


def _transposed_size(size, kernel, stride, padding, dilation, extra) -> tuple:
    names = _AXES[-len(size) :]
    if any(e >= s and e >= d for e, s, d in zip(extra, stride, dilation)):
        parts = (("output_padding", extra), ("stride", stride), ("dilation", dilation))
        shown = " ".join(f"{what}_{a}: {v}" for what, values in parts for a, v in zip(names, values))
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {shown}")
    out = tuple(map(conv_transpose_size, size, kernel, stride, padding, dilation, extra))
    if any(n < 1 for n in out):
        raise RuntimeError(
            f"Given input size per channel: ({_times(size)}). Calculated output size per channel: ({_times(out)}). "
            "Output size is too small"
        )
    return out


_C_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int",
    "int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def check_dtypes(x: Any, w: Any, bias: Any) -> None:
    """Raise unless input, weight and bias (NumPy dtypes) are of one type that convolution knows."""
    if bias is not None and bias != x:
        a, b = (by_numpy[d].name for d in (x, bias))
        raise RuntimeError(f"Input type ({_C_NAMES.get(a, a)}) and bias type ({_C_NAMES.get(b, b)}) should be the same")
    if x != w:
        a, b = by_numpy[x], by_numpy[w]
        if a.is_complex:
            names = [f"CPU{d.scalar_name}Type" if d.is_complex else f"torch.{d.scalar_name}Tensor" for d in (a, b)]
            raise RuntimeError(f"Input type ({names[0]}) and weight type ({names[1]}) should be the same")
        raise RuntimeError(f"expected scalar type {a.scalar_name} but found {b.scalar_name}")
    require("slow_conv2d_cpu", x, *NUMBERS)
