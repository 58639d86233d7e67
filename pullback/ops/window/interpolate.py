"""`interpolate` and its older names: one function over every way to resample.

Comes in: a tensor (N, C, spatial...), a size or scale factors, and the name of a mode. Goes out: the tensor at the new
size. Always holds: the mode and the number of spatial axes pick one operator; what fits none raises.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

from ...core.tensor import Tensor
from ..eager.views import is_plain_tensor
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import Operator
from .avg_pool import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .resample import UPSAMPLE, output_size_of

_SMOOTH = ("linear", "bilinear", "bicubic", "trilinear", "lanczos")
_OPERATORS = {
    **{("nearest", n): f"upsample_nearest{n}d" for n in (1, 2, 3)},
    **{("nearest-exact", n): f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)},
    ("linear", 1): "upsample_linear1d",
    ("bilinear", 2): "upsample_bilinear2d",
    ("trilinear", 3): "upsample_trilinear3d",
    ("bicubic", 2): "upsample_bicubic2d",
}
_ANTIALIASED = {mode: f"_upsample_{mode}2d_aa" for mode in ("bilinear", "bicubic", "lanczos")}
_AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_RANKS = {"linear": 3, "bilinear": 4, "trilinear": 5}


@front("nn.functional.interpolate")
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resample `input` to `size`, or by `scale_factor`."""
    options = (mode, align_corners, recompute_scale_factor, antialias)
    if is_plain_tensor(input) and _is_plain(size) and _is_plain(scale_factor):
        op, rest = _kept(input._array.shape, size, scale_factor, *options)
    else:
        op, rest = _chosen(input.shape, size, scale_factor, *options)
    return dispatch(op, (input, *rest))


def _is_plain(value: Any) -> bool:
    """Whether a size or a factor is nothing, or a number or numbers of Python that are equal only where they mean the same."""
    return value is None or value.__class__ is int or value.__class__ is float


def _chosen(
    shape, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias
) -> tuple[Operator, tuple]:
    """The operator that resamples a tensor of a shape, and what it is given after the tensor."""
    if mode not in _SMOOTH and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    wanted, factors = _wanted(shape, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if factors is not None and (recompute_scale_factor or mode == "area"):
        wanted, factors = tuple(int(n * f) for n, f in zip(shape[2:], factors)), None
    if antialias and not (mode in _ANTIALIASED and len(shape) == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    spatial = len(shape) - 2
    if mode == "area" and spatial in _AREA:
        return _AREA[spatial], (wanted,)
    name = _operator_name(mode, spatial, bool(align_corners), antialias)
    out = output_size_of(shape, wanted, factors)
    flags = (bool(align_corners),) if mode in _SMOOTH else ()
    return UPSAMPLE[name], (out, *flags, *(factors or (None,) * spatial))


_kept = functools.lru_cache(256, typed=True)(_chosen)


def _operator_name(mode: str, spatial: int, align_corners: bool, antialias: bool) -> str:
    if mode == "lanczos" and spatial == 2:
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
    if antialias:
        return _ANTIALIASED[mode]
    if (mode, spatial) in _OPERATORS:
        return _OPERATORS[mode, spatial]
    if mode in _RANKS and spatial in (1, 2, 3):
        raise NotImplementedError(f"Got {spatial + 2}D input, but {mode} mode needs {_RANKS[mode]}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {spatial + 2}D) for the modes: nearest | "
        f"linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def _is_count(value) -> bool:
    """Whether a size is a whole number: an int, a tensor of one, or a symbol."""
    if isinstance(value, Tensor):
        return value.dtype.category < 2
    return hasattr(value, "__index__") or getattr(value, "is_symbolic", False)


def _wanted(shape: tuple, size: Any, scale_factor: Any) -> tuple[tuple | None, tuple | None]:
    """The size or the factors, one entry per spatial axis; the other of the two is None."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    what, value = ("output size", size) if size is not None else ("scale_factor", scale_factor)
    spatial = len(shape) - 2
    if not isinstance(value, (tuple, list)):
        value = (value,) * spatial
    elif len(value) != spatial:
        _wrong_count(shape, what, value)
    if size is None:
        return None, tuple(float(f) for f in value)
    if not all(_is_count(n) for n in value):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
            f"with types {[type(n) for n in value]}"
        )
    return tuple(n if getattr(n, "is_symbolic", False) else n.__index__() for n in value), None


def _wrong_count(shape: tuple, what: str, value: Any) -> None:
    """Raise: one entry per spatial axis was wanted."""
    short = "output" if what == "output size" else what
    of = "output size of" if what == "output size" else "scale_factor of shape"
    letters = ("output size", "o1, o2, ...,oK") if what == "output size" else ("scale_factor", "s1, s2, ...,sK")
    raise ValueError(
        f"Input and {short} must have the same number of spatial dimensions, but got input with spatial dimensions of "
        f"{list(shape[2:])} and {of} {value}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
        f"{letters[0]} in ({letters[1]}) format."
    )


@front("nn.functional.upsample")
def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """An older name of `interpolate`."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@front("nn.functional.upsample_nearest")
def upsample_nearest(input, size=None, scale_factor=None):
    """`interpolate` with mode "nearest"."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@front("nn.functional.upsample_bilinear")
def upsample_bilinear(input, size=None, scale_factor=None):
    """`interpolate` with mode "bilinear" and aligned corners."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _deprecated(name: str) -> None:
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=4)
