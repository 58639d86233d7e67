"""A tensor that is watched without being kept alive."""

from __future__ import annotations

import weakref

from .tensor import Tensor


class WeakTensorRef:
    """Says whether a tensor is gone."""

    __slots__ = ("_ref",)

    def __init__(self, tensor: Tensor):
        self._ref = weakref.ref(tensor)

    def expired(self) -> bool:
        return self._ref() is None
