"""`Variable`: the old name of a tensor. `Variable(data, requires_grad=True)` is an alias of `data` as a leaf."""

from __future__ import annotations

from ..core.tensor import Tensor
from .engine import queue_callback


class _VariableMeta(type):
    def __instancecheck__(cls, x) -> bool:
        return isinstance(x, Tensor)

    def __subclasscheck__(cls, sub) -> bool:
        return issubclass(sub, Tensor)


class _Engine:
    """What programs reach for as `Variable._execution_engine`."""

    queue_callback = staticmethod(queue_callback)


class Variable(metaclass=_VariableMeta):
    """Calling it aliases a tensor; every tensor is an instance."""

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad: bool = False, volatile=None):
        result = Tensor() if data is None else data.detach() if isinstance(data, Tensor) else Tensor(data)
        return result.requires_grad_(requires_grad)
