"""Copies, casts and moves; tensors as Python values; memory changed under a tensor (`set_`, `resize_`)."""

from __future__ import annotations

import numpy as np

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.arrays import library
from ..core.device import device as device_type
from ..core.dtype import computable
from ..core.dtype import dtype as dtype_type
from ..core.geometry import broadcast_shapes
from ..core.modes import is_grad_enabled
from ..core.promotion import result_type
from ..core.storage import UntypedStorage, check_bounds, storage_of, window
from ..core.tensor import (
    CONJ,
    META,
    NEG,
    NESTED,
    SPARSE,
    TRANSFORMED,
    Tensor,
    set_requires_grad,
    stride_of,
    subclass_of,
    view_of,
    wrap,
)
from .calls import front
from .construct import TypedStorage
from .dispatch import dispatch
from .factories import like_strides
from .family.base import Family, operator
from .family.factory import FACTORY
from .inplace import bump, cast_array, resize
from .operator import LINEAR, NONDIFFERENTIABLE, Operator, Spec, export
from .views import alias as alias_op

_FORMAT = "MemoryFormat? memory_format=None"


# ---- copies
def _copy_array(xp, spec: Spec, source, source_dtype):
    from ..core.storage import new_array

    out = new_array(spec.shape, spec.dtype, spec.stride)
    out[...] = cast_array(source, source_dtype, spec.dtype)
    return out


def _to_spec(self, dtype, layout, device, pin_memory, non_blocking, memory_format) -> Spec:
    return Spec(self.array.shape, dtype or self.dtype, like_strides(self, memory_format))


class _Copy(Family):
    """Copies of one tensor, possibly to another dtype or device."""

    def meta(self, op: Operator, args: tuple) -> Spec:
        return op.meta_rule(*args)

    def execute(self, op: Operator, args: tuple):
        source = args[0]
        device = FACTORY.device(op, args)
        if device is devices.meta:
            return self.run_meta(op, args)
        if source.keys & META:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        spec = self.meta(op, args)
        computable(spec.dtype)
        return wrap(_copy_array(library(device), spec, source.array, source.dtype), spec.dtype, device)

    def vmap(self, op: Operator, args: tuple, dims: tuple, size: int):
        """The batch in front: a copy asked to be row-major is so for each example."""
        return op(args[0].movedim(dims[0], 0), *args[1:]), 0


COPY = _Copy()


def _copying(schema: str, **rules) -> Operator:
    return Operator(schema, COPY, **rules)


to_copy = _copying(
    f"_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, {_FORMAT}) -> Tensor",
    meta=_to_spec,
    node="ToCopyBackward0",
    vjp=lambda g, self_info: (
        g.to(device=self_info.device, dtype=self_info.dtype)
        if g.dtype.is_complex <= self_info.dtype.is_complex
        else g.to(device=self_info.device)
    ),
    jvp=LINEAR,
)
clone_op = _copying(
    f"clone(Tensor self, *, {_FORMAT}) -> Tensor",
    meta=lambda self, memory_format: Spec(self.array.shape, self.dtype, like_strides(self, memory_format)),
    vjp=lambda g: g,
    jvp=LINEAR,
)


@front("torch.clone", "Tensor.clone")
def clone(input, *, memory_format=None) -> Tensor:
    return dispatch(clone_op, (input, memory_format))


@front("Tensor.contiguous")
def contiguous(self, memory_format=devices.contiguous_format) -> Tensor:
    if memory_format is devices.preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return self if self.is_contiguous(memory_format=memory_format) else dispatch(clone_op, (self, memory_format))


class _Detach(Family):
    """The same tensor without history: shares memory and version."""

    def execute(self, op: Operator, args: tuple):
        t = args[0].shallow()
        if type(t) is not Tensor and not t.keys:
            t.__class__ = Tensor
        return t

    run_meta = execute

    def meta(self, op: Operator, args: tuple) -> Spec:
        t = args[0]
        return Spec(t.array.shape, t.dtype, stride_of(t))

    def vmap(self, op: Operator, args: tuple, dims: tuple, size: int):
        return op(*args), dims[0]


DETACH = _Detach()
detach_op = Operator("detach(Tensor(a) self) -> Tensor(a)", DETACH, vjp=NONDIFFERENTIABLE, lazy_bits=True)


@front("torch.detach", "Tensor.detach")
def detach(input) -> Tensor:
    return dispatch(detach_op, (input,))


# ---- casts and moves
def _to_target(function: str, args: tuple, dtype, device, other) -> tuple:
    """The dtype and device asked for by positional and keyword forms of `to`."""
    for a in args:
        if isinstance(a, Tensor):
            other = a
        elif isinstance(a, dtype_type):
            dtype = a
        elif isinstance(a, (device_type, str)) or isinstance(a, int) and not isinstance(a, bool):
            device = device_type(a)
        elif a is not None and not isinstance(a, bool):
            raise TypeError(
                f"{function}() received an invalid combination of arguments - got ({type(a).__name__}), but expected a dtype, a device or a tensor"
            )
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
    flags = [a for a in args if isinstance(a, bool)]
    copy = flags[1] if len(flags) > 1 else copy
    dtype, device = _to_target("to", args, dtype, device, other)
    same = (dtype is None or dtype is self.dtype) and (device is None or device is self.device)
    if (
        same
        and not copy
        and (memory_format in (None, devices.preserve_format) or self.is_contiguous(memory_format=memory_format))
    ):
        return self
    if device is not None and device.type not in ("cpu", "meta"):
        library(device)
    return dispatch(to_copy, (self, dtype or self.dtype, None, device, None, non_blocking, memory_format))


def _cast_method(name: str, d: dtype_type) -> None:
    def cast(self, memory_format=None) -> Tensor:
        return self if self.dtype is d else to(self, d, memory_format=memory_format)

    cast.__name__ = name
    front(f"Tensor.{name}")(cast)


for _name, _dtype in {
    "float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16, "int": dtypes.int32, "long": dtypes.int64,
    "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8, "bool": dtypes.bool, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128,
}.items():  # fmt: skip
    _cast_method(_name, _dtype)


@front("Tensor.chalf")
def chalf(self, memory_format=None):
    raise NotImplementedError("complex32 is not supported: no array library computes with it; use cfloat()")


@front("Tensor.type_as")
def type_as(self, other) -> Tensor:
    return self.to(other.dtype)


@front("Tensor.type")
def type_(self, dtype=None, non_blocking=False, **kwargs):
    """The name of this tensor's type, or a copy of another type."""
    if dtype is None:
        space = {"cpu": "torch", "meta": "torch.meta"}.get(self.device.type, f"torch.{self.device.type}")
        return f"{space}{'.sparse' if self.keys & SPARSE else ''}.{self.dtype.scalar_name}Tensor"
    if isinstance(dtype, str):
        found = next((d for d in dtypes.ALL if dtype.endswith(f".{d.scalar_name}Tensor")), None)
        if found is None:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = found
    elif not isinstance(dtype, dtype_type):
        dtype = dtype.dtype
    return self.to(dtype)


@front("Tensor.cpu")
def cpu(self, memory_format=None) -> Tensor:
    return self.to(devices.cpu)


@front("Tensor.cuda")
def cuda(self, device=None, non_blocking=False, memory_format=None) -> Tensor:
    return self.to(device_type("cuda") if device is None else device_type(device))


def _absent(name: str) -> None:
    def move(self, *args, **kwargs):
        raise RuntimeError(f"Tensor.{name}(): this build has no {name} device")

    move.__name__ = name
    front(f"Tensor.{name}")(move)


for _name in ("xpu", "ipu", "mtia", "hpu"):
    _absent(_name)


# ---- in-place copies and fills
def _copy_kernel(xp, self, src, non_blocking):
    return (
        xp.broadcast_to(src, self.shape).astype(self.dtype)
        if not (src.dtype.kind == "c" and self.dtype.kind != "c")
        else xp.broadcast_to(src.real, self.shape).astype(self.dtype)
    )


def _copy_write(target: Tensor, src: Tensor, non_blocking=False) -> None:
    if broadcast_shapes(target.array.shape, src.array.shape) != target.array.shape:
        raise RuntimeError(
            f"output with shape {list(target.array.shape)} doesn't match the broadcast shape {list(broadcast_shapes(target.array.shape, src.array.shape))}"
        )
    if not target.keys & META:
        if src.keys & META:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        target.array[...] = cast_array(src.array, src.dtype, target.dtype)


copy = operator(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    kernel=_copy_kernel,
    meta=lambda self, src, non_blocking: Spec(self.array.shape, self.dtype),
    function=False,
    method=False,
    inplace=True,
    node="CopyBackwards",
    write=_copy_write,
    vjp={"self": lambda g: g.new_zeros(g.shape), "src": lambda g: g},
    jvp={
        "self": lambda t: t.new_zeros(t.shape),
        "src": lambda t, self_info: t.to(self_info.dtype).expand(self_info.shape),
    },
)


def _fill_write(target: Tensor, value) -> None:
    if isinstance(value, Tensor):
        if value.array.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.array.ndim} dimensions."
            )
        value = value.item()
    from .factories import _as_number

    if not target.keys & META:
        target.array.fill(_as_number(value, target.dtype))


fill_scalar = operator(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    kernel=lambda xp, self, value: xp.full(self.shape, value).astype(self.dtype),
    meta=lambda self, value: Spec(self.array.shape, self.dtype),
    function=False,
    method=False,
    inplace="hidden",
    write=_fill_write,
    vjp=lambda g: g.new_zeros(g.shape),
)
fill_tensor = operator(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    kernel=lambda xp, self, value: xp.broadcast_to(value, self.shape).astype(self.dtype),
    meta=lambda self, value: Spec(self.array.shape, self.dtype),
    function=False,
    method=False,
    inplace="hidden",
    number=1,
    write=_fill_write,
    vjp={"self": lambda g: g.new_zeros(g.shape), "value": lambda g: g.sum()},
)
zero = operator(
    "zero(Tensor self) -> Tensor",
    kernel=lambda xp, self: xp.zeros_like(self),
    meta=lambda self: Spec(self.array.shape, self.dtype),
    function=False,
    method=False,
    inplace="function",
    write=lambda target: _fill_write(target, 0),
    vjp=lambda g: g.new_zeros(g.shape),
)


@front("torch.fill")
def fill(input, value) -> Tensor:
    return dispatch(fill_tensor if isinstance(value, Tensor) else fill_scalar, (input, value))


@front("torch.fill_", "Tensor.fill_")
def fill_(input, value) -> Tensor:
    if isinstance(value, Tensor):
        if value.array.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.array.ndim} dimensions."
            )
        return dispatch(fill_tensor.inplace, (input, value))
    return dispatch(fill_scalar.inplace, fill_scalar.convert((input, value)))


# ---- tensors as Python values
def _item(self: Tensor):
    """The one number in a tensor."""
    if self.array.size != 1:
        raise RuntimeError(f"a Tensor with {self.array.size} elements cannot be converted to Scalar")
    if self.keys:
        if self.keys & META:
            raise RuntimeError("Tensor.item() cannot be called on meta tensors")
        self = plain_numbers(self)
    value = self.array.reshape(-1)[0]
    return value.item() if self.dtype.numpy.kind in "biufc" else float(value)


def no_numbers(t: Tensor, what: str) -> Exception:
    """The error for reading numbers of a tensor that has none of its own: without data, or under a transform."""
    if t.keys & TRANSFORMED:
        return RuntimeError(
            f"vmap: It looks like you're calling .{what}() on a Tensor. We don't support vmap over calling .{what}() on a "
            "Tensor, please try to rewrite what you're doing with other operations. If error is occurring somewhere inside "
            "PyTorch internals, please file a bug report."
        )
    return NotImplementedError("Cannot copy out of meta tensor; no data!")


def plain_numbers(t: Tensor) -> Tensor:
    """A tensor whose array holds its numbers: dense, conjugation and negation carried out."""
    from .dispatch import resolve_bits

    if t.keys & SPARSE:
        t = t.to_dense()
    return resolve_bits(t) if t.keys & (CONJ | NEG) else t


item = front("Tensor.item")(_item)


@front("Tensor.tolist")
def tolist(self):
    """Nested Python lists, or a number."""
    if self.keys & (META | TRANSFORMED):
        raise no_numbers(self, "tolist")
    t = plain_numbers(self)
    array = t.array if t.dtype.numpy.kind in "biufc" else t.array.astype(np.float32)
    return array.tolist()


@front("Tensor.numpy")
def numpy(self, *, force: bool = False):
    """The NumPy array on the same memory."""
    if force:
        return self.detach().cpu().resolve_conj().resolve_neg().numpy()
    if is_grad_enabled() and self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self.keys & CONJ:
        raise RuntimeError(
            "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead."
        )
    if self.keys & NEG:
        raise RuntimeError(
            "Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead."
        )
    if self.keys & META:
        raise TypeError(
            "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
    if self.dtype.numpy.kind not in "biufc":
        raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")
    if self.keys & SPARSE:
        raise TypeError(f"can't convert {self.layout} layout tensor to numpy. Use Tensor.to_dense() first.")
    return self.array.view()


def _array(self, dtype=None, copy=None):
    made = self.numpy()
    return made if dtype is None else made.astype(dtype)


def _to_number(kind, word: str):
    def convert(self):
        if self.array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        value = self.item()
        if isinstance(value, complex) and kind is not complex:
            if value.imag:
                raise RuntimeError(f"value cannot be converted to type {word} without overflow")
            value = value.real
        return kind(value)

    return convert


def _bool(self) -> bool:
    if self.array.size != 1:
        if not self.array.size:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
    return bool(self.item())


def _index(self) -> int:
    if self.array.size != 1 or self.dtype.category > 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(self.item())


def _format(self, spec: str) -> str:
    if not self.array.ndim and not self.keys & META and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


Tensor.__array__ = _array
Tensor.__bool__ = _bool
Tensor.__index__ = _index
Tensor.__format__ = _format
Tensor.__float__ = _to_number(float, "double")
Tensor.__int__ = _to_number(int, "int64_t")
Tensor.__complex__ = _to_number(complex, "complex")
export("Tensor", "is_nonzero", front("torch.is_nonzero")(lambda input: _bool(input)))


# ---- memory
def _set_(self, source=None, storage_offset=0, size=None, stride=None) -> Tensor:
    """Make this tensor read another tensor's or storage's memory."""
    if self.requires_grad and self.is_leaf and is_grad_enabled():
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    if source is None:
        fresh = wrap(np.empty(0, self.dtype.numpy), self.dtype)
        self.array, self.memory, self.offset = fresh.array, storage_of(fresh), 0
    elif isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {source.dtype.alias} to a tensor of type {self.dtype.alias}"
            )
        self.array, self.memory, self.offset = source.array, storage_of(source), source.offset
    else:
        storage = (source.untyped() if isinstance(source, TypedStorage) else source)._storage
        if size is None:
            size = (storage.length // self.dtype.itemsize,)
        size = (size,) if isinstance(size, int) else tuple(size)
        from ..core.geometry import contiguous_strides

        stride = tuple(stride) if stride is not None else contiguous_strides(size)
        check_bounds(storage, size, stride, storage_offset, self.dtype.itemsize)
        self.array, self.memory, self.offset = (
            window(storage, self.dtype, size, stride, storage_offset),
            storage,
            storage_offset,
        )
    bump(self)
    if self.autograd is not None and self.autograd.accumulator is not None:
        self.autograd.accumulator = None  # what was recorded on the old memory is not this tensor's any more
    return self


front("Tensor.set_")(_set_)


@front("Tensor.resize_")
def resize_(self, *sizes, memory_format=None) -> Tensor:
    """Change the shape in place; the storage grows if it must."""
    from .factories import sizes_from

    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    resize(self, sizes_from("resize_", sizes))
    bump(self)
    return self


@front("Tensor.resize_as_", "torch.resize_as_")
def resize_as_(input, the_template, memory_format=None) -> Tensor:
    return input.resize_(the_template.shape)


@front("Tensor.resize")
def resize_out_of_place(self, *sizes) -> Tensor:
    return self.reshape(*sizes) if sizes else self


@front("Tensor.resize_as")
def resize_as(self, tensor) -> Tensor:
    return self.reshape(tensor.shape)


@front("Tensor.storage")
def storage(self) -> TypedStorage:
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


@front("Tensor.storage_type")
def storage_type(self):
    return TypedStorage


@front("Tensor.is_set_to")
def is_set_to(self, tensor) -> bool:
    return (
        storage_of(self) is storage_of(tensor)
        and self.offset == tensor.offset
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


@front("Tensor.share_memory_")
def share_memory_(self) -> Tensor:
    storage_of(self).shared = True
    return self


@front("Tensor.pin_memory")
def pin_memory(self, device=None) -> Tensor:
    raise RuntimeError("Cannot access accelerator device when none is available.")


@front("Tensor.requires_grad_")
def requires_grad_(self, requires_grad: bool = True) -> Tensor:
    set_requires_grad(self, requires_grad)
    return self


@front("Tensor.as_subclass")
def as_subclass(self, cls) -> Tensor:
    made = subclass_of(cls, self)
    if self.requires_grad:
        made.autograd = dispatch(alias_op, (self,)).autograd
    return made


@front("Tensor.apply_")
def apply_(self, callable) -> Tensor:
    """Replace each element by what a Python function makes of it."""
    flat = [callable(v) for v in self.reshape(-1).tolist()]
    self.array[...] = np.asarray(flat, self.dtype.numpy).reshape(self.array.shape)
    bump(self)
    return self


@front("Tensor.map_")
def map_(self, tensor, callable) -> Tensor:
    """Replace each element by what a Python function makes of it and of another tensor's."""
    other = tensor.expand(self.shape).reshape(-1).tolist()
    flat = [callable(a, b) for a, b in zip(self.reshape(-1).tolist(), other, strict=True)]
    self.array[...] = np.asarray(flat, self.dtype.numpy).reshape(self.array.shape)
    bump(self)
    return self


@front("Tensor.map2_")
def map2_(self, x, y, callable) -> Tensor:
    """As `map_`, with two other tensors."""
    columns = (
        self.reshape(-1).tolist(),
        x.expand(self.shape).reshape(-1).tolist(),
        y.expand(self.shape).reshape(-1).tolist(),
    )
    self.array[...] = np.asarray([callable(*row) for row in zip(*columns, strict=True)], self.dtype.numpy).reshape(
        self.array.shape
    )
    bump(self)
    return self


@front("Tensor.dim_order")
def dim_order(self, *, ambiguity_check=False) -> tuple[int, ...]:
    """Dimensions from outermost to innermost in memory."""
    return tuple(sorted(range(self.ndim), key=lambda d: (-self.stride(d), d)))


@front("Tensor.module_load")
def module_load(self, other, assign: bool = False) -> Tensor:
    """What `load_state_dict` does with a tensor: copy it in, or take it over."""
    return other.detach() if assign else self.copy_(other).detach()


@front("Tensor.record_stream")
def record_stream(self, stream) -> None:
    raise RuntimeError("Tensor.record_stream(): CPU tensors have no streams")


@front("Tensor.reinforce")
def reinforce(self, reward):
    raise RuntimeError(
        "Trying to call reinforce(), which is not supported: use torch.distributions and log_prob(action) * reward instead"
    )


def _deepcopy(self, memo):
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were attempting to deepcopy "
            "a module, this may be because of a torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    import copy as copying

    from .overrides import DisableTorchFunctionSubclass

    with DisableTorchFunctionSubclass():
        if self.keys & (META | SPARSE | NESTED):
            made = self.detach().clone()
        else:
            source = storage_of(self)
            target = memo.get(id(source))
            if target is None:
                target = memo[id(source)] = UntypedStorage(storage=source).clone()._storage
            made = view_of(
                self,
                window(target, self.dtype, self.array.shape, stride_of(self), self.offset),
                self.dtype,
                self.offset,
            )
            made.memory, made.version = target, [0]
        if type(self) is not Tensor:
            made = subclass_of(type(self), made)
        made.__dict__.update(copying.deepcopy(self.__dict__, memo))
        if self.requires_grad:
            set_requires_grad(made, True)
        if self.autograd is not None and self.autograd.grad is not None:
            made.autograd.grad = copying.deepcopy(self.autograd.grad, memo)
    memo[id(self)] = made
    return made


def _reduce_ex(self, protocol):
    from ..serialization.tensors import reduce_tensor

    return reduce_tensor(self)


Tensor.__deepcopy__ = _deepcopy
Tensor.__reduce_ex__ = _reduce_ex
export("torch", "result_type", lambda tensor, other: result_type(tensor, other))
