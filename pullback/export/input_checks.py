"""The leaves of a call against the sizes that a program was exported for.

In: the leaves, and the fakes that were traced. Out: nothing, or an error that names the argument by its place in the call.
"""

from __future__ import annotations

from typing import Any

from ..core import tree
from ..core.tensor import Tensor


def check_inputs(leaves: list, traced: list, spec: Any) -> None:
    """Raise for a tensor of another rank, dtype or fixed size than was traced."""
    places = input_places(spec)
    for leaf, value, place in zip(leaves, traced, places, strict=True):
        if not isinstance(value, Tensor):
            continue
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected input at {place} to be a tensor, but got {type(leaf)}")
        if leaf.ndim != value.ndim:
            raise RuntimeError(f"Unexpected number of dimensions in input at {place}.shape (expected {value.ndim}, got {leaf.ndim})")  # fmt: skip
        for d, (size, wanted) in enumerate(zip(leaf.shape, value._array.shape, strict=True)):
            if wanted.__class__ is int and size != wanted:
                raise RuntimeError(f"Expected input at {place}.shape[{d}] to be equal to {wanted}, but got {size}")
        if leaf.dtype is not value.dtype:
            raise RuntimeError(f"Expected input at {place} to have dtype {value.dtype}, but got {leaf.dtype}")


def input_places(spec: Any) -> list[str]:
    """How a call names each leaf of its arguments: `*args[0]`, `**kwargs['x'][1]`."""
    found = []
    for path in tree.optree.treespec_paths(spec):
        side, *rest = path
        found.append(("*args" if side == 0 else "**kwargs") + "".join(f"[{part!r}]" for part in rest))
    return found
