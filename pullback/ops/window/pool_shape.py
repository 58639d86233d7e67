"""Shape rules of pooling, with the checks that PyTorch makes, in its words.

Comes in: an input's shape and the attributes as given. Goes out: attributes with one entry per spatial axis and the
spatial size of the result, or an exception. Always holds: only arithmetic on sizes, so that symbolic sizes work.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.records import Record
from ...core.storage import check_known
from .kernels.geometry import pool_size
from .words import entries, labelled, listed

AXES = ("T", "H", "W")


class Windows(Record):
    """Regular windows over an input: one entry per spatial axis each, and the number of windows."""

    kernel: tuple
    stride: tuple
    padding: tuple
    dilation: tuple
    out: tuple


def regular(
    function: str, shape: tuple, spatial: int, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, ceil: bool
) -> Windows:
    """The windows of `max_pool2d` and its kin (`function` names the one that was called)."""
    kernel = entries(function, "kernel_size", kernel, spatial)
    stride = entries(function, "stride", stride, spatial, optional=True) if len(stride) else kernel
    padding = entries(function, "padding", padding, spatial)
    dilation = entries(function, "dilation", dilation, spatial)
    if function != "max_pool1d" and any(
        n.__class__ is int and n > 2**31 - 1 for n in (*kernel, *stride, *padding, *dilation)
    ):
        raise RuntimeError("value cannot be converted to type int without overflow")
    _check_rank(function, shape, spatial)
    for k, s, p, d in zip(kernel, stride, padding, dilation):
        _check_axis(k, s, p, d)
    _check_signs(kernel, stride, dilation)
    _check_filled(function, shape, spatial)
    _check_halves(kernel, padding)
    size = shape[-spatial:]
    out = tuple(pool_size(*axis, ceil) for axis in zip(size, kernel, stride, padding, dilation))
    if function == "avg_pool3d" and any(n < k for n, k in zip(size, kernel)):
        raise RuntimeError(
            f"input image ({labelled('', AXES, size)}) smaller than kernel size ({labelled('k', AXES, kernel)})"
        )
    if any(o < 1 for o in out):
        channels = shape[-spatial - 1]
        raise RuntimeError(
            f"Given input size: ({_by(channels, size)}). Calculated output size: ({_by(channels, out)}). "
            "Output size is too small"
        )
    return Windows(kernel, stride, padding, dilation, out)


def _by(channels: int, size: Sequence) -> str:
    return "x".join(str(n) for n in (channels, *size))


def _check_rank(function: str, shape: tuple, spatial: int) -> None:
    if len(shape) in (spatial + 1, spatial + 2):
        return
    if function == "avg_pool2d" and len(shape) < 3:
        rank = len(shape)
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got -3)")
    raise RuntimeError(f"non-empty {spatial + 1}D or {spatial + 2}D (batch mode) tensor expected for input")


def _check_axis(kernel: int, stride: int, padding: int, dilation: int) -> None:
    if stride == 0:
        raise RuntimeError("stride should not be zero")
    if padding < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad: {padding}")
    if kernel > 0 and dilation > 0 and padding > ((kernel - 1) * dilation + 1) // 2:
        raise RuntimeError(
            f"pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel} and "
            f"dilation={dilation}"
        )


def _check_signs(kernel: tuple, stride: tuple, dilation: tuple) -> None:
    axes = AXES[-len(kernel) :]
    rows = (("kernel size", "k", kernel), ("stride", "d", stride), ("dilation", "dilation", dilation))
    for what, prefix, values in rows:
        if any(v <= 0 for v in values):
            raise RuntimeError(f"{what} should be greater than zero, but got {labelled(prefix, axes, values)}")


def _check_halves(kernel: tuple, padding: tuple) -> None:
    """Dilation lets padding reach further, but never beyond half of the kernel itself."""
    if all(p <= k // 2 for k, p in zip(kernel, padding)):
        return
    if len(kernel) == 3:
        (t, h, w), (pt, ph, pw) = kernel, padding
        shown = f"kT: {t} kW: {w} kH: {h} padT: {pt} padW: {pw} padH: {ph}"
    else:
        (h, w), (ph, pw) = kernel, padding
        shown = f"padW = {pw}, padH = {ph}, kW = {w}, kH = {h}"
    raise RuntimeError(f"pad should be smaller than or equal to half of kernel size, but got {shown}")


def _check_filled(function: str, shape: tuple, spatial: int) -> None:
    """Every axis but the batch must have entries."""
    for i, n in enumerate(shape[-spatial - 1 :]):
        if n == 0 and spatial == 3:
            name = f"{function}_with_indices_out_cpu_template()" if function == "max_pool3d" else f"{function}()"
            raise RuntimeError(
                f"{name}: Expected input's non-batch dimensions to have positive length, but input has a shape of "
                f"{listed(shape)} and non-batch dimension {i} has length zero!"
            )
        if n == 0:
            raise RuntimeError(
                "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but "
                f"got:{listed(shape)}"
            )


def _are_some(sizes: tuple) -> bool:
    """Whether all are plain numbers above 0."""
    for n in sizes:
        if n.__class__ is not int or n <= 0:
            return False
    return True


def adaptive(function: str, shape: tuple, spatial: int, size: tuple) -> tuple:
    """The spatial size of an adaptive pool's result."""
    if len(size) == spatial and len(shape) - spatial in (1, 2) and _are_some(shape) and _are_some(size):
        check_known((*shape[:-spatial], *size), 8)
        return tuple(size)
    if len(size) != spatial:
        words = {
            "adaptive_avg_pool3d": "adaptive_avg_pool3d: output_size must be 3",
            "adaptive_avg_pool2d": "adaptive_avg_pool2d: output_size must be 2",
        }
        raise RuntimeError(words.get(function, f"{function}(): internal error: output_size.size() must be {spatial}"))
    if len(shape) not in (spatial + 1, spatial + 2):
        colon = ":" if "max" in function else ""
        raise RuntimeError(
            f"{function}(): Expected {spatial + 1}D or {spatial + 2}D tensor, but got{colon} {listed(shape)}"
        )
    if any(s < 0 for s in size):
        if "avg" in function:
            shown = ", ".join(str(s) for s in size)
            raise RuntimeError(
                f"{function}: elements of output_size must be greater than or equal to 0 but received {{{shown}}}"
            )
        result = (*shape[:-spatial], *size)
        negative = next(s for s in size if s < 0)
        raise RuntimeError(f"Trying to create tensor with negative dimension {negative}: {listed(result)}")
    check_known((*shape[:-spatial], *size), 8)
    for i in range(len(shape) - spatial - (function != "adaptive_avg_pool2d"), len(shape)):
        if i > 0 and shape[i] == 0:
            raise RuntimeError(
                f"{function}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{listed(shape)} with dimension {i} being empty"
            )
    return tuple(size)


def fractional(function: str, shape: tuple, spatial: int, kernel: tuple, out: tuple) -> tuple:
    """The spatial size of a fractional pool's result."""
    for name, value in (("kernel_size", kernel), ("output_size", out)):
        if len(value) != spatial:
            ints = "tuple of Ints" if spatial == 2 else "tuple of three Ints"
            raise RuntimeError(f"fractional_max_pool{spatial}d: {name} must either be a single Int or {ints}")
    if len(shape) not in (spatial + 1, spatial + 2):
        raise RuntimeError(f"{function}: Expected {spatial + 1}D or {spatial + 2}D tensor, but got: {listed(shape)}")
    for i in range(len(shape) - spatial - 1, len(shape)):
        if shape[i] == 0:
            raise RuntimeError(
                f"{function}: Expected input to have non-zero size for non-batch dimensions, but got{listed(shape)} with "
                f"dimension {i} being empty."
            )
    names = ("time", "height", "width")[-spatial:]
    for name, n, k, o in zip(names, shape[-spatial:], kernel, out):
        if o + k - 1 > n - (spatial == 3):
            raise RuntimeError(f"{function}: pool {name} {k} too large relative to input {name} {n}")
    return tuple(out)


def fractional_samples(shape: tuple, spatial: int, samples: tuple) -> None:
    """Refuse draws that do not give every plane of an input its windows."""
    images, channels = (1 if len(shape) == spatial + 1 else shape[0]), shape[-spatial - 1]
    if len(samples) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(samples)}")
    if samples[0] < images:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples[2] != spatial:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {spatial}; got {samples[2]}.")


def fractional_backward(spatial: int, grad: tuple, shape: tuple, out: tuple) -> None:
    """Refuse a gradient of another shape than a fractional pool's result."""
    expected = (*shape[:-spatial], *out)
    if tuple(grad) == expected:
        return
    if spatial == 2:
        raise RuntimeError("fractional_max_pool2d_backward(): gradOutput sizes unexpected")
    names = ("time", "height", "width")
    wrong = next((n for n, a, b in zip(names, grad[-3:], out, strict=False) if a != b), "sizes")
    raise RuntimeError(f"fractional_max_pool3d_backward_out(): gradOutput {wrong} unexpected")


def max_backward(spatial: int, grad: tuple, shape: tuple, indices: tuple) -> None:
    """Refuse places, or a gradient, of other shapes than an adaptive max pool's results."""
    name = "grad_output" if spatial == 2 else "gradOutput"
    for given, what in ((grad, name), (indices, "indices")):
        if len(given) != len(shape):
            raise RuntimeError(f"expected dimensions {len(shape)} for `{what}` but got dimensions {len(given)}")
    if tuple(grad) != tuple(indices):
        raise RuntimeError(f"expected sizes {listed(indices)} for `{name}` but got sizes {listed(grad)}")


def regular_backward(grad: tuple, shape: tuple, indices: tuple, out: tuple) -> None:
    """Refuse places, or a gradient, of other shapes than a max pool's results."""
    expected = (*shape[: -len(out)], *out)
    for given in (grad, indices):
        for d, n in enumerate(expected):
            if len(given) != len(expected) or given[d] != n:
                found = given[d] if d < len(given) else "none"
                raise RuntimeError(
                    f"Expected a tensor of dimension {len(expected)} and tensor.size[{d}] == {n} but got: dimension "
                    f"{len(given)} and tensor.size[{d}] = {found}"
                )


def adaptive_avg_backward(spatial: int, grad: tuple, shape: tuple) -> None:
    """Refuse a gradient of another rank than an adaptive average pool's result, or of other images."""
    name = "grad_output" if spatial == 2 else "gradOutput_"
    if len(grad) != len(shape):
        raise RuntimeError(
            f"adaptive_avg_pool{spatial}d_backward_out_cpu_template: Expected dimensions {len(shape)} for `{name}` but got "
            f"dimensions {len(grad)}"
        )


def unpooled(spatial: int, shape: tuple, indices: tuple, index_dtype: str, size: tuple) -> tuple:
    """The shape of an unpooled result."""
    if index_dtype != "Long":
        raise RuntimeError(f"elements in indices should be type int64 but got: {index_dtype}")
    if len(size) != spatial:
        raise RuntimeError(
            f"There should be exactly {('two', 'three')[spatial - 2]} elements "
            f"({'height, width' if spatial == 2 else 'depth, height, width'}) in output_size, but got {len(size)} "
            "elements."
        )
    if len(shape) not in (spatial + 1, spatial + 2):
        raise RuntimeError(
            f"Input to max_unpooling{spatial}d should be a {spatial + 1}d or {spatial + 2}d Tensor, but got a tensor "
            f"with {len(shape)} dimensions."
        )
    if tuple(shape) != tuple(indices):
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({listed(shape)}) but got indices "
            f"tensor with shape: {listed(indices)}"
        )
    return (*shape[:-spatial], *size)
