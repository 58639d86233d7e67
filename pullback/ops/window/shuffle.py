"""Rearrangements between channels and space as operators: pixel_shuffle, pixel_unshuffle, channel_shuffle.

Always holds: entries are only moved, so each operator's derivative moves them back.
"""

from __future__ import annotations

from ..family.base import operator
from ..family.formats import like_first
from ..system.dispatch import dispatch
from ..system.operator import LINEAR, Spec, export
from .kernels import shuffle as kernels
from .words import listed

LARGEST = 2**63 - 1  # of a size


def _shuffled(shape: tuple, factor: int) -> tuple:
    if len(shape) < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {factor}")
    if factor.__class__ is int and factor**2 > LARGEST:
        raise ValueError(f"upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor={factor}")
    if shape[-3] % factor**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={shape[-3]} is not divisible by {factor**2}"
        )
    return (*shape[:-3], shape[-3] // factor**2, shape[-2] * factor, shape[-1] * factor)


def _unshuffled(shape: tuple, factor: int) -> tuple:
    if len(shape) < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {factor}")
    for name, d in (("height", -2), ("width", -1)):
        if shape[d] % factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({d})={shape[d]} "
                f"is not divisible by {factor}"
            )
    return (*shape[:-3], shape[-3] * factor**2, shape[-2] // factor, shape[-1] // factor)


def _channels(shape: tuple, groups: int) -> tuple:
    if len(shape) <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {listed(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    return tuple(shape)


def _checked(rule, kernel):
    """A kernel that first lets the shape rule object."""

    def run(xp, x, factor):
        rule(x.shape, factor)
        return kernel(xp, x, factor)

    return run


def _in_front(op):
    """The mapped axis goes first: these operators take any number of leading axes."""
    return lambda args, dims, size: (dispatch(op(), (args[0].movedim(dims[0], 0), args[1])), 0)


pixel_shuffle = operator(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    moves=True,
    kernel=_checked(_shuffled, kernels.pixel_shuffle),
    strides=like_first,
    meta=lambda self, factor: Spec(_shuffled(self.shape, factor), self.dtype),
    vjp={"self": lambda g, upscale_factor: dispatch(pixel_unshuffle, (g, upscale_factor))},
    jvp=LINEAR,
    vmap=_in_front(lambda: pixel_shuffle),
    method=False,
    out=False,
)

pixel_unshuffle = operator(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    kernel=_checked(_unshuffled, kernels.pixel_unshuffle),
    strides=like_first,
    meta=lambda self, factor: Spec(_unshuffled(self.shape, factor), self.dtype),
    vjp={"self": lambda g, downscale_factor: dispatch(pixel_shuffle, (g, downscale_factor))},
    jvp=LINEAR,
    vmap=_in_front(lambda: pixel_unshuffle),
    method=False,
    out=False,
)


def _channel_vmap(args: tuple, dims: tuple, size: int) -> tuple:
    t = args[0].movedim(dims[0], 0)
    return dispatch(channel_shuffle, (t.flatten(0, 1), args[1])).unflatten(0, (size, -1)), 0


def _channel_vjp(g, self_shape, groups):
    return dispatch(channel_shuffle, (g, self_shape[1] // groups))


channel_shuffle, native_channel_shuffle = (
    operator(
        f"{_name}(Tensor self, SymInt groups) -> Tensor",
        kernel=_checked(_channels, kernels.channel_shuffle),
        strides=like_first,
        meta=lambda self, groups: Spec(_channels(self.shape, groups), self.dtype),
        vjp={"self": _channel_vjp},
        jvp=LINEAR,
        vmap=_channel_vmap,
        method=False,
        out=False,
    )
    for _name in ("channel_shuffle", "native_channel_shuffle")
)

for _op in (pixel_shuffle, pixel_unshuffle, channel_shuffle, native_channel_shuffle):
    export("nn.functional", _op.name, _op.function)
