"""`nn.functional`: the operators of neural networks as functions.

Operators say that they belong here; this module gathers them, adds what is shared with `torch`, and nothing of its own.
"""

# ruff: noqa: F401 - programs read some of these names here

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Optional

from ..core.dtype import dtype as DType
from ..core.tensor import Tensor
from ..ops.linalg.scaled import ScalingType, SwizzleType
from ..ops.system.operator import exports as _exports
from ..ops.system.overrides import (
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}
_SHARED = (
    "adaptive_avg_pool1d", "avg_pool1d", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "hardshrink",
    "native_channel_shuffle", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "prelu", "relu_",
    "rrelu_", "selu_", "threshold_", "bilinear", "logsigmoid",
)  # fmt: skip

globals().update({name: _exports["torch"][name] for name in _SHARED if name in _exports["torch"]})
globals().update(_exports.get("nn.functional", {}))


def __getattr__(name: str):
    # Operators declared after this module was imported (by extensions) are found too.
    found = _exports.get("nn.functional", {}).get(name)
    if found is None and name == "grad":  # the module of gradients of convolutions, under its second name
        from . import grad as found
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
