"""Resampling operators: `upsample_*` in one to three dimensions, antialiased ones, and `interpolate` over them.

Comes in: (N, C, spatial...), an output size, and the scales the user asked for, where there were any. Goes out: the
image at that size. Always holds: every operator is linear, its backward is its transpose, and each is the other's
derivative. All of them are rows of one table.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature

from ...core.dtype import FLOAT
from ...core.storage import check_known
from ...core.symbolic import sym_int
from ..family.base import composite, operator
from ..family.formats import like_first
from ..system.dispatch import dispatch
from ..system.operator import LINEAR, Operator, Spec
from ..system.scalars import exact_out
from .batching import in_front
from .kernels import resample as kernels
from .words import listed, require

_LETTERS = {1: ("W",), 2: ("H", "W"), 3: ("D", "H", "W")}

# name of the operator: (kernel's method, spatial axes, takes align_corners, name of PyTorch's kernel, takes uint8)
TABLE = {
    **{
        f"{prefix}{n}d": (method, n, False, _kernel, True)
        for prefix, method in (("upsample_nearest", "nearest"), ("_upsample_nearest_exact", "nearest-exact"))
        for n, _kernel in (
            (1, "compute_indices_weights_nearest"),
            (2, "upsample_nearest2d_channels_last"),
            (3, "compute_indices_weights_nearest"),
        )
    },
    "upsample_linear1d": ("linear", 1, True, "compute_indices_weights_linear", False),
    "upsample_bilinear2d": ("linear", 2, True, "upsample_bilinear2d_channels_last", True),
    "upsample_trilinear3d": ("linear", 3, True, "compute_indices_weights_linear", False),
    "upsample_bicubic2d": ("cubic", 2, True, "compute_indices_weights_cubic", True),
    "_upsample_bilinear2d_aa": ("linear-aa", 2, True, "compute_index_ranges_weights", True),
    "_upsample_bicubic2d_aa": ("cubic-aa", 2, True, "compute_index_ranges_weights", True),
    "_upsample_lanczos2d_aa": ("lanczos-aa", 2, True, "compute_index_ranges_weights", True),
}


def _check_sizes(spatial: int, shape: tuple, size: tuple) -> None:
    if len(size) != spatial:
        raise RuntimeError(f"It is expected output_size equals to {spatial}, but got size {len(size)}")
    if len(shape) != spatial + 2:
        raise RuntimeError(f"It is expected input_size equals to {spatial + 2}, but got size {len(shape)}")
    if any(n <= 0 for n in (*shape[2:], *size)):
        before, after = (", ".join(f"{a}: {n}" for a, n in zip(_LETTERS[spatial], s)) for s in (shape[2:], size))
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({before}) output ({after})"
        )
    if any(n == 0 for n in shape[1:]):
        raise RuntimeError(f"Non-empty {spatial + 2}D data tensor expected but got a tensor with sizes {listed(shape)}")
    check_known((*shape[:2], *size), 8)


def _declare(name: str, method: str, spatial: int, aligns: bool, kernel_name: str, takes_bytes: bool) -> Operator:
    scale_names = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}[spatial]
    flags = "bool align_corners, " if aligns else ""
    scales = ", ".join(f"float? {s}=None" for s in scale_names)

    def split(rest: tuple) -> tuple[bool, tuple]:
        return (rest[0], rest[1:]) if aligns else (False, rest)

    def check(shape, numpy_dtype, size):
        _check_sizes(spatial, shape, size)
        if not (takes_bytes and str(numpy_dtype) == "uint8"):
            require(kernel_name, numpy_dtype, FLOAT)

    def kernel(xp, x, size, *rest):
        check(x.shape, x.dtype, size)
        align, factors = split(rest)
        return kernels.resample(xp, x, size, factors, method, align)

    def meta(self, size, *rest):
        check(self.shape, self._array.dtype, size)
        return Spec((*self.shape[:2], *size), self.dtype)

    def kernel_backward(xp, g, size, input_size, *rest):
        align, factors = split(rest)
        return kernels.resample_backward(xp, g, input_size[2:], factors, method, align)

    def vjp(g, shape, size, *rest):
        return dispatch(backward, (g, size, tuple(shape), *rest))

    def vjp_backward(g, size, *rest):
        return dispatch(forward, (g, size, *rest))

    attributes = ("align_corners", *scale_names) if aligns else scale_names
    cost = "passes" if method.startswith("nearest") else "compute"
    forward = operator(
        f"{name}(Tensor self, SymInt[{spatial}] output_size, {flags}{scales}) -> Tensor",
        kernel=kernel,
        strides=like_first,
        meta=meta,
        vjp={"self": _Rule(vjp, "g", "self_shape", "output_size", *attributes)},
        jvp=LINEAR,
        vmap=lambda args, dims, size: _fold(forward, args, dims, size, None),
        check_out=exact_out,
        cost=cost,
        function=False,
        method=False,
    )
    backward = operator(
        f"{name}_backward(Tensor grad_output, SymInt[{spatial}] output_size, SymInt[{spatial + 2}] input_size, "
        f"{flags}{scales}) -> Tensor",
        kernel=kernel_backward,
        strides=None if method == "cubic" else like_first,
        meta=lambda grad_output, size, input_size, *rest: Spec(input_size, grad_output.dtype),
        vjp={"grad_output": _Rule(vjp_backward, "g", "output_size", *attributes)},
        jvp=LINEAR,
        vmap=lambda args, dims, size: _fold(backward, args, dims, size, 2),
        cost=cost,
        function=False,
        method=False,
    )
    _declare_vec(name, forward, aligns)
    return forward


class _Rule:
    """A vjp rule with parameters named at run time: which attributes an operator has depends on its row."""

    def __init__(self, body: Callable, *names: str):
        self.body = body
        self.__signature__ = Signature([Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in names])

    def __call__(self, *values):
        return self.body(*values)


def _fold(op: Operator, args: tuple, dims: tuple, size: int, shape_at: int | None) -> tuple:
    """The mapped axis joins the batch; a backward's `input_size` grows with it."""
    t = in_front(args[0], dims[0], size)
    rest = list(args[1:])
    if shape_at is not None:
        n, *others = rest[shape_at - 1]
        rest[shape_at - 1] = (n * size, *others)
    out = dispatch(op, (t.flatten(0, 1), *rest))
    return out.unflatten(0, (size, t.shape[1])), 0


def _declare_vec(name: str, forward: Operator, aligns: bool) -> None:
    """The overload that takes either a size or scale factors."""
    flags = "bool align_corners, " if aligns else ""

    @composite(
        f"{name}.vec(Tensor input, SymInt[]? output_size, {flags}float[]? scale_factors) -> Tensor",
        function=False,
        method=False,
    )
    def vec(input, output_size, *rest):
        factors = rest[-1]
        size = output_size_of(input.shape, output_size, factors)
        return dispatch(forward, (input, size, *rest[:-1], *(factors or (None,) * len(size))))


def output_size_of(shape: tuple, size: tuple | None, factors: tuple | None) -> tuple:
    """The size asked for: outright, or as multiples of the input's."""
    if size is not None:
        if factors is not None:
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        return tuple(size)
    if factors is None:
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    if len(factors) != len(shape) - 2:
        raise RuntimeError(f"Expected {len(shape) - 2} scale factors, but got {len(factors)}")
    out = tuple(sym_int(n * f) for n, f in zip(shape[2:], factors))
    if any(n.__class__ is int and abs(n) > 2**63 - 1 for n in out):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return out


UPSAMPLE: dict[str, Operator] = {name: _declare(name, *row) for name, row in TABLE.items()}
