"""Rearrangements between channels and space: pixel shuffle, pixel unshuffle, channel shuffle.

Comes in: x (..., C, H, W), or (N, C, ...) for channels. Goes out: a contiguous copy in the new order. Always holds:
entries are only moved; pixel_shuffle and pixel_unshuffle undo each other.
"""

from __future__ import annotations

from typing import Any

from .geometry import Array


def pixel_shuffle(xp: Any, x: Array, factor: int) -> Array:
    """(..., C * factor**2, H, W) to (..., C, H * factor, W * factor)."""
    *lead, c, h, w = x.shape
    parts = x.reshape(*lead, c // factor**2, factor, factor, h, w)
    n = len(lead)
    moved = parts.transpose(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return _laid_out(xp, moved, (*lead, c // factor**2, h * factor, w * factor))


def pixel_unshuffle(xp: Any, x: Array, factor: int) -> Array:
    """(..., C, H * factor, W * factor) to (..., C * factor**2, H, W)."""
    *lead, c, h, w = x.shape
    parts = x.reshape(*lead, c, h // factor, factor, w // factor, factor)
    n = len(lead)
    moved = parts.transpose(*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return _laid_out(xp, moved, (*lead, c * factor**2, h // factor, w // factor))


def channel_shuffle(xp: Any, x: Array, groups: int) -> Array:
    """Channels (groups, C/groups) read as (C/groups, groups)."""
    n, c, *rest = x.shape
    return _laid_out(xp, x.reshape(n, groups, c // groups, *rest).swapaxes(1, 2), x.shape)


def _laid_out(xp: Any, moved: Array, shape: tuple[int, ...]) -> Array:
    out = xp.empty(shape, moved.dtype)
    out.reshape(moved.shape)[...] = moved
    return out
