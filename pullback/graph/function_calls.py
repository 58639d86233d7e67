"""The form in which calls of `torch.nn.functional` are recorded: what must be given by position, all else by keyword.

In: a function and the arguments a program gave. Out: the same call with every default written out. What always holds:
calls that do not fit the signature, and functions of other modules, come out as they went in.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

from .names import public_name

_SPACE = "torch.nn.functional."

# Built in: their calls are recorded as they were written.
_BUILT_IN = frozenset((
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "bilinear", "celu_", "channel_shuffle", "elu_", "gelu", "hardshrink",
    "hardtanh_", "leaky_relu_", "linear", "logsigmoid", "one_hot", "pairwise_distance", "pdist", "pixel_shuffle",
    "pixel_unshuffle", "prelu", "relu_", "rrelu_", "scaled_dot_product_attention", "selu_", "softplus", "softshrink",
    "threshold_", "cosine_similarity", "native_channel_shuffle", "sigmoid", "tanh",
))  # fmt: skip


def recorded_form(function: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments of a call as they are recorded."""
    name = public_name(function) or ""
    parameters = _parameters(function, name) if name.startswith(_SPACE) else None
    if parameters is None:
        return args, kwargs
    names = list(parameters)
    if len(args) > len(names) or not all(k in parameters for k in kwargs):
        return args, kwargs
    given = {**dict(zip(names, args)), **kwargs}
    required = [n for n, default in parameters.items() if default is inspect.Parameter.empty]
    if not all(n in given for n in required):
        return args, kwargs
    rest = {n: given.get(n, default) for n, default in parameters.items() if n not in required}
    return tuple(given[n] for n in required), rest


@functools.cache
def _parameters(function: Any, public: str) -> dict[str, Any] | None:
    """Parameter -> default, for the functions that this concerns."""
    name = public[len(_SPACE) :]
    if name in _BUILT_IN:
        return None
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return {p.name: p.default for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
