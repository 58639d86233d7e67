"""The world's side of NumPy: its functions in the table of calls, ways between tensors and arrays, attributes and indices."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.tensor import Tensor
from ....ops.make.construct import as_tensor, asarray, from_numpy, tensor
from ....ops.make.python_values import check_numpy
from ....ops.system.operator import public
from ..signals import Break
from . import functions, methods, products, reductions, ufuncs  # noqa: F401 - they fill the table
from .traced import TABLE, TracedArray, is_traced, model_of

if TYPE_CHECKING:
    from ..tracing import Tracing

PROPERTIES = ("dtype", "shape", "ndim", "size", "itemsize", "nbytes", "strides", "T", "real", "imag")
DESCRIPTIONS = (np.dtype, np.finfo, np.iinfo)  # they never change
SCALARS = tuple(
    kind
    for kind in vars(np).values()
    if isinstance(kind, type) and issubclass(kind, np.generic) and kind is not np.void
)
OF_TENSORS = (
    np.array,
    np.asarray,
    np.ones_like,
    np.zeros_like,
    np.empty_like,
    np.full_like,
)  # of the array of a tensor
METHODS = frozenset(("item", "tolist", "reshape", "transpose", "astype", "fill", "flatten", *methods.METHODS))


def attribute(world: Tracing, array: TracedArray, name: str):
    """An attribute of an array."""
    if name == "__class__":
        return world.outside.constant(array.kind)
    if name in PROPERTIES:
        return world.refusing(getattr, (array, name), {})
    if name in METHODS or name.startswith("__") and isinstance(TracedArray.__dict__.get(name), types.FunctionType):
        return types.MethodType(getattr(TracedArray, name), array)
    if hasattr(array.kind, name):
        raise Break(f"it reads {name!r} of a NumPy array")
    return getattr(model_of(array), name)


def described(world: Tracing, obj, name: str):
    """An attribute of a dtype, or of what NumPy tells of one: the dtype must be the same."""
    source, conditions = world.outside.source_of(obj), world.outside.conditions
    if source is not None and source.kind != "constant" and not isinstance(obj, np.dtype):
        code = f"{conditions.variable(source)}.dtype is {conditions.constant(obj.dtype)}"
        conditions.test(code, f"{source.name}.dtype is {obj.dtype}")
    return getattr(obj, name)


def as_index(key):
    """An index of a tensor, with tensors in the place of arrays."""
    if type(key) is tuple:
        return tuple(map(as_index, key))
    if type(key) is TracedArray:
        return key.tensor if key.dtype.kind == "b" else key.tensor.long()
    return key


def refuse_arrays(function, values) -> None:
    """A function of this package takes tensors: what it does with arrays is for plain Python to say."""
    for value in values:
        if type(value) is TracedArray:
            raise Break(f"it gives a NumPy array to {getattr(function, '__name__', function)}")
        if isinstance(value, (list, tuple)):
            refuse_arrays(function, value)


def _called(function):
    def call(world: Tracing, *args, **kwargs):
        if function in OF_TENSORS and args and isinstance(args[0], Tensor):
            args = (_to_array(world, args[0]), *args[1:])
        return world._pure(TABLE[function], args, kwargs)

    return call


def _to_array(world: Tracing, t: Tensor, *, force: bool = False):
    """`x.numpy()`."""
    if t.device.type != "cpu" or type(t) is not Tensor and not force:
        raise Break("it asks for the NumPy array of a tensor that is none on the CPU, or of a class of its own")
    if force:
        t = world.native_call(Tensor.resolve_neg, (world.native_call(Tensor.resolve_conj, (t,), {}),), {})  # type: ignore[attr-defined]
    else:
        check_numpy(t)
    return TracedArray(world.native_call(Tensor.detach, (t,), {}))  # type: ignore[attr-defined]


def _from_array(world: Tracing, ndarray):
    """`torch.from_numpy(a)`: a tensor on the same memory."""
    if type(ndarray) is not TracedArray or ndarray.is_scalar or ndarray.is_loose:
        return _native(world, from_numpy, (ndarray,), {})
    return world.native_call(Tensor.detach, (ndarray.tensor,), {})  # type: ignore[attr-defined]


def _native(world: Tracing, function, args: tuple, kwargs: dict):
    refuse_arrays(function, (*args, *kwargs.values()))
    return world.native_call(function, args, kwargs)


def _sharing(function):
    """`torch.as_tensor(a)`: on the same memory where the dtype is the same."""

    def call(world: Tracing, *args, **kwargs):
        first = args[0] if args else None
        if type(first) is not TracedArray or first.is_loose or first.is_scalar or set(kwargs) - {"dtype"} or args[2:]:
            return _native(world, function, args, kwargs)
        result = _from_array(world, first)
        dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
        return result if dtype is None else world.native_call(Tensor.to, (result, dtype), {})  # type: ignore[attr-defined]

    return call


def _new_tensor(world: Tracing, *args, **kwargs):
    """`torch.tensor(a)`: a copy."""
    if not args or type(args[0]) is not TracedArray or set(kwargs) - {"dtype"} or args[1:]:
        return _native(world, tensor, args, kwargs)
    result = world.native_call(Tensor.clone, (args[0].tensor.detach(),), {})  # type: ignore[attr-defined]
    return world.native_call(Tensor.to, (result, kwargs["dtype"]), {}) if kwargs.get("dtype") else result  # type: ignore[attr-defined]


def _scalar(kind: type):
    """`np.float32(x)`."""

    def call(world: Tracing, *args, **kwargs):
        if not is_traced((args, kwargs)):
            return world._pure(kind, args, kwargs)
        if len(args) != 1 or kwargs or type(args[0]) is not TracedArray:
            raise Break(f"it makes a numpy.{kind.__name__} of a number that is not known")
        cast = world.call_now(types.MethodType(TracedArray.astype, args[0]), (kind,), {})  # type: ignore[attr-defined]
        return TracedArray(cast.tensor, is_scalar=args[0].ndim == 0)

    return call


def _description(kind):
    def call(world: Tracing, *args, **kwargs):
        if is_traced((args, kwargs)):
            raise Break(f"it makes a numpy.{kind.__name__} of what the graph computes")
        return world.outside.constant(world._pure(kind, args, kwargs))

    return call


HANDLED: dict[Any, Any] = {
    **{function: _called(function) for function in TABLE},
    **{kind: _scalar(kind) for kind in SCALARS},
    **{kind: _description(kind) for kind in DESCRIPTIONS},
    from_numpy: _from_array, as_tensor: _sharing(as_tensor), asarray: _sharing(asarray), tensor: _new_tensor,
    public("Tensor", "numpy"): _to_array,
}  # fmt: skip
