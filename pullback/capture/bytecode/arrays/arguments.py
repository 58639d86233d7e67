"""Arguments of NumPy's functions as operators take them: values as tensors, axes as dimensions; others end the graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....core.dtype import by_numpy
from ....core.tensor import Tensor
from ....ops.system.operator import public
from ..signals import Break
from .traced import TABLE, TracedArray


def torch(name: str, namespace: str = "torch") -> Callable:
    return public(namespace, name)


def of(value, dtype=None) -> Tensor:
    """An argument as a tensor, of a dtype of NumPy's where one is named."""
    if isinstance(value, (list, tuple)):
        value = TABLE[np.array](value)
    elif not isinstance(value, TracedArray):
        value = TABLE[np.asarray](value)
    wanted = value.tensor.dtype if dtype is None else by_numpy[np.dtype(dtype)]
    return value.tensor if value.tensor.dtype is wanted else value.tensor.to(wanted)


def refuse(**given) -> None:
    """End the graph where an argument is given that changes what the translation does."""
    for name, (value, usual) in given.items():
        if value is not usual and value != usual:
            raise Break(f"it calls a NumPy function with {name}={value!r}")


def all_axes(t: Tensor, axis) -> tuple:
    if axis == ():
        raise Break("it reduces a NumPy array over no axis")
    return tuple(range(t.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)


def reduced(function: Callable, t: Tensor, axis, keepdims: bool, **named) -> Tensor:
    axes = all_axes(t, axis)
    return function(t, axes, keepdim=bool(keepdims), **named) if axes else t.clone()
