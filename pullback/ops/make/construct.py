"""Tensors from Python data, NumPy arrays, buffers and files; the constructors `Tensor(...)` and `FloatTensor(...)`."""

from __future__ import annotations

import numpy as np

from ...core import device as devices
from ...core import dtype as dtypes
from ...core import modes
from ...core import tensor as core_tensor
from ...core.arrays import library, to_device
from ...core.dtype import by_numpy, computable, dtype, numpy_to_dtype
from ...core.errors import warn_once
from ...core.layers import above, extend
from ...core.modes import ambient
from ...core.promotion import promote_types, scalar_dtype
from ...core.size import Size
from ...core.storage import StorageBase, UntypedStorage, storage_of
from ...core.symbolic import concrete, symbolic
from ...core.tensor import SPARSE, Tensor, set_requires_grad, wrap, wrap_meta
from ..eager.functions import ANY, bypassing
from ..shape.views import alias as alias_op
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.inplace import cast_array
from ..system.operator import public
from ..system.stored import on_foreign
from .factories import convert_option, empty_op, finish, sizes_from
from .lifting import lift_fresh, lifted
from .storages import TypedStorage, on_storage

MOST_DIMS = 64  # of an array, in the array library


def infer_dtype(data) -> dtype:
    """The dtype that nested Python data asks for."""
    if isinstance(data, (Tensor, np.generic, np.ndarray)):
        return data.dtype if isinstance(data, Tensor) else numpy_to_dtype(data.dtype)
    if isinstance(data, (bool, int, float, complex)) or getattr(data, "is_symbolic", False):
        return scalar_dtype(data)
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(data, (tuple, list)) or hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        found: dtype | None = None
        for d in data:
            if d is data:
                raise TypeError("new(): self-referential lists are incompatible")
            one = infer_dtype(d)
            found = one if found is None else promote_types(found, one)
        return found or ambient.default_dtype
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")


def _first_of(data):
    """The first element of what says that it is a sequence."""
    try:
        first = data[0]
    except (TypeError, KeyError) as reason:
        raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from reason
    if first is data:
        raise TypeError("new(): self-referential lists are incompatible")
    return first


def _shape_of(data) -> tuple[int, ...]:
    """The shape of nested sequences, by their first elements."""
    shape = []
    while (
        isinstance(data, (tuple, list))
        or hasattr(data, "__len__")
        and hasattr(data, "__getitem__")
        and not isinstance(data, (str, Tensor, np.ndarray))
    ):
        shape.append(len(data))
        if not len(data):
            break
        data = _first_of(data)
    if isinstance(data, str) and shape:  # a text is a sequence of texts, without end
        raise ValueError("too many dimensions 'str'")
    if isinstance(data, (Tensor, np.ndarray)) and data.ndim:
        if not shape:
            return tuple(data.shape)
        if isinstance(data, np.ndarray):
            warn_once(
                "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a single "
                "numpy.ndarray with numpy.array() before converting to a tensor."
            )
            return (*shape, *data.shape)
        if data.numel() == 1:  # counts as a number
            return tuple(shape)
        raise ValueError("only one element tensors can be converted to Python scalars")
    return tuple(shape)


def _check_ragged(data, shape: tuple, dim: int = 0) -> None:
    if dim == len(shape):
        return
    if not hasattr(data, "__len__") or isinstance(data, Tensor) and not data.ndim:
        raise TypeError("not a sequence")
    if len(data) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
    if isinstance(data, np.ndarray):
        for at, size in enumerate(data.shape[1:], dim + 1):
            if at < len(shape) and size != shape[at]:
                raise ValueError(f"expected sequence of length {shape[at]} at dim {at} (got {size})")
    elif dim + 1 < len(shape):
        for d in data:
            _check_ragged(d, shape, dim + 1)


def array_from(data, wanted: dtype | None) -> tuple[np.ndarray, dtype]:
    """An array of its own from nested data, and its dtype."""
    if wanted is not None:
        computable(wanted)
    if isinstance(data, np.ndarray):
        have = numpy_to_dtype(data.dtype)
        if data.dtype == np.bool_:  # whose bytes may be other than 0 and 1
            array = np.asarray(np.not_equal(np.asarray(data).view(np.uint8), 0, order="C"))
        else:
            array = np.array(data, dtype=have.numpy, order="C")
        return cast_array(array, have, wanted or have), wanted or have
    if isinstance(data, np.generic):
        have = numpy_to_dtype(data.dtype)
        return cast_array(np.array(data), have, wanted or have), wanted or have
    shape = _shape_of(data)
    if len(shape) > MOST_DIMS:
        raise ValueError(f"tensors have at most {MOST_DIMS} dimensions here, but the data is nested {len(shape)} deep")
    inferred = infer_dtype(data)
    target = wanted or inferred
    _check_ragged(data, shape)
    try:
        raw = np.array(_plain(data, len(shape)), dtype=_intermediate(inferred, target))
    except OverflowError:
        if target.category == 1 and target.itemsize < 8:
            raise RuntimeError(f"value cannot be converted to type {target.name} without overflow") from None
        raise ValueError("Overflow when unpacking long long") from None
    except ValueError:
        raise TypeError("'list' object cannot be interpreted as an integer") from None
    if inferred.is_complex and not target.is_complex and target is not dtypes.bool:
        raise TypeError("must be real number, not complex")
    _check_range(raw, inferred, target)
    return cast_array(raw.reshape(shape), _numpy_dtype(raw), target), target


def _check_range(raw, inferred: dtype, target: dtype) -> None:
    if target.category == 1 and inferred.category == 1 and raw.size:
        info = np.iinfo(target.numpy)
        if raw.min() < info.min and target.is_signed or raw.max() > info.max or raw.min() < -int(info.max) - 1:
            raise RuntimeError(f"value cannot be converted to type {target.name} without overflow")
    if target.category == 1 and inferred.category == 2 and raw.size:
        info = np.iinfo(target.numpy)
        if not (raw.min() >= info.min and raw.max() <= float(info.max)):  # so is NaN
            raise RuntimeError(f"value cannot be converted to type {target.name} without overflow")


def _intermediate(inferred: dtype, target: dtype):
    if inferred.is_complex:
        return np.complex128
    if inferred.is_floating_point:
        return np.float64
    return np.uint64 if target is dtypes.uint64 else np.int64 if inferred.category == 1 else np.bool_


def _numpy_dtype(array) -> dtype:
    return numpy_to_dtype(array.dtype)


def _plain(data, depth: int):
    if depth and not isinstance(data, (np.ndarray, Tensor)):
        return [_plain(d, depth - 1) for d in data]
    if data.__class__ in (int, float, bool):
        return data
    if symbolic(data):
        return concrete(data)
    return (
        data.tolist()
        if isinstance(data, Tensor) and depth
        else data.item()
        if isinstance(data, (Tensor, np.generic))
        else data
    )


def _place_otherwise(array, d: dtype, device) -> Tensor:
    device = devices.indexed(device if device is not None else ambient.default_device)
    if device is devices.meta:
        return wrap_meta(array.shape, d)
    return dispatch(lift_fresh, (wrap(array, d),)).to(device)


@bypassing("lift_fresh.default", otherwise=_place_otherwise)
def _place(array, d: dtype, device) -> Tensor:
    if ambient.mode & modes.DISPATCH:
        return _place_otherwise(array, d, device)
    device = devices.indexed(device if device is not None else ambient.default_device)
    if device is devices.meta:
        return wrap_meta(array.shape, d)
    computable(d, device)
    library(device)
    return wrap(to_device(array, device) if device.keys else array, d, device)


@front("torch.tensor", past=(ANY,))
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False, names=None) -> Tensor:
    """A new leaf tensor that copies `data`."""
    if dtype is not None:
        dtype = convert_option("tensor", "dtype", dtype, empty_op)
    if isinstance(data, Tensor):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            stacklevel=3,
        )
        result = data.detach().to(dtype=dtype or data.dtype, device=device or data.device, copy=True)
    elif hasattr(data, "__dlpack__") and not isinstance(data, (np.ndarray, StorageBase, TypedStorage)):
        found = public("torch", "from_dlpack")(data)
        result = found.to(dtype=dtype or found.dtype, device=device or found.device, copy=True)
    elif hasattr(data, "__array_interface__") and not isinstance(data, (np.ndarray, np.generic)):
        result = _place(*array_from(np.asarray(data), dtype), device)
    elif ambient.mode & (modes.CAPTURE | modes.DISPATCH) and has_undecided(data):
        result = from_numbers(data, dtype or dtype_of_numbers(data), device)
    elif isinstance(data, (StorageBase, TypedStorage)):
        result = _on(data, dtype)
    else:
        result = _place(*array_from(data, dtype), device)
    return finish(result, requires_grad, names=names)


def _on(storage: StorageBase | TypedStorage, wanted: dtype | None) -> Tensor:
    """A tensor on the memory of a storage; bytes of no dtype are read as integers."""
    own = storage.dtype if isinstance(storage, TypedStorage) else wanted or dtypes.int64
    if wanted not in (None, own):
        raise RuntimeError(
            f"Expected a Storage of type {wanted.scalar_name} or an UntypedStorage, but got {own.scalar_name}"  # type: ignore[union-attr]
        )
    return on_storage(storage.untyped(), own)


def has_undecided(data) -> bool:
    """Whether there is a number among nested data that only the program's own data decides."""
    if isinstance(data, (list, tuple)):
        return any(has_undecided(d) for d in data)
    return symbolic(data) and data.node.hint is None


def dtype_of_numbers(data) -> dtype:
    """The dtype of nested numbers of which some are symbolic: that of the widest kind among them."""
    kinds = _kinds(data)
    if kinds & {float, complex}:
        return ambient.default_dtype if complex not in kinds else ambient.default_dtype.to_complex()
    return dtypes.bool if kinds == {bool} else dtypes.int64


def _kinds(data) -> set[type]:
    if isinstance(data, (list, tuple)):
        return {kind for d in data for kind in _kinds(d)}
    return {data.node.pytype if symbolic(data) else type(data)}


def from_numbers(data, wanted: dtype, device) -> Tensor:
    """A tensor of nested numbers of which some are symbolic: each is one call, so that traces see it."""
    if isinstance(data, (list, tuple)):
        return public("torch", "stack")([from_numbers(d, wanted, device) for d in data])
    return public("torch", "scalar_tensor")(data, dtype=wanted, device=device)


@front("torch.as_tensor")
def as_tensor(data, dtype=None, device=None) -> Tensor:
    """A tensor that shares memory with `data` where it can."""
    if isinstance(data, Tensor):
        return data.to(device=device or data.device, dtype=dtype or data.dtype)
    if isinstance(data, np.ndarray):
        return from_numpy(data).to(device=device, dtype=dtype)
    return tensor(data, dtype=dtype, device=device)


@front("torch.asarray")
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False) -> Tensor:
    """A tensor from anything array-like: tensor, array, DLPack, buffer, number or sequence."""
    shared = hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule"
    if isinstance(obj, Tensor):
        result = obj if obj.dtype is (dtype or obj.dtype) else obj.to(dtype)
    elif isinstance(obj, np.ndarray):
        result = as_tensor(obj, dtype=dtype, device=device)
    elif shared:
        result = public("torch", "from_dlpack")(obj).to(dtype=dtype, device=device)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        result = frombuffer(obj, dtype=dtype or ambient.default_dtype)
    else:
        result = tensor(obj, dtype=dtype, device=device)
    shares = result is obj or isinstance(obj, np.ndarray) and np.shares_memory(result._array, obj)
    if copy is True and (shares or shared or isinstance(obj, (bytearray, memoryview))):
        result = result.clone()
    elif copy is False and not shares and not isinstance(obj, (bytearray, memoryview)) and not shared:
        if isinstance(obj, np.generic):
            raise RuntimeError(
                "can't alias NumPy scalars. Either remove copy=False or make an array of it, as numpy.asarray does."
            )
        raise ValueError(
            "can't alias arbitrary sequence into a tensor."
            if not isinstance(obj, (Tensor, np.ndarray))
            else "can't alias tensor with a different dtype or device."
        )
    if requires_grad:
        set_requires_grad(result, True)
    return result


@front("Tensor.new_tensor")
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False) -> Tensor:
    """A new leaf tensor from `data`, by default of this tensor's dtype and device."""
    return tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


@front("Tensor.new")
def new(self, *args, device=None, size=None) -> Tensor:
    """The old constructor with this tensor's dtype."""
    if len(args) == 1 and isinstance(args[0], TypedStorage) and args[0].dtype is not self.dtype:
        raise RuntimeError(f"Expected a storage of {self.dtype}, but got one of {args[0].dtype}")
    if device is not None:
        if len(args) == 1 and isinstance(args[0], Tensor):
            raise RuntimeError(
                "Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  "
                "Use torch.as_tensor(...) instead."
            )
        _check_legacy_device(self.device.type, device)
    if self._keys & SPARSE:
        return _new_sparse(self, args if size is None else (size,), device)
    return legacy(self.dtype, args if size is None else tuple(size), device or self.device)


def _check_legacy_device(expected: str, device) -> None:
    """The old constructors take a device for its number: which kind it is, their class says."""
    kind = devices.device(device).type
    if kind != expected:
        raise RuntimeError(f"legacy constructor expects device type: {expected} but device type: {kind} was passed")


def _new_sparse(t: Tensor, args: tuple, device) -> Tensor:
    """`new` of a sparse tensor: of a size, or of indices and values and perhaps a size."""
    if len(args) == 1 and isinstance(args[0], Tensor):
        raise TypeError(
            "new() received an invalid combination of arguments - got (Tensor), but expected a size, or indices, values "
            "and size"
        )
    make = public("torch", "sparse_coo_tensor")
    options = {"dtype": t.dtype, "device": device or t.device}
    if args and isinstance(args[0], Tensor):
        return make(*args, **options)
    if len(args) == 1 and isinstance(args[0], (TypedStorage, UntypedStorage, list)):
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({type(args[0]).__name__}), but expected a size, or "
            "indices, values and size"
        )
    whole = tuple(args[0]) if len(args) == 1 and not isinstance(args[0], int) else args
    return make(whole or (0,), **options)


@front("torch.from_numpy")
def from_numpy(ndarray) -> Tensor:
    """A tensor on the memory of a NumPy array."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if ndarray.__class__ is np.ndarray and ndarray.flags.carray and (d := by_numpy.get(ndarray.dtype)) is not None:
        return _on_array(ndarray.view(), d)  # nothing to refuse
    d = numpy_to_dtype(ndarray.dtype)
    if ndarray.dtype != d.numpy:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not supported."
        )
    if any(s < 0 for s in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
            "(You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if any(s % d.itemsize for s in ndarray.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )
    if not ndarray.flags.writeable:
        import warnings

        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to this tensor will "
            "result in undefined behavior. You may want to copy the array to protect its data or make it writable before converting it to a tensor. "
            "This type of warning will be suppressed for the rest of this program.",
            stacklevel=3,
        )
    return _on_array(ndarray.view() if type(ndarray) is np.ndarray else np.asarray(ndarray), d)


def _on_array(array, d) -> Tensor:
    result = wrap(array, d)
    storage_of(result).may_resize = False
    return lifted(on_foreign(result))


@front("torch.frombuffer")
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor:
    """A 1-d tensor on the memory of an object with the buffer protocol."""
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    size = view.nbytes
    if view.readonly:
        warn_once(
            "The given buffer is not writable. Tensors know nothing of that: to write to this one is an error. Copy the buffer first "
            "(frombuffer(bytearray(buffer))) to have memory of its own."
        )
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1"
        )
    if count < 0 and (size - offset) % dtype.itemsize:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({dtype.itemsize})"
        )
    if count > 0 and offset + count * dtype.itemsize > size:
        raise ValueError(
            f"requested buffer length ({count} * {dtype.itemsize} bytes) after offset ({offset} bytes) must not be greater than actual buffer length ({size} bytes)"
        )
    result = lifted(on_foreign(wrap(np.frombuffer(buffer, dtype.numpy, count, offset), dtype)))
    if requires_grad:
        set_requires_grad(result, True)
    return result


@front("torch.from_file")
def from_file(
    filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False
) -> Tensor:
    """A 1-d tensor mapped from a file; with `shared=True`, writes go to the file."""
    d = dtype or ambient.default_dtype
    return lifted(on_foreign(on_storage(UntypedStorage.from_file(filename, bool(shared), size * d.itemsize), d)))


def _array_wrap(self, array, context=None, return_scalar: bool = False) -> Tensor:
    """What a ufunc of NumPy makes of a tensor: a tensor; of truth values, one of bytes."""
    return from_numpy(np.asarray(array).astype(np.uint8) if array.dtype == np.bool_ else np.asarray(array))


extend(Tensor, __name__, __array_wrap__=_array_wrap)


# ---- constructors
def construct(cls, *args, **kwargs) -> Tensor:
    """`Tensor(2, 3)`, `Tensor([1, 2])`, `Tensor(other)`, and the same for subclasses.

    Another tensor, of any dtype, is aliased: the result is a view of it and gradients flow through.
    """
    device = kwargs.pop("device", None)
    kwargs.pop("requires_grad", None)
    if len(args) == 1 and isinstance(args[0], Tensor):
        return _another_of(args[0], cls, device)
    if device is not None:
        _check_legacy_device("cpu", device)
    result = legacy(ambient.default_dtype, args, device)
    return result if cls is Tensor else core_tensor.subclass_of(cls, result)


def _another_of(other: Tensor, cls: type[Tensor] = Tensor, device=None) -> Tensor:
    """`Tensor(other)`: a view of a tensor, of whatever dtype that is, through which gradients flow."""
    if device is not None:
        raise RuntimeError(
            "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  "
            "Use torch.tensor(...) or torch.as_tensor(...) instead."
        )
    view = dispatch(alias_op, (other,))
    if type(view) is cls:
        return view
    result = core_tensor.subclass_of(cls, view)
    result._autograd, result._view_info = view._autograd, view._view_info
    return result


def legacy(d: dtype, args: tuple, device=None) -> Tensor:
    """The old constructors: sizes or data."""
    if not args:
        return _place(np.empty(0, d.numpy), d, device)
    first = args[0]
    if len(args) == 1 and isinstance(first, Tensor):
        if first.dtype is not d:
            raise TypeError(f"expected {d.scalar_name} (got {first.dtype.scalar_name})")
        return _another_of(first)
    if len(args) == 1 and isinstance(first, (UntypedStorage, TypedStorage)):
        storage = first._storage if isinstance(first, UntypedStorage) else first._untyped_storage._storage
        return lifted(on_storage(storage, d))
    if len(args) == 1 and isinstance(first, str):
        raise TypeError("new(): invalid data type 'str'")
    if len(args) == 1 and isinstance(first, float):
        raise TypeError("new(): data must be a sequence (got float)")
    if (
        len(args) == 1
        and not isinstance(first, (int, Size))
        and (hasattr(first, "__len__") or hasattr(first, "__iter__"))
    ):
        return _place(*array_from(first if hasattr(first, "__len__") else list(first), d), device)
    if len(args) > 1 and isinstance(first, (tuple, list)):
        got = ", ".join(type(a).__name__ for a in args)
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({got}), but expected sizes, or one size, or data"
        )
    return _place(np.zeros(sizes_from("new", args), d.numpy), d, device)


above.construct = construct


class _TypedTensorMeta(type):
    """`isinstance(x, FloatTensor)` asks for the dtype."""

    def __new__(cls, name: str, bases: tuple, body: dict):
        if bases:
            raise TypeError(f"type 'torch.{bases[0].__name__}' is not an acceptable base type")
        return super().__new__(cls, name, bases, body)

    def __instancecheck__(cls, x) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype and not x.is_cuda


def _typed_constructor(d: dtype):
    def __new__(cls, *args, device=None):
        if device is not None:
            _check_legacy_device("cpu", device)
        return legacy(d, args, device)

    return _TypedTensorMeta(
        f"{d.scalar_name}Tensor",
        (),
        {
            "__new__": __new__,
            "dtype": d,
            "is_cuda": False,
            "__module__": "torch",
            "is_sparse": False,
            "is_xpu": False,
            "layout": devices.strided,
            "__doc__": f"The old way to make tensors of {d.name}.\n\n>>> torch.{d.scalar_name}Tensor([1, 0]).dtype\n{d!r}",
        },
    )


TYPED = {
    f"{d.scalar_name}Tensor": _typed_constructor(d)
    for d in dtypes.ALL
    if d.numpy is not None and not d.name.startswith(("float8", "uint16", "uint32", "uint64"))
}
typed_classes = frozenset(TYPED.values())
