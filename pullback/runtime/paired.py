"""Products of bfloat16 matrices by pairs of numbers, for generated code, where the processor has instructions for it (`core/_halves.c`).

`address()` is that of the function that generated code calls, 0 where there is none; `described(...)` the numbers that it takes.
"""

from __future__ import annotations

import functools

from ..core.extension import extension


@functools.cache
def address() -> int:
    halves = extension("_halves")
    return 0 if halves is None else halves.address()


def described(
    sizes: tuple[int, int, int], a: tuple[int, int], b: tuple[int, int], row: int, wide: bool, batch: list
) -> tuple[int, ...]:
    """(rows, columns, inner), steps of both operands down and across, of the result's rows; `batch`: rows of a size and three steps."""
    return (*sizes, *a, *b, row, int(wide), len(batch), *[x for one in batch for x in one])
