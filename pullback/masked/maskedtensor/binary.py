"""The binary operators that PyTorch lists for masked tensors; `rules` takes every element-wise one."""

from __future__ import annotations

from ...ops.system.packet import ops

BINARY_NAMES = (
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide "
    "floor_divide fmod logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge "
    "greater greater_equal gt less_equal lt less maximum minimum fmax fmin not_equal"
).split()
INPLACE_BINARY_NAMES = [
    f"{name}_"
    for name in BINARY_NAMES
    if name not in {"logaddexp", "logaddexp2", "equal", "minimum", "maximum", "fmin", "fmax"}
]
NATIVE_BINARY_FNS = [getattr(ops.aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(ops.aten, name) for name in INPLACE_BINARY_NAMES]
