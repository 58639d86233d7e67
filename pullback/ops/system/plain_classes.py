"""Subclasses taken as plain tensors: what `super().__torch_dispatch__` does with an operator.

In: an operator and the arguments that its handler was called with. Out: the result as if every tensor among them were of
class Tensor, on the same memory; nothing is recorded, since autograd has done its work above. An operator that writes
gives the very argument that was written, which has the shape and the memory that the operator gave it.
"""

from __future__ import annotations

from ...core import modes
from ...core.layers import above
from ...core.tensor import DISPATCH_SUBCLASS, LAYOUTS, SUBCLASS, Tensor, assemble
from .dispatch import dispatch
from .operator import Operator


def run_as_plain(op: Operator, args: tuple, kwargs: dict):
    originals: dict[int, tuple[Tensor, Tensor]] = {}
    values = op.convert(op.bind(tuple(args), kwargs))
    with modes.masked(0, modes.BELOW_AUTOGRAD):
        result = dispatch(op, tuple(_plain(v, originals) for v in values))
    for plain, original in originals.values():
        if plain._array is not original._array:  # set_, resize_, t_
            original._array, original._memory, original._offset = plain._array, plain._memory, plain._offset
    if isinstance(result, Tensor) and id(result) in originals:
        return originals[id(result)][1]
    return result


def _plain(value, originals: dict[int, tuple[Tensor, Tensor]]):
    if isinstance(value, tuple):
        return tuple(_plain(v, originals) for v in value)
    if not isinstance(value, Tensor) or not value._keys & DISPATCH_SUBCLASS:
        return value
    keys = value._keys & ~(SUBCLASS | DISPATCH_SUBCLASS)
    memory = None if keys & LAYOUTS else value._memory
    t = assemble(Tensor, value._array, value.dtype, value.device, keys, None, value._counter, memory, value._offset)
    originals[id(t)] = t, value
    return t


above.run_as_plain = run_as_plain
