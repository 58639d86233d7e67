"""Average pooling operators, regular and adaptive, with their backwards.

Comes in: (N, C, spatial...) or (C, spatial...). Goes out: averages. Always holds: forward and backward are each
other's transpose, and each is the other's derivative.
"""

from __future__ import annotations

from ...core.dtype import FLOAT
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..family.formats import like, like_first, prefers_channels_last
from ..system.dispatch import dispatch
from ..system.operator import LINEAR, Operator, Spec
from ..system.scalars import exact_out
from . import pool_shape
from .batching import as_images, fold_batch, like_lead
from .kernels import avg_pool as kernels
from .max_pool import check_one_dimension
from .pool_lowering import lower_avg_pool, lower_avg_pool_backward
from .words import require


def _check(name: str, spatial: int, shape: tuple, numpy_dtype, kernel, stride, padding, ceil, divisor):
    """The windows of a regular pool."""
    windows = pool_shape.regular(name, shape, spatial, kernel, stride, padding, (1,), ceil)
    _check_divisor(divisor)
    if str(numpy_dtype) != "int64":  # the only integers that can be averaged
        require(name if spatial == 2 else f"{name}_out_frame", numpy_dtype, FLOAT)
    return windows


def _check_divisor(divisor) -> None:
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")


def _declare_regular(spatial: int) -> Operator:
    name, n = f"avg_pool{spatial}d", spatial
    laid_out = spatial == 2  # in three dimensions averages are row-major

    def kernel(xp, x, size, stride, padding, ceil, count_include_pad, divisor):
        w = _check(name, spatial, x.shape, x.dtype, size, stride, padding, ceil, divisor)
        images = as_images(x, spatial)
        y = kernels.avg_pool(xp, images, w.kernel, w.stride, w.padding, ceil, count_include_pad, divisor)
        return like_lead(y, x, spatial)

    def meta(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor):
        w = _check(name, spatial, self.shape, self._array.dtype, kernel_size, stride, padding, ceil_mode, divisor)
        return Spec((*self.shape[:-spatial], *w.out), self.dtype)

    def kernel_backward(xp, g, x, size, stride, padding, ceil, count_include_pad, divisor):
        w = pool_shape.regular(name, x.shape, spatial, size, stride, padding, (1,), ceil)
        attributes = (w.kernel, w.stride, w.padding, ceil, count_include_pad, divisor)
        gx = kernels.avg_pool_backward(xp, as_images(g, spatial), x.shape[-spatial:], *attributes)
        return like_lead(gx, g, spatial)

    def vjp(g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        attributes = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return dispatch(backward, (g, self, *attributes))

    def vjp_backward(g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
        return dispatch(forward, (g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override))

    forward = operator(
        f"{name}(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, bool ceil_mode=False, "
        "bool count_include_pad=True, int? divisor_override=None) -> Tensor",
        lower=lower_avg_pool,
        kernel=kernel,
        strides=like_first if laid_out else None,
        meta=meta,
        vjp={"self": vjp},
        jvp=LINEAR,
        vmap=fold_batch(lambda: forward, spatial),
        public=f"nn.functional.{name}",
        check_out=exact_out,
        opaque="all",
        autocast_cpu="float32" if spatial == 3 else None,
    )
    backward = operator(
        f"{name}_backward(Tensor grad_output, Tensor self, int[{n}] kernel_size, int[{n}] stride, int[{n}] padding, "
        "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
        lower=lower_avg_pool_backward,
        kernel=kernel_backward,
        check=lambda *args: _check_divisor(args[-1]),
        strides=like(1) if laid_out else None,
        meta=lambda grad_output, self, *rest: Spec(self.shape, grad_output.dtype),
        vjp={"grad_output": vjp_backward},
        vmap=fold_batch(lambda: backward, spatial),
        opaque="all" if spatial == 2 else None,
        function=False,
        method=False,
    )
    return forward


avg_pool2d = _declare_regular(2)
avg_pool3d = _declare_regular(3)


@composite(
    "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool ceil_mode=False, "
    "bool count_include_pad=True) -> Tensor",
    method=False,
)
def avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad):
    """Through two dimensions, the first of them one entry high."""
    check_one_dimension("avg_pool1d", self)
    for name, value in (("kernel_size", kernel_size), ("stride", stride), ("padding", padding)):
        if len(value) > 1:
            raise RuntimeError(f"avg_pool1d() argument '{name}' should contain one int (got {len(value)})")
    attributes = ((1, *kernel_size), (1, *(stride or kernel_size)), (0, *padding), ceil_mode, count_include_pad, None)
    return dispatch(avg_pool2d, (self.unsqueeze(-2), *attributes)).squeeze(-2)


# ---- adaptive windows
def _declare_adaptive(spatial: int) -> Operator:
    name, n = f"adaptive_avg_pool{spatial}d", spatial
    laid_out = spatial == 2
    kernel_name = name if spatial == 2 else f"{name}_cpu"
    whole = (1,) * spatial

    def kernel(xp, x, size):
        out = pool_shape.adaptive(name, x.shape, spatial, size)
        require(kernel_name, x.dtype, FLOAT)
        return like_lead(kernels.adaptive_avg_pool(xp, as_images(x, spatial), out), x, spatial)

    def meta(self, output_size):
        out = pool_shape.adaptive(name, self.shape, spatial, output_size)
        require(kernel_name, self._array.dtype, FLOAT)
        return Spec((*self.shape[:-spatial], *out), self.dtype)

    def kernel_backward(xp, g, x):
        return like_lead(kernels.adaptive_avg_pool_backward(xp, as_images(g, spatial), x.shape[-spatial:]), g, spatial)

    forward = operator(
        f"_{name}(Tensor self, SymInt[{n}] output_size) -> Tensor",
        kernel=kernel,
        strides=like_first if laid_out else None,
        meta=meta,
        vjp={"self": lambda g, self: dispatch(backward, (g, self))},
        jvp=LINEAR,
        vmap=fold_batch(lambda: forward, spatial),
        opaque="all" if spatial == 2 else None,
        function=False,
        method=False,
    )
    backward = operator(
        f"_{name}_backward(Tensor grad_output, Tensor self) -> Tensor",
        kernel=kernel_backward,
        check=lambda g, self: pool_shape.adaptive_avg_backward(spatial, g.shape, self.shape),
        strides=like(1) if laid_out else None,
        meta=lambda grad_output, self: Spec(self.shape, grad_output.dtype),
        vjp={"grad_output": lambda g, grad_output_shape: dispatch(forward, (g, tuple(grad_output_shape[-spatial:])))},
        vmap=fold_batch(lambda: backward, spatial),
        opaque="all" if spatial == 2 else None,
        function=False,
        method=False,
    )

    @composite(
        f"{name}(Tensor self, SymInt[{n}] output_size) -> Tensor",
        function=False,
        method=False,
        autocast_cpu="float32" if spatial == 3 else None,
    )
    def public(self: Tensor, output_size: tuple) -> Tensor:
        pool_shape.adaptive(name, self.shape, spatial, output_size)
        if output_size == whole or all(o == 1 for o in output_size):  # the whole image: an ordinary mean
            out = self.mean(tuple(range(-spatial, 0)), True)
            if self.ndim != spatial + 2 or not prefers_channels_last(self):
                return out
            for k in range(spatial):  # one element each: the same memory, with the strides of channels-last order
                out = (out.flatten(1) if k == 0 else out).unsqueeze(1)
            return out.movedim(-1, 1)
        return dispatch(forward, (self, output_size))

    return public


adaptive_avg_pool2d = _declare_adaptive(2)
adaptive_avg_pool3d = _declare_adaptive(3)


@composite(
    "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
    method=False,
)
def adaptive_avg_pool1d(self, output_size):
    check_one_dimension("adaptive_avg_pool1d", self)
    if len(output_size) != 1:
        raise RuntimeError(
            f"adaptive_avg_pool1d() argument 'output_size' should contain one int (got {len(output_size)})"
        )
    return adaptive_avg_pool2d.body(self.unsqueeze(-2), (1, *output_size)).squeeze(-2)
