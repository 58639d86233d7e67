"""The table of decompositions that `functorch.compile` offers: of its backwards and activations, those that are made of
simpler operators here. Most are operators of their own, and stay whole."""

from __future__ import annotations

from ..export.decompositions import get_decompositions
from ..ops.system.packet import ops

_NAMES = (
    "gelu_backward", "leaky_relu_backward", "sigmoid_backward", "threshold_backward", "hardtanh_backward",
    "hardsigmoid_backward", "hardswish_backward", "tanh_backward", "silu_backward", "elu_backward", "elu", "leaky_relu", "hardtanh",
    "hardswish", "hardsigmoid", "masked_fill",
)  # fmt: skip

default_decompositions = get_decompositions([getattr(ops.aten, name) for name in _NAMES])
