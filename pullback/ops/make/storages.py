"""Storages seen through a dtype: `TypedStorage`, and the old classes by name, `FloatStorage` and its kin.

In: a number of elements, a sequence of them, or an untyped storage to wrap. Out: objects that read and write the same
memory as every tensor on it. A class of `LEGACY` is a constructor: what it makes is a `TypedStorage`, and `isinstance`
asks for dtype and device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core import device as devices
from ...core import dtype as dtypes
from ...core.arrays import assign, to_host
from ...core.dtype import dtype
from ...core.layers import extend
from ...core.modes import ambient
from ...core.storage import Storage, UntypedStorage, window
from ...core.tensor import META, Tensor, wrap
from ..system.inplace import cast_array


def on_storage(storage: Storage, d: dtype) -> Tensor:
    """A flat tensor over a whole storage."""
    n = storage.length // d.itemsize
    result = wrap(window(storage, d, (n,), (1,), 0), d, storage.device, META if storage.buffer is None else 0)
    result._memory = storage
    return result


class TypedStorage:
    """A storage seen through one dtype.

    >>> torch.tensor([1.0, 2.0]).storage().tolist()
    [1.0, 2.0]
    """

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal: bool = False):
        if wrap_storage is not None:
            _check_wrapped(args, wrap_storage, dtype, device)
        self.dtype: dtypes.dtype = dtype or ambient.default_dtype
        self._untyped_storage: UntypedStorage = (
            _filled(args, self.dtype, device) if wrap_storage is None else wrap_storage
        )

    # ---- facts
    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_sparse(self) -> bool:
        return False

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def untyped(self) -> UntypedStorage:
        return self._untyped_storage

    def _tensor(self) -> Tensor:
        return on_storage(self._untyped_storage._storage, self.dtype)

    def _elements(self):
        """The elements as an array, or an error where there are none."""
        self._untyped_storage._bytes()
        return self._tensor()._array

    def size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def get_device(self) -> int:
        return self._untyped_storage.device.index if self.is_cuda else -1

    def is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def is_pinned(self, device=None) -> bool:
        return False

    def resizable(self) -> bool:
        return self._untyped_storage.resizable()

    def pickle_storage_type(self) -> str:
        return f"{self.dtype.scalar_name}Storage"

    def _weak_ref(self):
        return self._untyped_storage._weak_ref()

    # ---- contents
    def resize_(self, size: int) -> TypedStorage:
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def fill_(self, value) -> TypedStorage:
        self[:] = value
        return self

    def tolist(self) -> list:
        return to_host(self._elements()).tolist()

    def clone(self) -> TypedStorage:
        return self._wrapping(self._untyped_storage.clone())

    __copy__ = clone

    def copy_(self, source, non_blocking=None) -> TypedStorage:
        if self._untyped_storage.buffer is not None:
            source.untyped().check_copied()
            array = source._elements() if isinstance(source, TypedStorage) else source._bytes()
            assign(self._elements(), cast_array(array, dtypes.by_numpy[array.dtype], self.dtype))
        return self

    def share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        return self._elements()[index].item()

    def __setitem__(self, index, value) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if isinstance(value, (TypedStorage, UntypedStorage)):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        if self._untyped_storage.buffer is not None:
            self._elements()[index] = value

    def __iter__(self) -> Iterator:
        return iter(self.tolist())

    # ---- other storages
    def _wrapping(self, storage: UntypedStorage) -> TypedStorage:
        return TypedStorage(wrap_storage=storage, dtype=self.dtype)

    def _to(self, d: dtype) -> TypedStorage:
        if d is self.dtype:
            return self
        if self._untyped_storage.buffer is None:
            return TypedStorage(self.size(), dtype=d, device=self.device)
        array = cast_array(to_host(self._elements()), self.dtype, d)
        return TypedStorage(wrap_storage=_from_array(np.array(array)), dtype=d)

    def type(self, dtype=None, non_blocking: bool = False):
        """The name of the class of this storage, or the storage as one of another dtype or class."""
        if dtype is None:
            module = "torch.cuda" if self.is_cuda else "torch"
            return f"{module}.{self.pickle_storage_type()}"
        if isinstance(dtype, str):
            dtype = LEGACY[dtype.rpartition(".")[2]]
        return self._to(getattr(dtype, "dtype", dtype))

    def to(self, *, device, non_blocking: bool = False) -> TypedStorage:
        where = devices.indexed(device)
        return self.cuda(where) if where.type == "cuda" else self.cpu()

    def cpu(self) -> TypedStorage:
        return self._wrapping(self._untyped_storage.cpu())

    def cuda(self, device=None, non_blocking: bool = False) -> TypedStorage:
        return self._wrapping(self._untyped_storage.cuda(device, non_blocking))

    @classmethod
    def from_buffer(cls, buffer, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype=None):
        """A copy of the elements in an object with a buffer; only single bytes need no `byte_order` ("native", "little", "big")."""
        d = getattr(cls, "dtype", None) or dtype
        if d is None:
            raise TypeError("from_buffer() needs a dtype, or one of the old classes such as FloatStorage")
        if byte_order is None and d.itemsize > 1:
            raise TypeError("function missing required argument 'byte_order' (pos 2)")
        mark = {None: "=", "native": "=", "little": "<", "big": ">"}.get(byte_order)
        if mark is None:
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        kind = np.dtype(np.uint8) if d is dtypes.bool else d.numpy
        array = np.frombuffer(buffer, kind if kind.kind == "V" else kind.newbyteorder(mark), count, offset)
        native = array != 0 if d is dtypes.bool else array.astype(kind)
        return TypedStorage(wrap_storage=_from_array(np.array(native)), dtype=d)

    @classmethod
    def _from_buffer(cls, buffer, offset: int = 0, count: int = -1) -> TypedStorage:
        """The same, of bytes in the machine's own order; part of an element is refused."""
        data, width = bytes(memoryview(buffer).cast("B"))[offset:], cls.dtype.itemsize
        if count < 0 and len(data) % width:
            raise ValueError(
                f"_from_buffer: {len(data)} bytes are no whole number of elements of {cls.dtype} ({width} bytes)"
            )
        return cls.from_buffer(data, "native", count)

    @classmethod
    def from_file(cls, filename, shared: bool = False, size: int = 0, *, dtype=None) -> TypedStorage:
        """The elements of a file, mapped; with `shared`, writes go to the file."""
        d = getattr(cls, "dtype", None) or dtype or ambient.default_dtype
        storage = UntypedStorage.from_file(filename, shared, size * d.itemsize)
        return TypedStorage(wrap_storage=storage, dtype=d)

    def __eq__(self, other) -> bool:
        return isinstance(other, TypedStorage) and other._untyped_storage == self._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __deepcopy__(self, memo) -> TypedStorage:
        return self._wrapping(self._untyped_storage.__deepcopy__(memo))

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def __reduce__(self):
        return (typed_storage, (self._untyped_storage, self.dtype))

    def __repr__(self) -> str:
        no_data = self._untyped_storage.buffer is None
        body = "...\n" if no_data else "".join(f" {v}\n" for v in self.tolist()[:20])
        return f"{body}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"


_CASTS = {
    **{name: name for name in ("double", "float", "half", "long", "int", "short", "bool", "bfloat16")},
    "char": "int8", "byte": "uint8", "complex_double": "complex128", "complex_float": "complex64",
}  # fmt: skip
for _name, _target in _CASTS.items():
    _dtype = next(d for d in dtypes.ALL if _target in (d.name, d.alias))
    setattr(TypedStorage, _name, lambda self, d=_dtype: self._to(d))


def _bytes_as(d: dtype):
    """A cast of a storage without a dtype: each byte becomes a number."""
    return lambda self: TypedStorage(wrap_storage=self, dtype=dtypes.uint8)._to(d)


extend(
    UntypedStorage,
    __name__,
    **{name: _bytes_as(next(d for d in dtypes.ALL if target in (d.name, d.alias))) for name, target in _CASTS.items()},
)


for _name in (
    "size",
    "nbytes",
    "element_size",
    "data_ptr",
    "is_shared",
    "share_memory_",
    "resize_",
    "pickle_storage_type",
):
    setattr(TypedStorage, f"_{_name}", getattr(TypedStorage, _name))  # as PyTorch calls them without its warning
TypedStorage._setitem, TypedStorage._deepcopy = TypedStorage.__setitem__, TypedStorage.__deepcopy__  # type: ignore[attr-defined]


def typed_storage(storage: UntypedStorage, d: dtype) -> TypedStorage:
    """A typed storage from what pickle keeps of it."""
    return TypedStorage(wrap_storage=storage, dtype=d)


# ---- what storages are made of
def _check_wrapped(args: tuple, storage: Any, d: Any, device: Any) -> None:
    """Refuse what cannot be said of a storage that exists."""
    if args:
        raise RuntimeError(
            f"No positional arguments should be given when using 'wrap_storage', but got {len(args)} of them"
        )
    if d is None:
        raise RuntimeError("Argument 'dtype' must be specified beside 'wrap_storage'")
    if not isinstance(d, dtype):
        raise TypeError(f"Argument 'dtype' must be torch.dtype, not {type(d)}")
    if device is not None:
        raise RuntimeError("Argument 'device' should not be specified when 'wrap_storage' is given")
    if not isinstance(storage, UntypedStorage):
        raise TypeError(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(storage)}")


def _filled(args: tuple, d: dtype, device: Any) -> UntypedStorage:
    """Memory for so many elements, or with the elements of a sequence."""
    if len(args) > 1:
        raise RuntimeError(f"Too many positional arguments given: a size or a sequence is expected, got {len(args)}")
    where = devices.indexed("cpu" if device is None else device)
    if where.type not in ("cpu", "cuda", "meta"):
        raise RuntimeError(f"Storage device not recognized: {where}")
    data = args[0] if args else 0
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(data, (Tensor, UntypedStorage)) or not isinstance(
        data, (int, np.integer, Sequence, np.ndarray, TypedStorage)
    ):
        raise TypeError(f"Argument type not recognized: {type(data)}")
    if isinstance(data, (int, np.integer)):
        return UntypedStorage(int(data) * d.itemsize, device=where)
    if where.type == "meta":
        return UntypedStorage(len(data) * d.itemsize, device=where)
    storage = _from_array(np.array(list(data)).astype(d.numpy) if len(data) else np.empty(0, d.numpy))
    return storage.cuda(where) if where.type == "cuda" else storage


def _from_array(array: np.ndarray) -> UntypedStorage:
    """The memory of a fresh array."""
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return UntypedStorage.of(Storage(flat, flat.size, devices.cpu))


class _LegacyType(type):
    """`isinstance(s, FloatStorage)` asks for dtype and device."""

    dtype: dtype

    def __instancecheck__(cls, instance) -> bool:
        if not isinstance(instance, TypedStorage) or instance.dtype is not cls.dtype:
            return False
        return instance.is_cuda == (cls.__module__ == "torch.cuda")


class LegacyStorage(TypedStorage):
    """What the classes by dtype have in common: calling one gives a `TypedStorage`."""

    def __new__(cls, *args, wrap_storage=None, _internal: bool = False, **kwargs):
        if cls is LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        for name in ("device", "dtype"):
            if name in kwargs:
                raise RuntimeError(f"{cls.__name__}.__new__: '{name}' cannot be specified")
        if kwargs:
            raise TypeError(f"{cls.__name__}.__new__: got an unexpected keyword argument '{next(iter(kwargs))}'")
        if cls.__module__ == "torch.cuda" and wrap_storage is None:
            return TypedStorage(*args, dtype=cls.dtype, device="cuda")
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype)


def _legacy(d: dtype) -> type:
    name = f"{d.scalar_name}Storage"
    says = f"The old way to make memory of {d.name}.\n\n>>> torch.{name}([1, 0]).dtype\n{d!r}"
    return _LegacyType(name, (LegacyStorage,), {"dtype": d, "_dtype": d, "__module__": "torch", "__doc__": says})


def _of_host(name: str) -> classmethod:
    """A way to make storages that devices do not have."""

    def refuse(cls, *args, **kwargs):
        raise RuntimeError(f"{name}: Not available for CUDA storage")

    return classmethod(refuse)


def _legacy_cuda(d: dtype) -> type:
    body: dict[str, Any] = {"dtype": d, "_dtype": d, "__module__": "torch.cuda"}
    body["__doc__"] = f"The old way to make memory of {d.name} on a CUDA device."
    refused = {name: _of_host(name) for name in ("from_buffer", "_new_with_weak_ptr", "_new_shared_filename")}
    return _LegacyType(f"{d.scalar_name}Storage", (LegacyStorage,), body | refused)


_OLD = [
    d for d in dtypes.ALL if d.numpy is not None and not d.name.startswith(("float8", "uint16", "uint32", "uint64"))
]
LEGACY: dict[str, Any] = {f"{d.scalar_name}Storage": _legacy(d) for d in _OLD}
LEGACY_CUDA: dict[str, Any] = {f"{d.scalar_name}Storage": _legacy_cuda(d) for d in _OLD}


def class_names_by_dtype() -> dict[dtype, str]:
    """The name of the class of storages by the dtype that it has."""
    return {d: f"{d.scalar_name}Storage" for d in _OLD}


classes: frozenset = frozenset([TypedStorage, UntypedStorage, *LEGACY.values(), *LEGACY_CUDA.values()])
