"""Copies, casts and moves: `clone`, `contiguous`, `detach`, `to`, `float` and its kin."""

from __future__ import annotations

import numpy as np

from ...core import device as devices
from ...core import dtype as dtypes
from ...core.arrays import assign, library
from ...core.device import device as device_type
from ...core.dtype import PYTHON_TYPES, computable
from ...core.dtype import dtype as dtype_type
from ...core.geometry import contiguous_strides
from ...core.modes import ambient
from ...core.storage import new_array
from ...core.tensor import CUDA, DISPATCH_SUBCLASS, FAKE, META, SPARSE, Parameter, Tensor, stride_of, wrap
from ..family.base import Family
from ..family.factory import FACTORY
from ..family.formats import prefers_channels_last
from ..shape import view_inverses
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.inplace import cast_array
from ..system.operator import LINEAR, NONDIFFERENTIABLE, Operator, Spec
from .like import like_strides
from .make_lowering import lower_alias, lower_copy

_FORMAT = "MemoryFormat? memory_format=None"


# ---- copies
def _copy_array(xp, spec: Spec, source, source_dtype):
    cast = cast_array(source, source_dtype, spec.dtype)
    if cast is not source and cast.__class__ is np.ndarray and xp is np and cast.base is None:  # a copy already
        if cast.flags.c_contiguous and (spec.stride is None or spec.stride == contiguous_strides(cast.shape)):
            return cast
    out = new_array(spec.shape, spec.dtype, spec.stride, xp)
    assign(out, cast)
    return out


def _to_spec(self, dtype, layout, device, pin_memory, non_blocking, memory_format) -> Spec:
    return Spec(self._array.shape, dtype or self.dtype, like_strides(self, memory_format))


class _Copy(Family):
    """Copies of one tensor, possibly to another dtype or device."""

    takes_copies = False  # the function in C keeps the order of memory itself

    def meta(self, op: Operator, args: tuple) -> Spec:
        return op.meta_rule(*args)

    def execute(self, op: Operator, args: tuple):
        source = args[0]
        device = devices.indexed(FACTORY.device(op, args))
        if device is devices.meta:
            return self.run_meta(op, args)
        if source._keys & META:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        spec = self.meta(op, args)
        computable(spec.dtype, device)
        return wrap(_copy_array(library(device), spec, source._array, source.dtype), spec.dtype, device)

    def vmap(self, op: Operator, args: tuple, dims: tuple, size: int):
        """The batch in front: a copy asked to be row-major is so for each example."""
        place = op.schema.index.get("memory_format")
        wanted = None if place is None else args[place]
        if wanted not in (None, devices.preserve_format, devices.contiguous_format):
            raise RuntimeError(
                f"NYI: Tensor.{op.name}(memory_format) inside vmap is only supported with memory_format "
                f"torch.preserve_format or torch.contiguous_format (got {wanted})"
            )
        return op(args[0].movedim(dims[0], 0), *args[1:]), 0


COPY = _Copy()


def _copying(schema: str, **rules) -> Operator:
    return Operator(schema, COPY, **rules)


to_copy = _copying(
    f"_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, {_FORMAT}) -> Tensor",
    lower=lower_copy,
    meta=_to_spec,
    node="ToCopyBackward0",
    vjp=lambda g, self_info: (
        g.to(device=self_info.device, dtype=self_info.dtype)
        if g.dtype.is_complex <= self_info.dtype.is_complex
        else g.to(device=self_info.device)
    ),
    jvp=LINEAR,
    cost="cheap",
    cross_device=True,
)
clone_op = _copying(
    f"clone(Tensor self, *, {_FORMAT}) -> Tensor",
    lower=lower_copy,
    meta=lambda self, memory_format: Spec(self._array.shape, self.dtype, like_strides(self, memory_format)),
    vjp=lambda g: g,
    jvp=LINEAR,
    cost="cheap",
    cross_device=True,
    opaque="all",
)


def _no_format(function: str, value: object) -> TypeError:
    return TypeError(f"{function}(): argument 'memory_format' must be torch.memory_format, not {type(value).__name__}")


@front("torch.clone", "Tensor.clone")
def clone(input, *, memory_format=None) -> Tensor:
    if memory_format is not None and memory_format.__class__ is not devices.memory_format:
        raise _no_format("clone", memory_format)
    return dispatch(clone_op, (input, memory_format))


@front("Tensor.contiguous", past=("clone.default",))
def contiguous(self, memory_format=devices.contiguous_format) -> Tensor:
    if memory_format is devices.preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    if memory_format.__class__ is not devices.memory_format:
        raise _no_format("contiguous", memory_format)
    return self if self.is_contiguous(memory_format=memory_format) else dispatch(clone_op, (self, memory_format))


class _Detach(Family):
    """The same tensor without history: shares memory and version."""

    def execute(self, op: Operator, args: tuple):
        t = args[0].shallow()
        if type(t) is not Tensor and not t._keys & ~(CUDA | META | SPARSE):
            t.__class__ = Tensor
        return t

    run_meta = execute

    def meta(self, op: Operator, args: tuple) -> Spec:
        t = args[0]
        return Spec(t._array.shape, t.dtype, stride_of(t))

    def vmap(self, op: Operator, args: tuple, dims: tuple, size: int):
        return op(*args), dims[0]


DETACH = _Detach()
detach_op = Operator(
    "detach(Tensor(a) self) -> Tensor(a)",
    DETACH,
    lower=lower_alias,
    vjp=NONDIFFERENTIABLE,
    lazy_bits=True,
    cost="view",
    inverse=view_inverses.same,
)


@front("torch.detach", "Tensor.detach")
def detach(input) -> Tensor:
    result = dispatch(detach_op, (input,))
    if input._keys & result._keys & DISPATCH_SUBCLASS:
        result._counter = input._counter  # a class may have made another tensor, on the same memory
    if result.__class__ is Parameter and result is not input:
        result.__class__ = Tensor  # one of another layout, or without data
    return result


# ---- casts and moves
def _to_target(function: str, args: tuple, dtype, device, other) -> tuple:
    """The dtype and device asked for by positional and keyword forms of `to`."""
    for a in args:
        if isinstance(a, Tensor):
            other = a
        elif isinstance(a, dtype_type) or isinstance(a, type) and a in PYTHON_TYPES:
            dtype = a
        elif isinstance(a, (device_type, str)) or isinstance(a, int) and not isinstance(a, bool):
            device = device_type(a)
        elif a is not None and not isinstance(a, bool):
            raise TypeError(
                f"{function}() received an invalid combination of arguments - got ({type(a).__name__}), but expected a dtype, a device or a tensor"
            )
    dtype = PYTHON_TYPES.get(dtype, dtype) if isinstance(dtype, type) else dtype
    if dtype is not None and not isinstance(dtype, dtype_type):
        raise TypeError(
            f"{function}() received an invalid combination of arguments - got (dtype={type(dtype).__name__}, )"
        )
    if other is not None:
        dtype, device = dtype or other.dtype, device or other.device
    return dtype, device_type(device) if device is not None else None


@front("Tensor.to")
def to(self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None, other=None) -> Tensor:
    """Cast or move; itself where nothing changes and `copy` is false."""
    if len(args) == 1 and dtype is device is memory_format is other is None and copy is False:
        target = args[0]  # most calls of programs change nothing
        if target is self.dtype or target.__class__ is device_type and target == self.device:
            return self
        if target == "cpu" and target.__class__ is str and self.device is devices.cpu:
            return self
    flags = [a for a in args if isinstance(a, bool)]
    copy = flags[1] if len(flags) > 1 else copy
    dtype, device = _to_target("to", args, dtype, device, other)
    if device is not None and device.index is None and device.type == self.device.type:
        device = self.device
    same = (dtype is None or dtype is self.dtype) and (device is None or device is self.device)
    if same and not copy and (memory_format in (None, devices.preserve_format) or memory_format is _prevailing(self)):
        return self
    if device is not None and device.type not in ("cpu", "meta") and not self._keys & FAKE:
        library(device)
    return dispatch(to_copy, (self, dtype or self.dtype, None, device, None, non_blocking, memory_format))


def _prevailing(t: Tensor):
    """The memory format that a tensor is taken for, gaps or none: whatever is not channels-last counts as row-major."""
    if not prefers_channels_last(t):
        return devices.contiguous_format
    return devices.channels_last if t._array.ndim == 4 else devices.channels_last_3d


_to = to.__wrapped__  # type: ignore[attr-defined]  # for calls that have been offered to modes and classes


def _cast_method(name: str, d: dtype_type) -> None:
    def cast(self, memory_format=None) -> Tensor:
        if self.dtype is d and memory_format is None:
            return self
        return _to(self, d, memory_format=memory_format)

    cast.__name__ = name
    front(f"Tensor.{name}")(cast)


for _name, _dtype in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "int": dtypes.int32, "long": dtypes.int64,
    "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool, "chalf": dtypes.complex32, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
}.items():  # fmt: skip
    _cast_method(_name, _dtype)


@front("Tensor.type_as")
def type_as(self, other) -> Tensor:
    if self.dtype is other.dtype and self.device == other.device:
        return self
    return _to(self, device=other.device, dtype=other.dtype)


@front("Tensor.type")
def type_(self, dtype=None, non_blocking=False, **kwargs):
    """The name of this tensor's type, or a copy of another type."""
    if dtype is None:
        space = {"cpu": "torch", "meta": "torch.meta"}.get(self.device.type, f"torch.{self.device.type}")
        return f"{space}{'.sparse' if self._keys & SPARSE else ''}.{self.dtype.scalar_name}Tensor"
    if isinstance(dtype, str):
        found = next((d for d in dtypes.ALL if dtype.endswith(f".{d.scalar_name}Tensor")), None)
        if found is None:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = found
    elif not isinstance(dtype, dtype_type):
        dtype = ambient.default_dtype if dtype is Tensor else dtype.dtype
    return self.to(dtype)


@front("Tensor.cpu")
def cpu(self, memory_format=None) -> Tensor:
    if self.device is devices.cpu and memory_format is None:
        return self
    return self.to(devices.cpu, memory_format=memory_format)


@front("Tensor.cuda")
def cuda(self, device=None, non_blocking=False, memory_format=None) -> Tensor:
    return self.to(device_type("cuda") if device is None else device_type(device), memory_format=memory_format)


def _absent(name: str) -> None:
    def move(self, *args, **kwargs):
        raise RuntimeError(f"Tensor.{name}(): this build has no {name} device")

    move.__name__ = name
    front(f"Tensor.{name}")(move)


for _name in ("xpu", "ipu", "mtia", "hpu"):
    _absent(_name)
