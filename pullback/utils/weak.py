"""Weak references and dictionaries that compare by identity, for tensors among others: their `==` is element by element."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any

from ..core.tensor import Tensor

WeakRef = weakref.ref


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another of the same object, and to no other."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback=None):
        super().__init__(key, callback)
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        if mine is not None and isinstance(other, WeakIdRef):
            return mine is other()
        return self is other


class WeakIdKeyDictionary(MutableMapping):
    """A mapping from objects, by identity; an entry goes with its key."""

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef):
        self.data: dict[Any, Any] = {}
        self.ref_type = ref_type
        if dict is not None:
            self.update(dict)

    def _ref(self, key: Any) -> Any:
        gone = self.data

        def forget(reference, data=gone):
            data.pop(reference, None)

        return self.ref_type(key, forget)

    def update(self, other: Any = (), /, **kwargs: Any) -> None:  # type: ignore[override]
        """Take over what another mapping, or pairs, hold: all of it, or nothing where that raises."""
        pairs = other.items() if hasattr(other, "items") else dict(other).items()
        self.data.update([(self._ref(key), value) for key, value in (*pairs, *kwargs.items())])

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self._ref(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # what cannot be referred to weakly is no key
            return False

    def __iter__(self) -> Iterator:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def items(self):  # type: ignore[override]
        return [(key, self[key]) for key in self]

    def values(self):  # type: ignore[override]
        return [self[key] for key in self]

    def keyrefs(self) -> list:
        """The references themselves: some may be gone by the time they are used."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __deepcopy__(self, memo) -> WeakIdKeyDictionary:
        from copy import deepcopy

        fresh = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            fresh[key] = deepcopy(value, memo)
        return fresh

    def __ior__(self, other):
        self.update(other)
        return self

    def __or__(self, other):
        fresh = self.copy()
        fresh.update(other)
        return fresh

    def __ror__(self, other):
        fresh = type(self)(other, self.ref_type)
        fresh.update(self)
        return fresh

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MutableMapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: Tensor):
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected a tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakRef", "WeakTensorKeyDictionary"]
