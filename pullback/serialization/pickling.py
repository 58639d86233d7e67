"""Pickles that PyTorch reads, and the trusting reader of its pickles.

The writer gives our classes PyTorch's names and hands storages to a table, which the file format writes beside the
pickle. The reader understands these names; it runs whatever the pickle says, so it is for trusted files only
(`weights_only` has the safe one).
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import IO, Any

from ..autograd.methods import Hooks
from ..core import device as devices
from ..core import dtype as dtypes
from ..core.random import Generator
from ..core.storage import UntypedStorage
from ..core.tensor import Tensor, wrap
from ..ops.make.storages import TypedStorage
from .names import name_of, resolve
from .storage_types import storage_type
from .storages import location_tag, untyped
from .tensors import layout_named, reduce_tensor

_PLAIN = frozenset((int, str, float, bool, type(None), dict, list, tuple, bytes, complex, set, frozenset, OrderedDict))


class StorageTable:
    """The storages of one file, in the order in which they were met, each with a number and a dtype."""

    def __init__(self) -> None:
        self.keys: dict[Any, str] = {}
        self.dtypes: dict[Any, dtypes.dtype] = {}

    def entry(self, storage: Any) -> tuple:
        """What stands in the pickle for a storage: ("storage", type, key, location, number of elements)."""
        dtype = storage.dtype if isinstance(storage, TypedStorage) else dtypes.uint8
        kind: Any = storage_type(dtype) if isinstance(storage, TypedStorage) else UntypedStorage
        face = untyped(storage)
        memory = face._storage
        if self.dtypes.setdefault(memory, dtype) is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        key = self.keys.setdefault(memory, str(len(self.keys)))
        return ("storage", kind, key, location_tag(face), memory.length // dtype.itemsize)


def reduced(value: Any) -> Any:
    """How a value is pickled where its own way would not be PyTorch's; NotImplemented otherwise."""
    kind = type(value)
    if kind in _PLAIN:
        return NotImplemented
    if isinstance(value, Tensor):
        return reduce_tensor(value) if _pickles_as_tensor(kind) else NotImplemented
    if kind is devices.device:
        return (devices.device, (value.type,) if value.index is None else (value.type, value.index))
    if kind is devices.layout:
        return (layout_named, (repr(value),))
    if kind is Generator:
        return (Generator, (value.device,), (value.initial_seed(), None, wrap(value.state_bytes())))
    if kind is Hooks:  # the hook tables of modules are plain ordered dicts there
        return (OrderedDict, (), None, None, iter(value.items()))
    named = name_of(value)
    return named[1] if named is not None else NotImplemented


def _pickles_as_tensor(kind: type) -> bool:
    """Whether a tensor class left pickling to us: it may state its own way."""
    return kind.__reduce_ex__ is Tensor.__reduce_ex__ and kind.__reduce__ is object.__reduce__


def pickler_class(pickle_module: Any) -> type:
    """A pickler of that module which writes PyTorch's names and takes storages aside."""
    base = pickle._Pickler if pickle_module is pickle else pickle_module.Pickler  # type: ignore[attr-defined]

    class Pickler(base):  # type: ignore[misc, valid-type]
        persistent: Callable[[Any], Any]

        def persistent_id(self, value: Any) -> Any:
            return self.persistent(value) if isinstance(value, (UntypedStorage, TypedStorage)) else None

        def reducer_override(self, value: Any) -> Any:
            return reduced(value)

        def save_global(self, value: Any, name: str | None = None) -> None:
            named = name_of(value)
            if named is None:
                super().save_global(value, name)
                return
            if self.proto >= 4:
                self.save(named[0])
                self.save(named[1])
                self.write(pickle.STACK_GLOBAL)
            else:
                self.write(b"c" + "\n".join(named).encode() + b"\n")
            self.memoize(value)

    return Pickler


def dump(value: Any, file: IO[bytes], persistent: Callable[[Any], Any], pickle_module: Any, protocol: int) -> None:
    """Pickle a value; `persistent(storage)` says what stands for a storage."""
    result = pickler_class(pickle_module)(file, protocol)
    result.persistent = persistent
    result.dump(value)


def unpickler_class(pickle_module: Any) -> type:
    """An unpickler of that module which understands PyTorch's names."""

    class Unpickler(pickle_module.Unpickler):  # type: ignore[misc, name-defined]
        persistent: Callable[[Any], Any]

        def persistent_load(self, entry: Any) -> Any:
            return self.persistent(entry)

        def find_class(self, module: str, name: str) -> Any:
            if module == "torch" or module.startswith("torch."):
                return resolve(module, name)
            return super().find_class(module, name)

    return Unpickler


def load_trusted(file: IO[bytes], persistent: Callable[[Any], Any], pickle_module: Any, **options: Any) -> Any:
    """Unpickle a value from a file that is trusted to run code."""
    result = unpickler_class(pickle_module)(file, **options)
    result.persistent = persistent
    return result.load()
