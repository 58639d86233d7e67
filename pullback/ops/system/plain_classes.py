"""Subclasses taken as plain tensors: what `super().__torch_dispatch__` does with an operator.

In: an operator and the arguments that its handler was called with. Out: the result as if every tensor among them were of
class Tensor, on the same memory; nothing is recorded, since autograd has done its work above. An operator that writes
gives the very argument that was written.
"""

from __future__ import annotations

from ...core import modes
from ...core.layers import above
from ...core.tensor import DISPATCH_SUBCLASS, LAYOUTS, SUBCLASS, Tensor, assemble
from .dispatch import dispatch
from .operator import Operator


def run_as_plain(op: Operator, args: tuple, kwargs: dict):
    originals: dict[int, Tensor] = {}
    values = op.convert(op.bind(tuple(args), kwargs))
    with modes.masked(0, modes.BELOW_AUTOGRAD):
        result = dispatch(op, tuple(_plain(v, originals) for v in values))
    if isinstance(result, Tensor):
        return originals.get(id(result), result)
    return result


def _plain(value, originals: dict[int, Tensor]):
    if isinstance(value, tuple):
        return tuple(_plain(v, originals) for v in value)
    if not isinstance(value, Tensor) or not value._keys & DISPATCH_SUBCLASS:
        return value
    keys = value._keys & ~(SUBCLASS | DISPATCH_SUBCLASS)
    memory = None if keys & LAYOUTS else value._memory
    t = assemble(Tensor, value._array, value.dtype, value.device, keys, None, value._counter, memory, value._offset)
    originals[id(t)] = value
    return t


above.run_as_plain = run_as_plain
