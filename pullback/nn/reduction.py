"""How a loss is reduced, from the two flags that said it before `reduction` did."""

from __future__ import annotations

import warnings


def from_legacy(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """ "mean", "sum" or "none" from `size_average` and `reduce`, which count as True where they are not given."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.", stacklevel=3
        )
    return name


def number(reduction: str) -> int:
    """The number that operators know a reduction by."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
        reduction = "mean"
    numbers = {"none": 0, "mean": 1, "sum": 2}
    if reduction not in numbers:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return numbers[reduction]
