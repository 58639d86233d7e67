"""Images whose channels lie innermost, as pixels: views in which their memory is row-major.

In: arrays (N, C, spatial...) that lie channels-last without gaps. Out: the same memory as (N, spatial..., C), where rows of channels are
what loops run along; new arrays that lie so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .geometry import channels_last_strides

CHANNELS_TOGETHER = 128  # shorter rows of channels are worked on several at a time


def as_pixels(a):
    """(N, spatial..., C) where that is row-major and the array as it is given is not; else None."""
    if a.__class__ is not np.ndarray or a.ndim not in (4, 5) or a.flags.c_contiguous:
        return None
    pixels = pixels_of(a)
    return pixels if pixels.flags.c_contiguous else None


def pixels_of(a):
    """(N, spatial..., C) of (N, C, spatial...): no copy."""
    return a.transpose((0, 2, 3, 1) if a.ndim == 4 else (0, 2, 3, 4, 1))


def new_pixels(shape: Sequence[int], kind: np.dtype) -> np.ndarray:
    """A new array (N, C, spatial...) that lies channels-last."""
    return np.ndarray(shape, kind, strides=[n * kind.itemsize for n in channels_last_strides(shape)])


def pixels_per_row(pixels: int, channels: int, wanted: int = CHANNELS_TOGETHER) -> int:
    """How many pixels to take for one row, where each channel has numbers of its own: a power of two that divides how many there are."""
    together = 1
    while together * channels < wanted and pixels % (2 * together) == 0:
        together *= 2
    return together
