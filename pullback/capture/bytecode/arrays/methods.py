"""Methods of traced arrays: the functions of the same names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.dtype import by_numpy
from ..signals import Break
from .arguments import refuse
from .traced import TABLE, TracedArray, asked


def _method(name: str, function) -> Callable:
    def method(self, *args, **kwargs):
        return TABLE[function](self, *args, **kwargs)

    method.__name__ = name
    return method


def _spread_method(name: str, function) -> Callable:
    """`a.reshape(2, 3)`, `a.transpose(1, 0)`: the argument may be spread."""

    def method(self, *args, **kwargs):
        return TABLE[function](self, args[0] if len(args) == 1 else args or None, **kwargs)

    method.__name__ = name
    return method


def _astype(self, dtype, order="K", casting="unsafe", subok=True, copy=True):
    model = asked(np.ndarray.astype if not self.is_scalar else np.generic.astype, (self, dtype), {})
    if model.dtype not in by_numpy or casting != "unsafe":
        raise Break(f"it casts a NumPy array to {model.dtype}: ndarray.astype({model.dtype})")
    if self.dtype.kind == "c" and model.dtype.kind not in "cb":
        raise Break("it casts complex numbers to real ones")
    result = self.tensor.to(by_numpy[model.dtype])
    return TracedArray(result.clone() if copy and result is self.tensor else result, self.is_scalar)


def _fill(self, value) -> None:
    self[...] = value


def _flatten(self, order="C"):
    refuse(order=(order, "C"))
    return TracedArray(self.tensor.reshape(-1).clone())


METHODS: dict[str, Any] = {
    name: getattr(np, name)
    for name in """sum prod mean std var max min argmax argmin any all cumsum cumprod ravel squeeze swapaxes repeat clip round take dot
    trace diagonal copy conj conjugate argsort""".split()
}
for np_name, np_function in METHODS.items():
    setattr(TracedArray, np_name, _method(np_name, np_function))
TracedArray.reshape = _spread_method("reshape", np.reshape)  # type: ignore[attr-defined]
TracedArray.transpose = _spread_method("transpose", np.transpose)  # type: ignore[attr-defined]
TracedArray.astype, TracedArray.fill, TracedArray.flatten = _astype, _fill, _flatten  # type: ignore[attr-defined]
