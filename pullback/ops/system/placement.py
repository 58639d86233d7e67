"""Operators on tensors of a CUDA device: which device a call runs on, and what goes over the CPU.

`execute_on_device(op, args)` runs a kernel with CuPy; its results are on the device of its tensors, always. Tensors of
two devices in one call are PyTorch's error, but for tensors without dimensions on the CPU, which are numbers. Operators
whose kernels are SciPy's alone say so (`over_cpu`; those on LAPACK see to it themselves, in `linalg.lapack`): their tensors are copied to the CPU and their results
back. Where CuPy refuses a call (a dtype, an option) the same is done once it has refused, and said in a warning.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ...core import device as devices
from ...core.arrays import library, to_device, to_host
from ...core.cupy_library import device_count
from ...core.device import device
from ...core.dtype import computable
from ...core.layers import above
from ...core.tensor import CUDA, LAYOUTS, META, Tensor, wrap

if TYPE_CHECKING:
    from .operator import Operator

_ANYWHERE = nullcontext()
_REFUSALS = (TypeError, ValueError, AttributeError, NotImplementedError)
_refused: set[str] = set()  # operators that were computed over the CPU since CuPy refused them


class _NotDense(Exception):
    """A result that has no array to copy to a device."""


def execute_on_device(op: Operator, args: tuple):
    """Run an operator of which at least one tensor is on a CUDA device."""
    where, args = together(op, args)
    if op.declared.over_cpu:
        return over_cpu(op, args, where)
    if op.lower is not None:
        result = above.operator_on_device(op, args, where)
        if result is not None:
            return result
    try:
        with in_use(where):
            return op.family.execute(op, args)
    except _REFUSALS as error:
        refusal = error
    return _after_refusal(op, args, where, refusal)


def _after_refusal(op: Operator, args: tuple, where: device, refusal: Exception):
    """The call over the CPU: if it is wrong there as well, its words are those that users know."""
    if op.is_view:
        raise refusal
    try:
        out = over_cpu(op, args, where)
    except _NotDense:
        raise refusal from None
    if op.qualified_name not in _refused:
        _refused.add(op.qualified_name)
        warnings.warn(
            f"{op.qualified_name} was computed on the CPU and its result copied back to {where}: CuPy has no kernel for this "
            f"call ({type(refusal).__name__}: {refusal})",
            stacklevel=5,
        )
    return out


def over_cpu(op: Operator, args: tuple, where: device):
    """An operator on copies of its tensors on the CPU; results go back to `where`."""
    return each_tensor(op.family.execute(op, each_tensor(args, _down)), lambda t: _up(t, where))


def each_tensor(value, function):
    """`function` on every tensor in a value: alone, or in tuples and lists."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, list):
        return [each_tensor(v, function) for v in value]
    if isinstance(value, tuple):
        result = [each_tensor(v, function) for v in value]
        return tuple(result) if type(value) is tuple else type(value)(result)
    if isinstance(value, device) and value.type == "cuda":
        return devices.cpu
    return value


def _down(t: Tensor) -> Tensor:
    return wrap(to_host(t._array), t.dtype, devices.cpu, t._keys & ~CUDA) if t._keys & CUDA else t


def _up(t: Tensor, where: device) -> Tensor:
    if t._keys & CUDA:
        return t
    if t._keys & (LAYOUTS | META):
        raise _NotDense
    computable(t.dtype, where)
    return wrap(to_device(t._array, where), t.dtype, where, t._keys)


def together(op: Operator, args: tuple) -> tuple[device, tuple]:
    """(the device of a call, its arguments there); raises PyTorch's words where there are two devices."""
    tensors = op.tensors(args)
    where = tensors[0].device
    if all(t.device is where for t in tensors) or op.declared.cross_device:
        return where, args
    where = next(t.device for t in tensors if t._keys & CUDA)
    free = op.declared.indices_anywhere
    return where, tuple(_moved(a, where, free and i == 1) for i, a in enumerate(args))


def _moved(value, where: device, free: bool):
    """An argument on the device of the call: numbers move, and index tensors do; anything else must be there."""
    if isinstance(value, (tuple, list)):
        return type(value)([_moved(v, where, free) for v in value])
    if not isinstance(value, Tensor) or value.device is where:
        return value
    if value.device is devices.cpu and (free or not value._array.ndim):
        return wrap(to_device(value._array, where), value.dtype, where, value._keys)
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {where} and {value.device}!"
    )


def write_on_device(op: Operator, target: Tensor, args: tuple) -> bool:
    """Put the result of a functional operator straight into `target`; False where it must be computed first."""
    where, args = together(op, args)
    direct = op.declared.write
    try:
        with in_use(where) if where.keys else _ANYWHERE:
            if direct is None:
                return op.family.write(op, target, args)
            direct(*args)
            return True
    except _REFUSALS:
        return False


def in_use(where: device):
    """A block in which a device is CuPy's own: with one device it always is."""
    return _ANYWHERE if device_count() == 1 else library(where).cupy.cuda.Device(where.index)
