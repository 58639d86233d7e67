"""The parts of an array that go to, or come from, each rank."""

from __future__ import annotations

from typing import Any


def parts_of(array: Any, sizes: list[int] | None, count: int, name: str) -> list:
    """The parts of an array's first dimension, of the given sizes or of one."""
    rows = array.shape[0] if array.ndim else 0
    if not sizes:
        if rows % count:
            raise ValueError(
                f"Tensor's dim 0 does not divide equally across group size: {name} has {rows} rows for {count} ranks"
            )
        sizes = [rows // count] * count
    if len(sizes) != count or sum(sizes) != rows:
        raise ValueError(
            f"Split sizes doesn't match total dim 0 size: {name}_split_sizes {list(sizes)} for {rows} rows and {count} ranks"
        )
    ends = [sum(sizes[: i + 1]) for i in range(count)]
    return [array[end - n : end] for end, n in zip(ends, sizes, strict=True)]
