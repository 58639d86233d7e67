"""`OrderedSet`: a set that keeps its items in the order in which they came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Reversible
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

T = TypeVar("T")
__all__ = ["OrderedSet"]


class OrderedSet(MutableSet[T], Reversible[T]):
    """The keys of a dict, with the methods of a set; results of operators are in the order of the left operand."""

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[T] | None = None):
        self._dict: dict[T, None] = {} if iterable is None else dict.fromkeys(iterable)

    @classmethod
    def _from_iterable(cls, it: Iterable[T]) -> OrderedSet[T]:
        return cls(it)

    @staticmethod
    def _from_dict(keys: dict[T, None]) -> OrderedSet[T]:
        result: OrderedSet[T] = OrderedSet()
        result._dict = keys
        return result

    # ---- as a collection
    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def copy(self) -> OrderedSet[T]:
        return OrderedSet._from_dict(self._dict.copy())

    # ---- one item
    def add(self, elem: T) -> None:
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        self._dict.pop(elem, None)

    def remove(self, elem: T) -> None:
        if elem not in self._dict:
            raise KeyError(elem)
        del self._dict[elem]

    def pop(self) -> T:
        """Take the last item away."""
        if not self:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def clear(self) -> None:
        self._dict.clear()

    # ---- many
    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        result = self.copy()
        result.update(*others)
        return result

    def update(self, *others: Iterable[T]) -> None:
        for other in others:
            for elem in other:
                self._dict[elem] = None

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        kept = [set(other) for other in others]
        return OrderedSet(elem for elem in self._dict if all(elem in other for other in kept))

    def intersection_update(self, *others: Iterable[T]) -> None:
        self._dict = self.intersection(*others)._dict

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        result = self.copy()
        result.difference_update(*others)
        return result

    def difference_update(self, *others: Iterable[T]) -> None:
        for other in others:
            for elem in list(other):
                self.discard(elem)

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        return self ^ OrderedSet(other)

    def symmetric_difference_update(self, other: Iterable[T]) -> None:
        self._dict = self.symmetric_difference(other)._dict

    def issubset(self, other: Iterable[T]) -> bool:
        return self <= _as_set(other)

    def issuperset(self, other: Iterable[T]) -> bool:
        return self >= _as_set(other)

    # ---- operators: with sets only, as those of sets
    def __or__(self, other: AbstractSet[T]) -> OrderedSet[T]:  # type: ignore[override]
        return self.union(other) if isinstance(other, AbstractSet) else NotImplemented

    def __and__(self, other: AbstractSet[Any]) -> OrderedSet[T]:
        return self.intersection(other) if isinstance(other, AbstractSet) else NotImplemented

    def __sub__(self, other: AbstractSet[Any]) -> OrderedSet[T]:
        return self.difference(other) if isinstance(other, AbstractSet) else NotImplemented

    def __xor__(self, other: AbstractSet[T]) -> OrderedSet[T]:  # type: ignore[override]
        if not isinstance(other, AbstractSet):
            return NotImplemented
        return OrderedSet([e for e in self if e not in other] + [e for e in other if e not in self])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def __getstate__(self) -> list[T]:
        return list(self._dict)

    def __setstate__(self, state: list[T]) -> None:
        self._dict = dict.fromkeys(state)


def _as_set(values: Iterable) -> AbstractSet:
    return values if isinstance(values, AbstractSet) else OrderedSet(values)
