"""Storages: the untyped memory that tensors view.

A tensor that nobody has viewed needs no storage object; `storage_of(tensor)` makes it at first need and views share it.
A storage holds a flat byte array. Changing its memory (`resize_`, `set_`) rebuilds the arrays of every tensor on it,
so that all of them see the new memory, as in PyTorch.
"""

from __future__ import annotations

import gc
import sys
import weakref
from math import prod
from typing import Any

import numpy as np

from . import device as devices
from .arrays import assign, library, library_of, strided, to_device, to_host
from .errors import no_memory
from .geometry import Geometry, contiguous_strides
from .modes import process
from .symbolic import likely


class Storage:
    """A block of bytes on a device. `buffer` is a flat uint8 array, or None where there is no data (meta).

    Most storages exist only because a tensor was viewed, and nobody reads their bytes: `array`, the row-major array on all of
    the memory, is made flat when somebody does.
    """

    __slots__ = ("_buffer", "_array", "length", "device", "may_resize", "shared", "__weakref__", "__dict__")

    def __init__(self, buffer, length: int, device: devices.device, resizable: bool = True, array=None):
        self._buffer = buffer
        self._array = array
        self.length = length
        self.device = device
        self.may_resize = resizable
        self.shared = False

    @property
    def buffer(self):
        array = self._array
        if array is not None:
            self._buffer = array.reshape(-1).view(np.uint8)
            self._array = None
        return self._buffer

    @buffer.setter
    def buffer(self, buffer) -> None:
        self._buffer, self._array = buffer, None

    def tensors(self) -> list:
        """The tensors that live on this storage now."""
        from .tensor import Tensor

        return [t for t in gc.get_referrers(self) if isinstance(t, Tensor) and t._memory is self]

    def replace_buffer(self, buffer, length: int, only: Any = None) -> None:
        """Give every tensor on this storage the new memory: `only` one, where it is known that there is no other."""
        before = self.__dict__.pop("strides_before", ())
        known = {id(t): stride for ref, stride in before if (t := ref()) is not None}
        rebuilt = [
            (t, known.get(id(t)) or _strides_in_elements(t)) for t in ([only] if only is not None else self.tensors())
        ]
        if self.length and not length and buffer.__class__ is not np.ndarray:
            self.strides_before = [(weakref.ref(t), stride) for t, stride in rebuilt]
        self.buffer, self.length = buffer, length
        for t, stride in rebuilt:
            t._array = window(self, t.dtype, t._array.shape, stride, t._offset)


def _strides_in_elements(t) -> tuple:
    return tuple([s // t.dtype.itemsize for s in t._array.strides])


def storage_of(tensor) -> Storage:
    """The storage under a tensor, made at first need."""
    storage = tensor._memory
    if storage is None:
        array = tensor._array
        if isinstance(array, Geometry):
            storage = Storage(None, span_bytes(array.shape, array.stride, 0, array.itemsize), tensor.device)
        elif hasattr(array, "implementation"):  # of another layout
            raise NotImplementedError(f"Cannot access storage of {array.implementation}")
        else:
            resizable = array.base is None or tensor._offset == 0
            if array.flags.c_contiguous and (length := array.nbytes):
                storage = Storage(None, length, tensor.device, resizable, array)
            else:
                storage = Storage(*flat_bytes(array), tensor.device, resizable)
        tensor._memory = storage
    return storage


def flat_bytes(array) -> tuple[Any, int]:
    """The memory under a fresh array as flat bytes, and its length."""
    if array.size == 0:
        return library_of(array).empty(0, np.uint8), 0
    if array.flags.c_contiguous:
        return array.reshape(-1).view(np.uint8), array.nbytes
    if array.flags.f_contiguous:
        return array.T.reshape(-1).view(np.uint8), array.nbytes
    stride = array.strides
    length = span_bytes(array.shape, stride, 0, 1) + array.itemsize - 1
    order = sorted(range(array.ndim), key=lambda d: -stride[d])
    dense = array.transpose(order)
    if dense.flags.c_contiguous:
        return dense.reshape(-1).view(np.uint8), length
    as_strided = library_of(array).lib.stride_tricks.as_strided
    flat = as_strided(array, (1,) * max(array.ndim, 1), (array.itemsize,) * max(array.ndim, 1))
    byte = flat.reshape(-1)[:1].view(np.uint8)
    return as_strided(byte, (length,), (1,)), length


def span_bytes(shape, stride, offset: int, itemsize: int) -> int:
    """How many bytes a strided view needs, from the start of its storage."""
    if any(s == 0 if s.__class__ is int else likely(s == 0, otherwise=False) for s in shape):
        return 0
    return (offset + 1 + sum((s - 1) * st for s, st in zip(shape, stride, strict=True))) * itemsize


def check_addressable(shape: tuple, stride: tuple | None, itemsize: int) -> None:
    """Refuse sizes whose elements no 64 bits count."""
    if 0 in shape and any(prod(n or 1 for n in shape[d:]) * itemsize >= 2**63 for d in range(1, len(shape))):
        raise RuntimeError("Stride calculation overflowed")
    strides = contiguous_strides(shape) if stride is None else stride
    if span_bytes(shape, strides, 0, itemsize) >= 2**63:
        with_strides = "" if stride is None else f" and strides={list(stride)}"
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}{with_strides}")


def check_known(shape: tuple, itemsize: int) -> None:
    """The same of a row-major result, before anything as long is made; symbols are looked at when they are numbers."""
    total = itemsize
    for n in shape:
        if n.__class__ is not int or n < 0:
            break
        total *= n or 1
    else:
        if total < 2**63:
            return
    if all(n.__class__ is int for n in shape):
        check_addressable(shape, None, itemsize)


def window(storage: Storage, dtype, shape: tuple, stride: tuple, offset: int):
    """The array that reads `storage` as `shape` with `stride` (in elements) from `offset`."""
    if storage.buffer is None:
        return Geometry(shape, stride, dtype.numpy)
    size = dtype.itemsize
    if 0 in shape or storage.length == 0:
        return _hollow(library_of(storage.buffer), shape, stride, dtype)
    if storage.buffer.__class__ is not np.ndarray:
        return strided(storage.buffer, shape, dtype.numpy, offset * size, tuple([s * size for s in stride]))
    return np.ndarray(shape, dtype.numpy, storage.buffer, offset * size, tuple([s * size for s in stride]))


def _hollow(xp, shape: tuple, stride: tuple, dtype):
    """An array without elements, or over memory that was resized away.

    On the host it keeps its strides: memory that nobody touches costs nothing. On a device it shows one element.
    """
    if xp is np:
        memory = np.empty(span_bytes(shape, stride, 0, dtype.itemsize), np.uint8)
        return np.ndarray(shape, dtype.numpy, memory, 0, tuple([s * dtype.itemsize for s in stride]))
    empty = xp.empty(1, dtype.numpy)
    return (
        xp.lib.stride_tricks.as_strided(empty, shape, tuple(s * dtype.itemsize for s in stride))
        if 0 in shape
        else xp.broadcast_to(empty[0], shape)
    )


def address_of(array) -> int:
    """Where an array's first element is in memory."""
    on_device = not isinstance(array, np.ndarray) and hasattr(array, "__cuda_array_interface__")
    return array.data.ptr if on_device else array.__array_interface__["data"][0]


def check_bounds(storage: Storage, shape, stride, offset: int, itemsize: int) -> None:
    """Raise PyTorch's error where a view would read outside its storage."""
    if any(st < 0 for st in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    need = span_bytes(shape, stride, offset, itemsize)
    if need >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(stride)}")
    if need > storage.length:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(stride)}, storage offset {offset}, and itemsize {itemsize} "
            f"requiring a storage size of {need} are out of bounds for storage of size {storage.length}"
        )


class StorageBase(Storage):
    """A storage as users see it, and may extend it: the very object that tensors live on, so what is set on it stays.

    >>> isinstance(torch.ones(2).untyped_storage(), torch.StorageBase)
    True
    """

    __slots__ = ()

    def __new__(cls, *args, **kwargs):
        if cls is StorageBase:
            raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")
        return super().__new__(cls)

    def __init__(self, *args, device=None):
        nbytes = args[0] if args and isinstance(args[0], int) else 0
        data = None if not args or isinstance(args[0], int) else np.array(list(args[0]), np.uint8)
        where = devices.indexed(device or "cpu")
        if where.type == "meta":
            super().__init__(None, nbytes if data is None else data.size, where)
        else:
            buffer = library(where).empty(nbytes, np.uint8) if data is None else to_device(data, where)
            super().__init__(buffer, buffer.size, where)

    def _fix_weakref(self) -> None:
        """Nothing to mend: Python owns the object, whoever refers to it."""

    @property
    def _storage(self) -> Storage:
        return self

    @property
    def _cdata(self) -> int:
        return id(self)

    @property
    def filename(self) -> str | None:
        """The file that the memory is shared with, if it is one."""
        return self.__dict__.get("filename")

    def _bytes(self):
        """The memory itself, or an error where there is none."""
        if self.buffer is None:
            raise NotImplementedError("Not available for 'meta' device type")
        return self.buffer

    def check_copied(self) -> None:
        """Raise where there are no bytes to copy."""
        if self.buffer is None:
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def check_own_memory(self, what: str) -> None:
        """Raise for the storage of a wrapper subclass, whose tensors hold the memory that there is."""
        if self.__dict__.get("of_wrapper"):
            raise RuntimeError(f"Attempted to {what} on an invalid python storage.")

    def data_ptr(self) -> int:
        self.check_own_memory("access the data pointer")
        buffer = self.buffer
        return 0 if buffer is None or not self.length else address_of(buffer)

    def nbytes(self) -> int:
        return self.length

    size = __len__ = nbytes

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    def element_size(self) -> int:
        return 1

    def resizable(self) -> bool:
        return self.may_resize

    def resize_(self, nbytes: int) -> StorageBase:
        """Grow or shrink the memory; contents that fit are kept."""
        return self.resize_under(None, nbytes)

    def resize_under(self, only: Any, nbytes: int) -> StorageBase:
        """`resize_`, where `only` is the one tensor on it, or None: whoever is on it is looked for, among all objects that there are."""
        storage = self
        self.check_own_memory("call resize_()")
        if not storage.may_resize:
            raise RuntimeError("Trying to resize storage that is not resizable")
        if storage.buffer is None:
            storage.length = nbytes
            return self
        if nbytes >= 2**63:
            raise RuntimeError("Storage size calculation overflowed")
        try:
            fresh = library_of(storage.buffer).zeros(nbytes, np.uint8)
        except MemoryError as error:
            raise no_memory(error) from None
        keep = min(nbytes, storage.length)
        fresh[:keep] = storage.buffer[:keep]
        storage.replace_buffer(fresh, nbytes, only)
        return self

    def copy_(self, source: StorageBase, non_blocking: bool = False) -> StorageBase:
        self.check_own_memory("call copy_()")
        if self.buffer is not None:
            source.check_copied()
            assign(self.buffer, source._bytes())
        return self

    def clone(self) -> StorageBase:
        s = self
        return UntypedStorage.of(Storage(None if s.buffer is None else s.buffer.copy(), s.length, s.device))

    __copy__ = clone

    def byteswap(self, dtype) -> None:
        """Turn the order of bytes in each element, of the halves of a complex one."""
        size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        whole = self._bytes()[: self.nbytes() // size * size].reshape(-1, size)
        whole[...] = whole[:, ::-1].copy()

    def _swap_data_ptr_(self, other: StorageBase) -> None:
        """Exchange the memory of two storages: the tensors on each see what was the other's."""
        ours, theirs = self, other
        if ours.device is not theirs.device:
            raise RuntimeError(
                f"_swap_data_ptr_: storages must be on the same device, got {ours.device} and {theirs.device}"
            )
        if ours.length != theirs.length and ours.length and theirs.length:
            raise RuntimeError(
                f"_swap_data_ptr_: storages must have the same nbytes, got {ours.length} and {theirs.length}"
            )
        first = (ours.buffer, ours.length)
        ours.replace_buffer(theirs.buffer, theirs.length)
        theirs.replace_buffer(*first)

    def fill_(self, value: int) -> StorageBase:
        self.check_own_memory("call fill_()")
        if self.buffer is not None:
            self.buffer.fill(value)
        return self

    def tolist(self) -> list[int]:
        return self._bytes().tolist()

    def cpu(self) -> StorageBase:
        self.check_copied()
        if not self.device.keys:
            return self
        return UntypedStorage.of(Storage(to_host(self._bytes()), self.nbytes(), devices.cpu))

    def cuda(self, device=None, non_blocking: bool = False) -> StorageBase:
        """The same bytes on a CUDA device."""
        where = devices.indexed("cuda" if device is None else device)
        if where is self.device:
            return self
        self.check_copied()
        return UntypedStorage.of(Storage(to_device(self._bytes(), where), self.nbytes(), where))

    def untyped(self) -> StorageBase:
        return self

    def is_shared(self) -> bool:
        return self.shared

    def share_memory_(self) -> StorageBase:
        """Move the bytes to memory that child processes see too."""
        from .shared_memory import share

        if self.buffer is None:
            raise RuntimeError(f"share_memory_(): only available on CPU, not on {self.device}")
        share(self._storage)
        return self

    @classmethod
    def from_buffer(cls, buffer, dtype=None, byte_order: str | None = None, count: int = -1, offset: int = 0):
        """A copy of the bytes of an object with a buffer; of `count` elements of `dtype`, where they are given."""
        size = 1 if dtype is None else dtype.itemsize
        if byte_order is None and size > 1:
            raise TypeError("function missing required argument 'byte_order' (pos 2)")
        part = np.frombuffer(buffer, np.uint8, -1 if count < 0 else count * size, offset).copy()
        result = UntypedStorage.of(Storage(part, part.size, devices.cpu))
        if byte_order not in (None, "native", sys.byteorder) and dtype is not None:
            result.byteswap(dtype)
        return result

    @classmethod
    def from_file(cls, filename, shared: bool = False, nbytes: int = 0, *, size: int | None = None) -> StorageBase:
        """The bytes of a file, mapped; with `shared`, writes go to the file."""
        from .shared_memory import map_file

        return UntypedStorage.of(map_file(filename, shared, nbytes if size is None else size))

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def __getitem__(self, index):
        got = self._bytes()[index]
        return int(got) if got.ndim == 0 else UntypedStorage.of(Storage(got, got.size, self.device))

    def __setitem__(self, index, value) -> None:
        if self.buffer is not None:
            self.buffer[index] = value

    def __deepcopy__(self, memo) -> StorageBase:
        return memo.setdefault(id(self), self.clone())

    def __reduce__(self):
        s = self
        return (_untyped_storage, (None if s.buffer is None else s.buffer.tobytes(), s.length))

    def __repr__(self) -> str:
        body = "...\n" if self.buffer is None else "".join(f" {b}\n" for b in self.buffer[:20].tolist())
        return f"{body}[torch.storage.UntypedStorage(device={self.device}) of size {self.nbytes()}]"

    def _weak_ref(self) -> weakref.ref:
        return weakref.ref(self)


class UntypedStorage(StorageBase):
    """Bytes, as `torch.UntypedStorage`.

    >>> torch.ones(2).untyped_storage().nbytes()
    8
    """

    __slots__ = ()

    @classmethod
    def of(cls, storage: Storage) -> UntypedStorage:
        """A storage made public: the same object, which knows more from now on."""
        if not isinstance(storage, StorageBase):
            storage.__class__ = UntypedStorage
        return storage  # type: ignore[return-value]


def _untyped_storage(data: bytes | None, length: int) -> UntypedStorage:
    """A storage from what pickle keeps of it."""
    if data is None:
        return UntypedStorage.of(Storage(None, length, devices.meta))
    return UntypedStorage.of(Storage(np.frombuffer(bytearray(data), np.uint8), length, devices.cpu))


def unset(array):
    """New memory: where results must not depend on what was there before, it is filled with values that stand out."""
    if process.deterministic and process.fill_uninitialized_memory:
        array[...] = unset_value(array.dtype)
    return array


def unset_value(kind):
    """NaN, the largest integer, or True."""
    if kind.kind in "iu":
        return np.iinfo(kind).max
    return True if kind.kind == "b" else np.nan


def new_array(shape: tuple, dtype, stride: tuple | None = None, xp=np):
    """An uninitialised array, with given strides (in elements) where they are not row-major."""
    if stride is None or stride == contiguous_strides(shape):
        return xp.empty(shape, dtype.numpy)
    memory = xp.empty(span_bytes(shape, stride, 0, 1) if 0 not in shape else 1, dtype.numpy)
    strides = tuple([s * dtype.itemsize for s in stride])
    if xp is np:
        return np.ndarray(shape, dtype.numpy, memory, 0, strides)
    return strided(memory, shape, dtype.numpy, 0, strides)
