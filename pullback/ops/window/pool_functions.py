"""The public functions of pooling: `nn.functional` names over the operators.

Comes in: what a user writes (an int or a tuple, `stride=None`, `return_indices`). Goes out: a tensor, or a pair with
indices. Always holds: no arithmetic here but sizes, except power-average pooling, which is written in other operators.
"""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ..system.calls import front
from ..system.operator import Operator, export, exports
from ..system.record import refuse_gradients
from . import avg_pool, max_pool, shortcuts

_WITH_INDICES: dict[int, Operator] = {
    1: max_pool.max_pool1d_with_indices,
    2: max_pool.max_pool2d_with_indices,
    3: max_pool.max_pool3d_with_indices,
}
_VALUES: dict[int, Operator] = {1: max_pool.max_pool1d, 2: max_pool.max_pool2d, 3: max_pool.max_pool3d}
_AVERAGES: dict[int, Operator] = {1: avg_pool.avg_pool1d, 2: avg_pool.avg_pool2d, 3: avg_pool.avg_pool3d}
_ADAPTIVE_MAX: dict[int, Operator] = {
    1: max_pool.adaptive_max_pool1d,
    2: max_pool.adaptive_max_pool2d,
    3: max_pool.adaptive_max_pool3d,
}
_FRACTIONAL: dict[int, Operator] = {2: max_pool.fractional_max_pool2d, 3: max_pool.fractional_max_pool3d}


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _declare_max(spatial: int) -> None:
    name = f"max_pool{spatial}d"

    def with_indices(
        input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
    ):  # fmt: skip
        stride = () if stride is None else stride
        return tuple(_WITH_INDICES[spatial](input, kernel_size, stride, padding, dilation, ceil_mode))

    def public(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        if spatial == 2 and not return_indices:
            t = shortcuts.max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode)
            if t is not None:
                return t
        op = _WITH_INDICES[spatial] if return_indices else _VALUES[spatial]
        out = op(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)
        return tuple(out) if return_indices else out

    past = (f"{name}_with_indices.default",)
    front(f"nn.functional.{name}", past=past)(_named(public, name, f"The maximum of each window over {spatial} axes."))
    indexed = f"{name}_with_indices"
    front(f"nn.functional.{indexed}")(_named(with_indices, indexed, f"`{name}` and where each maximum was."))


def _adaptive_size(output_size: Any, input: Tensor, spatial: int) -> tuple:
    if not isinstance(output_size, (tuple, list)):
        return (output_size,) * spatial
    if len(output_size) >= input.ndim:
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    shape = input.shape[input.ndim - len(output_size) :]
    return tuple(n if v is None else v for v, n in zip(output_size, shape))


def _declare_adaptive_max(spatial: int) -> None:
    name = f"adaptive_max_pool{spatial}d"

    def with_indices(input, output_size, return_indices=False):
        size = output_size if spatial == 1 else _adaptive_size(output_size, input, spatial)
        return tuple(_ADAPTIVE_MAX[spatial](input, size))

    def public(input, output_size, return_indices=False):
        out = with_indices(input, output_size)
        return out if return_indices else out[0]

    front(f"nn.functional.{name}")(_named(public, name, f"The maxima of windows that cover {spatial} axes evenly."))
    indexed = f"{name}_with_indices"
    front(f"nn.functional.{indexed}")(_named(with_indices, indexed, f"`{name}` and where each maximum was."))


def _declare_adaptive_avg(spatial: int, op: Operator) -> None:
    name = f"adaptive_avg_pool{spatial}d"

    def public(input, output_size):
        return op(input, _adaptive_size(output_size, input, spatial))

    front(f"nn.functional.{name}")(_named(public, name, f"The averages of windows that cover {spatial} axes evenly."))


for _spatial in (1, 2, 3):
    _declare_max(_spatial)
    _declare_adaptive_max(_spatial)
_declare_adaptive_avg(2, avg_pool.adaptive_avg_pool2d)
_declare_adaptive_avg(3, avg_pool.adaptive_avg_pool3d)
for _op in (avg_pool.avg_pool1d, avg_pool.adaptive_avg_pool1d):
    export("nn.functional", _op.name, _op.function)


# ---- fractional pooling
def _declare_fractional(spatial: int) -> None:
    name = f"fractional_max_pool{spatial}d"

    def with_indices(
        input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
    ):  # fmt: skip
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            if len(output_ratio) > spatial:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = tuple(int(n * r) for n, r in zip(input.shape[-spatial:], output_ratio))
        if _random_samples is None:
            if input.ndim < spatial + 1:
                rank = input.ndim
                raise IndexError(
                    f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {-spatial - 1})"
                )
            images = 1 if input.ndim == spatial + 1 else input.shape[0]
            shape = (images, input.shape[-spatial - 1], spatial)
            _random_samples = exports["torch"]["rand"](*shape, dtype=input.dtype, device=input.device)
        refuse_gradients(f"fractional_max_pool{spatial}d", random_samples=_random_samples)
        return tuple(_FRACTIONAL[spatial](input, kernel_size, output_size, _random_samples))

    def public(
        input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
    ):  # fmt: skip
        out = with_indices(input, kernel_size, output_size, output_ratio, False, _random_samples)
        return out if return_indices else out[0]

    front(f"nn.functional.{name}")(_named(public, name, f"Maxima of windows at random places over {spatial} axes."))
    indexed = f"{name}_with_indices"
    front(f"nn.functional.{indexed}")(_named(with_indices, indexed, f"`{name}` and where each maximum was."))


_declare_fractional(2)
_declare_fractional(3)


# ---- unpooling
def _tuple(value: Any, spatial: int) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * spatial


def _unpooled_size(input: Tensor, kernel: tuple, stride: tuple, padding: tuple, wanted: Any) -> tuple:
    """The size that a pool with these attributes had before; `wanted` settles what the pool rounded away."""
    n = len(kernel)
    plain = [(m - 1) * s + k - 2 * p for m, s, k, p in zip(input.shape[-n:], stride, kernel, padding)]
    if wanted is None:
        return tuple(plain)
    if len(wanted) == n + 2:
        wanted = wanted[2:]
    if len(wanted) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(wanted)}'"
        )
    for d, (w, p, s) in enumerate(zip(wanted, plain, stride)):
        if not p - s < w < p + s:
            raise ValueError(f'invalid output_size "{wanted}" (dim {d} must be between {p - s} and {p + s})')
    return tuple(wanted)


def _unpool_attributes(input: Tensor, spatial: int, kernel_size, stride, padding, output_size) -> tuple:
    kernel = _tuple(kernel_size, spatial)
    step = kernel if stride is None else _tuple(stride, spatial)
    around = _tuple(padding, spatial)
    return _unpooled_size(input, kernel, step, around, output_size), step, around


@front("nn.functional.max_unpool1d")
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Each value at the place it was pooled from, zero elsewhere."""
    size, _, _ = _unpool_attributes(input, 1, kernel_size, stride, padding, output_size)
    return max_pool.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), (*size, 1)).squeeze(-1)


@front("nn.functional.max_unpool2d")
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Each value at the place it was pooled from, zero elsewhere."""
    size, _, _ = _unpool_attributes(input, 2, kernel_size, stride, padding, output_size)
    return max_pool.max_unpool2d(input, indices, size)


@front("nn.functional.max_unpool3d")
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Each value at the place it was pooled from, zero elsewhere."""
    size, step, around = _unpool_attributes(input, 3, kernel_size, stride, padding, output_size)
    return max_pool.max_unpool3d(input, indices, size, step, around)


# ---- power averages
def _declare_lp(spatial: int) -> None:
    name = f"lp_pool{spatial}d"

    def public(input, norm_type, kernel_size, stride=None, ceil_mode=False):
        kernel = _tuple(kernel_size, spatial)
        step = () if stride is None else _tuple(stride, spatial)
        if norm_type == float("inf"):
            return _VALUES[spatial](input.abs(), kernel, step, 0, 1, ceil_mode)
        if norm_type == -float("inf"):
            return -_VALUES[spatial](-input.abs(), kernel, step, 0, 1, ceil_mode)
        mean = _AVERAGES[spatial](input.pow(norm_type), kernel, step, 0, ceil_mode)
        count = 1
        for k in kernel:
            count *= k
        relu = exports["torch"]["relu"]  # its gradient is zero at zero, and so is that of an empty sum
        return (mean.sign() * relu(mean.abs())).mul(count).pow(1.0 / norm_type)

    front(f"nn.functional.{name}")(_named(public, name, f"The p-norm of each window over {spatial} axes."))


for _spatial in (1, 2, 3):
    _declare_lp(_spatial)
