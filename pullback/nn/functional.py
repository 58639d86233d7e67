"""`nn.functional`: the operators of neural networks as functions.

Operators say that they belong here; this module gathers them, adds what is shared with `torch`, and nothing of its own.
"""

from __future__ import annotations

from ..ops.operator import exports as _exports

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
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
