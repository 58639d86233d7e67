"""Discrete Fourier transforms.

In: real or complex tensors, transform lengths (`n`, `s`: zero-padded or cut to), dims, and a normalization mode.
Out: tensors of the same precision: float32 gives complex64. Integers become the default float; half is refused.
Always: three operators do the work (complex to complex, real to complex, complex to real) and carry gradients; every
public transform is composed of them. Complex to real reads only the stored half of the last dim, so what it does not
read has no influence.

The operators' `normalization` is 0 for none, 1 for division by the square root of the number of points, 2 for division
by the number itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from ...core import dtype as dtypes
from ...core.geometry import strides_for_order, wrap_dim, wrap_dims
from ...core.modes import ambient
from ...core.tensor import PLAIN, Tensor, stride_of
from ..elementwise.arithmetic import conj
from ..family.base import composite, operator
from ..family.factory import factory
from ..make.factories import finish
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import LINEAR, Operator, Spec, export, exports

Array = Any
FORWARD_NORM = ("backward", "ortho", "forward")
INVERSE_NORM = ("forward", "ortho", "backward")


# ---- the three operators
@cache
def library(xp: Any) -> Any:
    """The Fourier module that works on `xp`'s arrays."""
    return import_module("scipy.fft" if xp.__name__ == "numpy" else "cupyx.scipy.fft")


def c2c_kernel(xp: Any, a: Array, dim: Sequence[int], normalization: int, forward: bool) -> Array:
    if not dim or not a.size:
        return a.copy()
    if forward:
        return library(xp).fftn(a, axes=dim, norm=FORWARD_NORM[normalization])
    return library(xp).ifftn(a, axes=dim, norm=INVERSE_NORM[normalization])


def r2c_kernel(xp: Any, a: Array, dim: Sequence[int], normalization: int, onesided: bool) -> Array:
    if not a.size:
        shape = half_shape(a.shape, dim[-1]) if onesided else a.shape
        return xp.empty(shape, xp.result_type(a.dtype, xp.complex64))
    transform = library(xp).rfftn if onesided else library(xp).fftn
    if xp.__name__ != "numpy":
        a = _readable(a, onesided)
    return transform(a, axes=dim, norm=FORWARD_NORM[normalization])


def _readable(a: Array, onesided: bool) -> Array:
    """An array of a device as cuFFT takes it: real numbers begin where a complex one could; complex ones are no real ones, which CuPy lets
    pass."""
    if onesided and a.dtype.kind == "c":
        raise TypeError("x must be a real sequence")
    return a.copy() if a.data.ptr % (2 * a.itemsize) else a


def c2r_kernel(xp: Any, a: Array, dim: Sequence[int], normalization: int, last_dim_size: int) -> Array:
    if not a.size:
        return xp.empty(with_size(a.shape, dim[-1], last_dim_size), a.real.dtype)
    lengths = [*(a.shape[d] for d in dim[:-1]), last_dim_size]
    return library(xp).irfftn(a, s=lengths, axes=dim, norm=INVERSE_NORM[normalization])


def with_size(shape: Sequence[int], dim: int, size: int) -> tuple[int, ...]:
    out = list(shape)
    out[dim] = size
    return tuple(out)


def half_shape(shape: Sequence[int], dim: int) -> tuple[int, ...]:
    """The shape of half a spectrum: the first half, with the middle."""
    return with_size(shape, dim, shape[dim] // 2 + 1)


def r2c_vjp(g: Tensor, self_shape: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    full = resize(g, (dim[-1],), (self_shape[dim[-1]],)) if onesided else g
    return run(c2c, full, dim, normalization, False).real


def c2r_vjp(g: Tensor, self_shape: Any, dim: Sequence[int], normalization: int) -> Tensor:
    last = dim[-1]
    half = r2c(g, dim, normalization, True)
    twice = g.shape[last] - half.shape[last]
    if twice > 0:
        # All but the first point, and the middle one of an even number, stand for two points of the spectrum.
        if not ambient.mode and half.__class__ in PLAIN and not half._keys:  # nobody has it yet, and nobody listens
            middle = half.narrow(last, 1, twice)._array
            middle *= 2
            return resize(half, (last,), (self_shape[last],))
        first, rest = half.narrow(last, 0, 1), half.narrow(last, 1 + twice, half.shape[last] - 1 - twice)
        half = cat([first, half.narrow(last, 1, twice) * 2, rest], last)
    return resize(half, (last,), (self_shape[last],))


def batched(args: tuple, dims: tuple, size: int, op: Any) -> tuple[Tensor, int]:
    """vmap: the batch goes first and every dim moves up by one."""
    moved = args[0].movedim(dims[0], 0)
    return op(moved, tuple(d + 1 for d in wrap_dims(args[1], moved.ndim - 1)), *args[2:]), 0


# ---- strides: the dims of a transform come last in memory, the others before them in the order that they had
def by_stride(t: Tensor, dim: Sequence[int]) -> tuple[int, ...]:
    """Dims from the front, outermost in memory first."""
    stride = stride_of(t)
    return tuple(sorted((wrap_dim(d, t.ndim) for d in dim), key=lambda d: -stride[d]))


def transformed(shape: tuple, stride: Sequence[int], dim: Sequence[int]) -> tuple | None:
    """Strides of the transform of a tensor with these strides over `dim`; None where nothing is transformed."""
    if not dim:
        return None
    last = [wrap_dim(d, len(shape)) for d in dim]
    first = sorted((d for d in range(len(shape)) if d not in last), key=lambda d: -stride[d])
    return strides_for_order(shape, [*first, *last])


def c2r_strides(shape: tuple, self: Tensor, dim: Sequence[int], *_) -> tuple | None:
    """All dims but the last are transformed first, complex to complex."""
    stride = stride_of(self)
    if len(dim) > 1:
        stride = transformed(self.shape, stride, by_stride(self, dim[:-1]))
    return transformed(shape, stride, dim[-1:])


c2c = operator(
    "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
    kernel=c2c_kernel,
    strides=lambda shape, self, dim, *_: transformed(shape, stride_of(self), by_stride(self, dim)),
    meta=lambda self, dim, normalization, forward: Spec(self.shape, self.dtype),
    vjp=lambda g, dim, normalization, forward: c2c(g, dim, normalization, not forward),
    jvp=LINEAR,
    vmap=lambda args, dims, size: batched(args, dims, size, c2c),
    method=False,
    node="FftC2CBackward0",
    autocast_cpu="float32",
    cost="compute",
)
r2c = operator(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    kernel=r2c_kernel,
    strides=lambda shape, self, dim, *_: transformed(shape, stride_of(self), (*by_stride(self, dim[:-1]), dim[-1])),
    meta=lambda self, dim, normalization, onesided: Spec(
        half_shape(self.shape, dim[-1]) if onesided else self.shape, self.dtype.to_complex()
    ),
    vjp=r2c_vjp,
    jvp=LINEAR,
    vmap=lambda args, dims, size: batched(args, dims, size, r2c),
    method=False,
    node="FftR2CBackward0",
    autocast_cpu="float32",
    cost="compute",
)
c2r = operator(
    "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
    kernel=c2r_kernel,
    strides=c2r_strides,
    meta=lambda self, dim, normalization, last_dim_size: Spec(
        with_size(self.shape, dim[-1], last_dim_size), self.dtype.to_real()
    ),
    vjp=c2r_vjp,
    jvp=LINEAR,
    vmap=lambda args, dims, size: batched(args, dims, size, c2r),
    method=False,
    node="FftC2RBackward0",
    autocast_cpu="float32",
    cost="compute",
)


# ---- arguments
def run(op: Operator, *args: Any) -> Tensor:
    """Call an operator on arguments that are already in canonical form."""
    return dispatch(op, args)


def cat(tensors: Sequence[Tensor], dim: int) -> Tensor:
    return exports["torch"]["cat"](tensors, dim)


def resize(x: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """Cut or zero-pad some dims at their ends."""
    for dim, size in zip(dims, sizes):
        have = x.shape[dim]
        if size < have:
            x = x.narrow(dim, 0, size)
        elif size > have:
            x = cat([x, x.new_zeros(with_size(x.shape, dim, size - have))], dim)
    return x


def promoted(x: Tensor, to_complex: bool = False) -> Tensor:
    """The tensor in a dtype that can be transformed."""
    d = x.dtype
    if not d.is_floating_point and not d.is_complex:
        d = ambient.default_dtype
    if d not in (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128):
        raise RuntimeError(f"Unsupported dtype {d.scalar_name}")
    d = d.to_complex() if to_complex else d
    return x if x.dtype is d else x.to(d)


def normalization_of(norm: str | None, forward: bool) -> int:
    """The operators' code for a normalization mode."""
    if norm == "ortho":
        return 1
    if norm not in (None, "forward", "backward"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return 2 if forward == (norm == "forward") else 0


def check_points(n: int) -> int:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def require_real(x: Tensor, name: str, kind: str = "real") -> None:
    if x.dtype.is_complex:
        raise RuntimeError(f"{name} expects a {kind} input tensor, but got {x.dtype.scalar_name}")


def shape_and_dims(x: Tensor, s: Sequence[int] | None, dim: Sequence[int] | None) -> tuple[list[int], tuple[int, ...]]:
    """The lengths and the wrapped dims of an n-dimensional transform; a length of -1 is the dim's own."""
    rank = x.ndim
    if dim and not rank:
        raise IndexError(f"Dimension specified as {dim[0]} but tensor has no dimensions")
    if dim is not None:
        dims = tuple(wrap_dim(d, rank) for d in dim)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    if s is not None:
        if dim is not None and len(dim) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > rank:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {rank} dimensions.")
        if dim is None:
            dims = tuple(range(rank - len(s), rank))
        sizes = [x.shape[d] if n == -1 else n for n, d in zip(s, dims)]
    else:
        if dim is None:
            dims = tuple(range(rank))
        sizes = [x.shape[d] for d in dims]
    return [check_points(n) for n in sizes], dims


# ---- one dimension
def only_dim(x: Tensor, dim: int) -> int:
    """The wrapped dim of a one-dimensional transform."""
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, x.ndim)


def one_dim(x: Tensor, n: int | None, dim: int) -> tuple[Tensor, int]:
    """The input at the length asked for, and the wrapped dim."""
    dim = only_dim(x, dim)
    length = check_points(x.shape[dim] if n is None else n)
    return resize(x, (dim,), (length,)), dim


def transform_1d(x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    """fft or ifft: real input takes the real transform, whose conjugate is its inverse."""
    x, dim = one_dim(promoted(x), n, dim)
    how = normalization_of(norm, forward)
    if x.dtype.is_complex:
        return run(c2c, x, (dim,), how, forward)
    result = run(r2c, x, (dim,), how, False)
    return result if forward else conj_physical(result)


def conj_physical(x: Tensor) -> Tensor:
    return x.conj_physical()


def to_half_spectrum(x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool, name: str) -> Tensor:
    """rfft or ihfft."""
    require_real(x, name)
    x, dim = one_dim(promoted(x), n, dim)
    result = run(r2c, x, (dim,), normalization_of(norm, forward), True)
    return result if forward else conj_physical(result)


def from_half_spectrum(x: Tensor, n: int | None, dim: int, norm: str | None, forward: bool) -> Tensor:
    """irfft or hfft."""
    turns = forward and x.dtype.is_complex  # a real spectrum is its own conjugate
    x = promoted(x, to_complex=True)
    dim = only_dim(x, dim)
    n = check_points(2 * (x.shape[dim] - 1) if n is None else n)
    x = resize(x, (dim,), (n // 2 + 1,))
    return run(c2r, conj(x) if turns else x, (dim,), normalization_of(norm, forward), n)


@composite("fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
def fft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return transform_1d(self, n, dim, norm, True)


@composite("fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
def ifft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return transform_1d(self, n, dim, norm, False)


@composite("fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
def rfft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return to_half_spectrum(self, n, dim, norm, True, "rfft")


@composite("fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
def ihfft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return to_half_spectrum(self, n, dim, norm, False, "ihfft")


@composite("fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
def irfft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return from_half_spectrum(self, n, dim, norm, False)


@composite("fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor")
def hfft(self: Tensor, n: int | None, dim: int, norm: str | None) -> Tensor:
    return from_half_spectrum(self, n, dim, norm, True)


# ---- several dimensions
def transform_nd(x: Tensor, s: Any, dim: Any, norm: str | None, forward: bool) -> Tensor:
    """fftn or ifftn."""
    sizes, dims = shape_and_dims(x, s, dim)
    x = resize(promoted(x, to_complex=True), dims, sizes)
    return run(c2c, x, dims, normalization_of(norm, forward), forward)


def at_least_one(dims: Sequence[int], name: str) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def half_sizes(x: Tensor, s: Any, dim: Any, name: str) -> tuple[list[int], tuple[int, ...], int]:
    """Input lengths, dims and output length of a transform from half a spectrum."""
    sizes, dims = shape_and_dims(x, s, dim)
    at_least_one(dims, name)
    last = 2 * (x.shape[dims[-1]] - 1) if s is None or s[-1] == -1 else s[-1]
    sizes[-1] = check_points(last) // 2 + 1
    return sizes, dims, last


@composite("fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
def fftn(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    return transform_nd(self, s, dim, norm, True)


@composite("fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
def ifftn(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    return transform_nd(self, s, dim, norm, False)


@composite("fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
def rfftn(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    require_real(self, "rfftn", "real-valued")
    sizes, dims = shape_and_dims(self, s, dim)
    at_least_one(dims, "rfftn")
    return run(r2c, resize(promoted(self), dims, sizes), dims, normalization_of(norm, True), True)


@composite("fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
def irfftn(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    sizes, dims, last = half_sizes(self, s, dim, "irfftn")
    x = resize(promoted(self, to_complex=True), dims, sizes)
    return run(c2r, x, dims, normalization_of(norm, False), last)


@composite("fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
def hfftn(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    sizes, dims, last = half_sizes(self, s, dim, "hfftn")
    x = resize(promoted(self, to_complex=True), dims, sizes)
    how = normalization_of(norm, True)
    if len(dims) > 1:
        x = run(c2c, x, dims[:-1], how, True)
    return run(c2r, conj(x), dims[-1:], how, last)


@composite("fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor")
def ihfftn(self: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
    sizes, dims = shape_and_dims(self, s, dim)
    at_least_one(dims, "ihfftn")
    if self.dtype.is_complex:
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {self.dtype.scalar_name}")
    x = resize(promoted(self), dims, sizes)
    how = normalization_of(norm, False)
    result = conj_physical(run(r2c, x, dims[-1:], how, True))
    return run(c2c, result, dims[:-1], how, False) if len(dims) > 1 else result


def _in_two_dims(name: str) -> None:
    """fft2 and its kin: the n-dimensional transform of the last two dims."""
    several = exports["fft"][name + "n"].operator
    schema = f"fft_{name}2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor"
    composite(schema)(lambda self, s, dim, norm: several.body(self, s, dim, norm))


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    _in_two_dims(_name)


# ---- order and frequencies
def shift_dims(x: Tensor, dim: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if dim is None else tuple(wrap_dim(d, x.ndim) for d in dim)


@composite("fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor", out=False, autocast_cpu="kept")
def fftshift(self: Tensor, dim: Any) -> Tensor:
    dims = shift_dims(self, dim)
    return self.roll(tuple(self.shape[d] // 2 for d in dims), dims)


@composite("fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor", out=False, autocast_cpu="kept")
def ifftshift(self: Tensor, dim: Any) -> Tensor:
    dims = shift_dims(self, dim)
    return self.roll(tuple((self.shape[d] + 1) // 2 for d in dims), dims)


_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def frequency_spec(name: str, length: Any) -> Any:
    def shape(n: int, d: float, dtype: Any, *_: Any) -> Spec:
        dtype = dtype or ambient.default_dtype
        if not dtype.is_floating_point and not dtype.is_complex:
            raise RuntimeError(f"{name} requires a floating point or complex dtype")
        return Spec((length(n),), dtype)

    return shape


def frequencies(xp: Any, spec: Spec, n: int, d: float, *_: Any) -> Array:
    """0, 1, ..., then (for the full spectrum) the negative ones, over n d."""
    index = xp.arange(spec.shape[0])
    signed = xp.where(index > (n - 1) // 2, index - n, index) if spec.shape[0] == n else index
    return (signed * (1.0 / (n * d) if n else 0.0)).astype(spec.dtype.numpy)


fftfreq_op = factory(
    f"fft_fftfreq(int n, float d=1., {_OPTIONS}) -> Tensor",
    shape=frequency_spec("fftfreq", lambda n: n),
    kernel=frequencies,
)
rfftfreq_op = factory(
    f"fft_rfftfreq(int n, float d=1., {_OPTIONS}) -> Tensor",
    shape=frequency_spec("rfftfreq", lambda n: n // 2 + 1),
    kernel=lambda xp, spec, n, d, *_: (xp.arange(spec.shape[0]) * (1.0 / (n * d))).astype(spec.dtype.numpy),
)


def _frequency_front(name: str, op: Any) -> None:
    @front(f"fft.{name}")
    def make(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=None):  # type: ignore[no-untyped-def]
        dtype = out.dtype if dtype is None and out is not None else dtype
        return finish(op(n, float(d), dtype=dtype, layout=layout, device=device), requires_grad, out)

    make.__name__ = make.__qualname__ = name


_frequency_front("fftfreq", fftfreq_op)
_frequency_front("rfftfreq", rfftfreq_op)
export("fft", "Tensor", Tensor)
