"""Parts of an index that are one integer for each example of a `vmap`: `x[k]`, where `k` has no dimensions inside.

Outside of a `vmap` such a tensor selects, as the int that it holds. Here it holds an int for each example, so what it selects is
picked. In: the normal parts of an index. Out: the tensors that pick, one for each dimension, and the index of what they leave:
it is applied after them, so that the dimensions of the result are in the order of a selection.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.tensor import TRANSFORMED, Tensor


def is_example_number(item) -> bool:
    return (
        isinstance(item, Tensor) and bool(item._keys & TRANSFORMED) and not item.ndim and item._array.dtype.kind == "i"
    )


def taken_apart(rank: int, parts: list, dims_of: Callable) -> tuple[tuple, tuple | None]:
    """(index tensors per dimension of a tensor with `rank` dimensions, the index of the rest; None where it takes all of it)."""
    numbers: list = []
    named = sum(map(dims_of, parts))
    for item in parts:
        if is_example_number(item):
            numbers.append(item if item.dtype.itemsize > 2 else item.int())  # a number may be of any integer dtype
        else:
            numbers += [None] * (rank - named if item is Ellipsis else dims_of(item))
    rest = tuple(p for p in parts if not is_example_number(p))
    return tuple(numbers), None if all(
        p is Ellipsis or p.__class__ is slice and p == slice(None) for p in rest
    ) else rest
