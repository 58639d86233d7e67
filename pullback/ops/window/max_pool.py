"""Max pooling operators: regular, adaptive and fractional, their backwards, and unpooling.

Comes in: (N, C, spatial...) or (C, spatial...). Goes out: the maxima, and their places as flat int64 indices into the
spatial part of the input. Always holds: a backward puts each gradient at its place, and the backward's own derivative
reads there; both are linear, so derivatives of every order exist.
"""

from __future__ import annotations

from typing import Any

from ...core import dtype as dtypes
from ...core.dtype import FLOAT, by_numpy
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..family.formats import like, like_first
from ..system.dispatch import dispatch
from ..system.operator import Operator, Spec
from . import pool_shape
from .batching import as_images, fold_batch, like_lead
from .kernels import max_pool as kernels
from .pool_lowering import lower_max_pool, lower_max_pool_backward
from .words import REAL, listed, require

Array = Any


def gather_at(t: Tensor, indices: Tensor, spatial: int) -> Tensor:
    """The entries of `t` at flat spatial indices."""
    return t.flatten(-spatial).gather(-1, indices.flatten(-spatial)).reshape(indices.shape)


def _pooled(shape: tuple, spatial: int, out: tuple, dtype) -> tuple[Spec, Spec]:
    full = (*shape[: len(shape) - spatial], *out)
    return Spec(full, dtype), Spec(full, dtypes.int64)


def _scatter(xp: Any, g: Array, shape: tuple, indices: Array, spatial: int, disjoint: bool = False) -> Array:
    images = kernels.scatter_places(
        xp, as_images(g, spatial), as_images(indices, spatial), shape[len(shape) - spatial :], disjoint
    )
    return like_lead(images, g, spatial)


# ---- regular windows
def _declare_regular(spatial: int) -> tuple[Operator, Operator]:
    name, n = f"max_pool{spatial}d", spatial
    attributes = f"int[{n}] padding=0, int[{n}] dilation=1, bool ceil_mode=False"

    def kernel(xp, x, size, stride, padding, dilation, ceil):
        require(name, x.dtype, *REAL)
        w = pool_shape.regular(name, x.shape, spatial, size, stride, padding, dilation, ceil)
        result = kernels.max_pool(xp, as_images(x, spatial), w.kernel, w.stride, w.padding, w.dilation, ceil)
        return tuple(like_lead(m, x, spatial) for m in result)

    def meta(self, *attributes):
        require(name, self._array.dtype, *REAL)
        return _pooled(self.shape, spatial, pool_shape.regular(name, self.shape, spatial, *attributes).out, self.dtype)

    def kernel_backward(xp, g, x, size, stride, padding, dilation, ceil, indices):
        w = pool_shape.regular(name, x.shape, spatial, size, stride, padding, dilation, ceil)
        pool_shape.regular_backward(g.shape, x.shape, indices.shape, w.out)
        disjoint = all(s > (k - 1) * d for s, k, d in zip(w.stride, w.kernel, w.dilation))
        return _scatter(xp, g, x.shape, indices, spatial, disjoint)

    def vjp(g, self, kernel_size, stride, padding, dilation, ceil_mode, out1):
        return dispatch(backward, (g, self, kernel_size, stride, padding, dilation, ceil_mode, out1))

    forward = operator(
        f"{name}_with_indices(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], {attributes}) -> (Tensor, Tensor)",
        lower=lower_max_pool,
        kernel=kernel,
        strides=like(0, spatial + 2),
        meta=meta,
        vjp={"self": vjp},
        jvp={"self": lambda t, out1: (gather_at(t, out1, spatial), None)},
        vmap=fold_batch(lambda: forward, spatial),
        function=False,
        method=False,
        opaque="all",
    )
    backward = operator(
        f"{name}_with_indices_backward(Tensor grad_output, Tensor self, int[{n}] kernel_size, int[{n}] stride, "
        f"int[{n}] padding, int[{n}] dilation, bool ceil_mode, Tensor indices) -> Tensor",
        lower=lower_max_pool_backward,
        kernel=kernel_backward,
        strides=like(1, spatial + 2),
        meta=lambda grad_output, self, *rest: Spec(self.shape, grad_output.dtype),
        vjp={"grad_output": lambda g, indices: gather_at(g, indices, spatial)},
        vmap=fold_batch(lambda: backward, spatial),
        function=False,
        method=False,
    )
    return forward, backward


max_pool2d_with_indices, max_pool2d_with_indices_backward = _declare_regular(2)
max_pool3d_with_indices, max_pool3d_with_indices_backward = _declare_regular(3)


@composite(
    "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
    "bool ceil_mode=False) -> Tensor",
    method=False,
)
def max_pool2d(self, *attributes):
    return dispatch(max_pool2d_with_indices, (self, *attributes))[0]


@composite(
    "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
    "bool ceil_mode=False) -> Tensor",
    method=False,
    autocast_cpu="float32",
)
def max_pool3d(self, *attributes):
    return dispatch(max_pool3d_with_indices, (self, *attributes))[0]


_ONE = "int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, bool ceil_mode=False"


@composite(f"max_pool1d_with_indices(Tensor self, {_ONE}) -> (Tensor, Tensor)", method=False, out=False)
def max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode):
    """Through two dimensions, the first of them one entry high."""
    check_one_dimension("max_pool1d", self)
    attributes = ((1, *kernel_size), (1, *stride) if stride else (), (0, *padding), (1, *dilation), ceil_mode)
    values, indices = dispatch(max_pool2d_with_indices, (self.unsqueeze(-2), *attributes))
    return values.squeeze(-2), indices.squeeze(-2)


def check_one_dimension(function: str, t: Tensor) -> None:
    if t.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {t.ndim}-dimensional tensor for argument #1 'self' (while checking "
            f"arguments for {function})"
        )


@composite(f"max_pool1d(Tensor self, {_ONE}) -> Tensor", method=False)
def max_pool1d(self, kernel_size, stride, padding, dilation, ceil_mode):
    stride = stride or kernel_size
    _check_max_pool1d(self, kernel_size, stride, padding, dilation, ceil_mode)
    require("max_pool1d_impl", self.dtype.numpy, FLOAT)
    return max_pool1d_with_indices.body(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


_FORMS = {
    "kernel_size": "an int, list of ints or tuple of ints of size 1",
    "stride": "None, an int, list of ints, or tuple of ints of size 1",
    "padding": "an int, list of ints, or tuple of ints of size 1",
    "dilation": "an int, list of ints or tuple of ints of size 1",
}


def _check_max_pool1d(self, kernel_size, stride, padding, dilation, ceil_mode) -> None:
    if self.ndim not in (2, 3):
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{listed(self.shape)}"
        )
    for (name, form), value in zip(_FORMS.items(), (kernel_size, stride, padding, dilation)):
        if len(value) != 1:
            raise RuntimeError(f"max_pool1d() {name} must be {form} but got size {len(value)}")
    (k,), (s,), (p,), (d,) = kernel_size, stride, padding, dilation
    for name, value in (("kernel_size", k), ("stride", s)):
        if value <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {value}")
    if p < 0:
        raise RuntimeError(f"max_pool1d() padding must be non-negative, but got {p}")
    if p > k // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}"
        )
    if d <= 0:
        raise RuntimeError(f"max_pool1d() dilation must be greater than zero, but got {d}")
    out = pool_shape.pool_size(self.shape[-1], k, s, p, d, ceil_mode)
    if out <= 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {out}")


# ---- adaptive windows
def _declare_adaptive(spatial: int) -> Operator:
    name, n = f"adaptive_max_pool{spatial}d", spatial
    kernel_name = name if spatial == 2 else f"{name}_cpu"

    def kernel(xp, x, size):
        out = pool_shape.adaptive(name, x.shape, spatial, size)
        require(kernel_name, x.dtype, FLOAT)
        return tuple(like_lead(m, x, spatial) for m in kernels.adaptive_max_pool(xp, as_images(x, spatial), out))

    def meta(self, output_size):
        out = pool_shape.adaptive(name, self.shape, spatial, output_size)
        require(kernel_name, self._array.dtype, FLOAT)
        return _pooled(self.shape, spatial, out, self.dtype)

    forward = operator(
        f"{name}(Tensor self, int[{n}] output_size) -> (Tensor, Tensor)",
        kernel=kernel,
        strides=like_first if spatial == 2 else None,
        meta=meta,
        vjp={"self": lambda g, self, out1: dispatch(backward, (g, self, out1))},
        jvp={"self": lambda t, out1: (gather_at(t, out1, spatial), None)},
        vmap=fold_batch(lambda: forward, spatial),
        function=False,
        method=False,
        autocast_cpu="float32" if spatial == 3 else None,
    )
    backward = operator(
        f"{name}_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
        strides=like(1) if spatial == 2 else None,
        kernel=lambda xp, g, x, indices: _scatter(xp, g, x.shape, indices, spatial),
        check=lambda g, self, indices: pool_shape.max_backward(spatial, g.shape, self.shape, indices.shape),
        meta=lambda grad_output, self, indices: Spec(self.shape, grad_output.dtype),
        vjp={"grad_output": lambda g, indices: gather_at(g, indices, spatial)},
        vmap=fold_batch(lambda: backward, spatial),
        function=False,
        method=False,
    )
    return forward


adaptive_max_pool2d = _declare_adaptive(2)
adaptive_max_pool3d = _declare_adaptive(3)


@composite(
    "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
    method=False,
    out=False,
)
def adaptive_max_pool1d(self, output_size):
    check_one_dimension("adaptive_max_pool1d", self)
    if len(output_size) != 1:
        raise RuntimeError(
            f"adaptive_max_pool1d() argument 'output_size' should contain one int (got {len(output_size)})"
        )
    if 0 in self.shape:
        pool_shape.adaptive("adaptive_max_pool1d", self.shape, 1, output_size)
    values, indices = dispatch(adaptive_max_pool2d, (self.unsqueeze(-2), (1, *output_size)))
    return values.squeeze(-2), indices.squeeze(-2)


# ---- fractional windows
def _declare_fractional(spatial: int) -> Operator:
    name, n = f"fractional_max_pool{spatial}d", spatial
    function = f"{name}()" if spatial == 2 else f"{name}_out()"

    def kernel(xp, x, size, out, samples):
        require(f"{name}_out_frame", x.dtype, FLOAT)
        pool_shape.fractional(function, x.shape, spatial, size, out)
        pool_shape.fractional_samples(x.shape, spatial, samples.shape)
        result = kernels.fractional_max_pool(xp, as_images(x, spatial), size, out, samples)
        return tuple(like_lead(m, x, spatial) for m in result)

    def meta(self, kernel_size, output_size, random_samples):
        out = pool_shape.fractional(function, self.shape, spatial, kernel_size, output_size)
        return _pooled(self.shape, spatial, out, self.dtype)

    def vjp(g, self, kernel_size, output_size, out1):
        return dispatch(backward, (g, self, kernel_size, output_size, out1))

    forward = operator(
        f"{name}(Tensor self, int[{n}] kernel_size, int[{n}] output_size, Tensor random_samples) -> (Tensor, Tensor)",
        kernel=kernel,
        meta=meta,
        vjp={"self": vjp},
        jvp={"self": lambda t, out1: (gather_at(t, out1, spatial), None)},
        function=False,
        method=False,
        autocast_cpu="float32",
    )
    backward = operator(
        f"{name}_backward(Tensor grad_output, Tensor self, int[{n}] kernel_size, int[{n}] output_size, Tensor indices) "
        "-> Tensor",
        kernel=lambda xp, g, x, size, out, indices: _scatter(xp, g, x.shape, indices, spatial),
        check=lambda g, self, size, out, indices: pool_shape.fractional_backward(spatial, g.shape, self.shape, out),
        meta=lambda grad_output, self, *rest: Spec(self.shape, grad_output.dtype),
        vjp={"grad_output": lambda g, indices: gather_at(g, indices, spatial)},
        vmap=fold_batch(lambda: backward, spatial),
        function=False,
        method=False,
    )
    return forward


fractional_max_pool2d = _declare_fractional(2)
fractional_max_pool3d = _declare_fractional(3)


# ---- unpooling
def _unpool(xp: Any, x: Array, indices: Array, size: tuple, spatial: int) -> Array:
    shape = pool_shape.unpooled(spatial, x.shape, indices.shape, by_numpy[indices.dtype].scalar_name, size)
    require(f"max_unpool{spatial}d", x.dtype, FLOAT)
    count = 1
    for n in size:
        count *= n
    outside = (indices < 0) | (indices >= count)
    if bool(outside.any()):
        first = indices.reshape(-1)[int(xp.argmax(outside.reshape(-1)))]
        volumes = "x".join(str(n) for n in size)
        raise RuntimeError(f"Found an invalid max index: {int(first)} (output volumes are of size {volumes})")
    return _scatter(xp, x, shape, indices, spatial, disjoint=True)


def _unpool_spec(self, indices, size: tuple, spatial: int) -> Spec:
    return Spec(pool_shape.unpooled(spatial, self.shape, indices.shape, indices.dtype.scalar_name, size), self.dtype)


max_unpool2d = operator(
    "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
    kernel=lambda xp, x, indices, size: _unpool(xp, x, indices, size, 2),
    strides=like_first,
    meta=lambda self, indices, size: _unpool_spec(self, indices, size, 2),
    vjp={"self": lambda g, indices: gather_at(g, indices, 2)},
    vmap=fold_batch(lambda: max_unpool2d, 2),
    function=False,
    method=False,
    autocast_cpu="float32",
)

max_unpool3d = operator(
    "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
    kernel=lambda xp, x, indices, size, stride, padding: _unpool(xp, x, indices, size, 3),
    meta=lambda self, indices, size, stride, padding: _unpool_spec(self, indices, size, 3),
    vjp={"self": lambda g, indices: gather_at(g, indices, 3)},
    vmap=fold_batch(lambda: max_unpool3d, 3),
    function=False,
    method=False,
    autocast_cpu="float32",
)
