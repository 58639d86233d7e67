"""Sampling by grid: `grid_sampler_2d`, `grid_sampler_3d`, `affine_grid_generator`, and the functions over them.

Comes in: images (N, C, spatial...) and grids (N, out..., axes) of points in -1..1. Goes out: samples (N, C, out...).
Always holds: the operators are differentiable once in both arguments, as PyTorch's are; affine grids are a matrix
product and differentiate without end.
"""

from __future__ import annotations

import warnings
from typing import Any

from ...core.dtype import FLOAT, by_numpy
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import LINEAR, NOT_IMPLEMENTED, Operator, Spec
from .batching import in_front
from .kernels import grid as kernels
from .kernels.geometry import narrow_to, widen
from .words import listed, require

_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}
_KERNELS = {2: "grid_sampler_2d_cpu_kernel_impl", 3: "grid_sampler3d_cpu"}


def _check(x: tuple, grid: tuple, x_dtype: Any, grid_dtype: Any, mode: int) -> None:
    """Shapes and NumPy dtypes, in PyTorch's order and words."""
    spatial = len(x) - 2
    if x[0] != grid[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{listed(x)} and grid with sizes {listed(grid)}"
        )
    if grid[-1] != spatial:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {spatial} in last dimension, but got grid with sizes "
            f"{listed(grid)}"
        )
    for i, n in enumerate(x[2:], 2):
        if n == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{listed(x)} with dimension {i} being empty"
            )
    if len(x) not in (4, 5) or len(x) != len(grid):
        raise RuntimeError(
            f"grid_sampler(): expected {'4D or 5D' if len(x) not in (4, 5) else f'{len(x)}D'} input and grid with same "
            f"number of dimensions, but got input with sizes {listed(x)} and grid with sizes {listed(grid)}"
        )
    if spatial == 3 and mode == 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if x_dtype != grid_dtype:
        a, b = by_numpy[x_dtype], by_numpy[grid_dtype]
        raise RuntimeError(f"expected scalar type {a.scalar_name} but found {b.scalar_name}")
    require(_KERNELS[spatial], x_dtype, FLOAT)


def _sample_shape(x: tuple, grid: tuple) -> tuple:
    return (x[0], x[1], *grid[1:-1])


def _kernel(xp, x, grid, mode, padding, align_corners):
    _check(x.shape, grid.shape, x.dtype, grid.dtype, mode)
    return kernels.grid_sample(xp, x, grid, mode, padding, align_corners)


def _meta(input, grid, mode, padding, align_corners) -> Spec:
    _check(input.shape, grid.shape, input._array.dtype, grid._array.dtype, mode)
    return Spec(_sample_shape(input.shape, grid.shape), input.dtype)


def _kernel_backward(xp, g, x, grid, mode, padding, align_corners, mask):
    gx = kernels.grid_sample_input(xp, g, x.shape, grid, mode, padding, align_corners) if mask[0] else None
    return gx, kernels.grid_sample_grid(xp, g, x, grid, mode, padding, align_corners) if mask[1] else None


def _meta_backward(grad_output, input, grid, mode, padding, align_corners, mask) -> tuple:
    shapes = (input.shape, grid.shape)
    return tuple(Spec(s, grad_output.dtype) if wanted else None for s, wanted in zip(shapes, mask))


def _declare(spatial: int) -> tuple[Operator, Operator]:
    name = f"grid_sampler_{spatial}d"
    attributes = "int interpolation_mode, int padding_mode, bool align_corners"

    def vjp(g, input, grid, interpolation_mode, padding_mode, align_corners, mask):
        args = (g, input, grid, interpolation_mode, padding_mode, align_corners, tuple(mask))
        return tuple(dispatch(backward, args))

    forward = operator(
        f"{name}(Tensor input, Tensor grid, {attributes}) -> Tensor",
        kernel=_kernel,
        meta=_meta,
        vjp={("input", "grid"): vjp},
        vmap=lambda args, dims, size: _fold(forward, 2, args, dims, size),
        method=False,
        out=False,
        cost="compute",
        autocast_cpu="float32",
    )
    backward = operator(
        f"{name}_backward(Tensor grad_output, Tensor input, Tensor grid, {attributes}, bool[2] output_mask) "
        "-> (Tensor, Tensor)",
        kernel=_kernel_backward,
        meta=_meta_backward,
        vjp={"grad_output": NOT_IMPLEMENTED, "input": NOT_IMPLEMENTED, "grid": NOT_IMPLEMENTED},
        vmap=lambda args, dims, size: _fold(backward, 3, args, dims, size),
        cost="compute",
        function=False,
        method=False,
    )
    return forward, backward


def _fold(op: Operator, tensors: int, args: tuple, dims: tuple, size: int) -> tuple:
    """The mapped axis joins the batch."""
    folded = [in_front(t, d, size).flatten(0, 1) for t, d in zip(args[:tensors], dims[:tensors])]
    out = dispatch(op, (*folded, *args[tensors:]))
    if isinstance(out, Tensor):
        return out.unflatten(0, (size, -1)), 0
    result = tuple(None if t is None else t.unflatten(0, (size, -1)) for t in out)
    return result, tuple(None if t is None else 0 for t in result)


grid_sampler_2d, grid_sampler_2d_backward = _declare(2)
grid_sampler_3d, grid_sampler_3d_backward = _declare(3)


@composite(
    "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    method=False,
    out=False,
    autocast_cpu="float32",
    autocast_cuda="widest",
)
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    args = (input, grid, interpolation_mode, padding_mode, align_corners)
    _check(input.shape, grid.shape, input.dtype.numpy, grid.dtype.numpy, interpolation_mode)
    return dispatch(grid_sampler_2d if input.ndim == 4 else grid_sampler_3d, args)


@front("nn.functional.grid_sample")
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Sample `input` at the points of `grid`."""
    if mode not in _MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    return grid_sampler(input, grid, _MODES[mode], _PADDINGS[padding_mode], _aligned(align_corners))


def _aligned(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=4,
        )
        return False
    return align_corners


# ---- affine grids
def _affine_base(xp, theta, size: tuple, align_corners: bool):
    """Coordinates (positions, axes + 1) of an image's entries, in the precision that `theta` is computed in."""
    return kernels.affine_base(xp, size[2:], align_corners, widen(theta).dtype)


def _affine(xp, theta, size, align_corners):
    base = _affine_base(xp, theta, size, align_corners)
    result = xp.matmul(base, widen(theta).swapaxes(1, 2))
    return narrow_to(result, theta.dtype).reshape(_affine_shape(theta.shape, size))


def _affine_shape(theta: tuple, size: tuple) -> tuple:
    if len(size) not in (4, 5):
        raise RuntimeError(
            f"AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs, but got a size of {len(size)} entries"
        )
    if theta[0] != size[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{size[0]}, {len(size) - 1}] but got: "
            f"[{theta[0]}, {len(size) - 1}]."
        )
    return (size[0], *size[2:], len(size) - 2)


def _affine_backward(xp, g, size, align_corners):
    base = _affine_base(xp, g, size, align_corners)
    points = widen(g).reshape(size[0], base.shape[0], len(size) - 2)
    return narrow_to(xp.matmul(points.swapaxes(1, 2), base), g.dtype)


affine_grid_generator = operator(
    "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
    kernel=_affine,
    meta=lambda theta, size, align_corners: Spec(_affine_shape(theta.shape, size), theta.dtype),
    vjp={"theta": lambda g, size, align_corners: dispatch(affine_grid_generator_backward, (g, size, align_corners))},
    jvp=LINEAR,
    method=False,
    out=False,
)

affine_grid_generator_backward = operator(
    "affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor",
    kernel=_affine_backward,
    meta=lambda grad, size, align_corners: Spec((size[0], len(size) - 2, len(size) - 1), grad.dtype),
    vjp={"grad": lambda g, size, align_corners: dispatch(affine_grid_generator, (g, size, align_corners))},
    jvp=LINEAR,
    function=False,
    method=False,
)


@front("nn.functional.affine_grid")
def affine_grid(theta, size, align_corners=None):
    """The grid for `grid_sample` of the affine maps `theta` (N, axes, axes + 1)."""
    align_corners = _aligned(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    n = len(size) - 2
    if theta.ndim != 3 or tuple(theta.shape[-2:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}."
        )
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. "
            "This is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=3,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return affine_grid_generator(theta, tuple(size), align_corners)
