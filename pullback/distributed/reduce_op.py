"""How values of several ranks become one: `ReduceOp`, and arrays made ready for a library that reduces.

In: an array and a `ReduceOp`. Out: a `Reduction`: the array that is sent, the operation by its name in MPI, and what turns
the reduced array into the result. Types that MPI cannot add (float16, bfloat16) are added as float32 and rounded once;
`AVG` divides a sum, `PREMUL_SUM` multiplies what is summed.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class ReduceOp:
    """An operation of `all_reduce`, `reduce` and `reduce_scatter`. Equal by name (and factor)."""

    SUM: ReduceOp
    AVG: ReduceOp
    PRODUCT: ReduceOp
    MIN: ReduceOp
    MAX: ReduceOp
    BAND: ReduceOp
    BOR: ReduceOp
    BXOR: ReduceOp
    PREMUL_SUM: ReduceOp
    RedOpType: type

    __slots__ = ("name", "factor")

    def __init__(self, op: ReduceOp | str = "SUM", factor: Any = None):
        self.name = op.name if isinstance(op, ReduceOp) else str(op).upper()
        self.factor = factor if factor is not None else getattr(op, "factor", None)

    @property
    def op(self) -> ReduceOp:
        return self

    @property
    def value(self) -> int:
        return NAMES.index(self.name)

    def __int__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReduceOp) and self.name == other.name and self.factor is other.factor

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __reduce__(self) -> tuple:
        return ReduceOp, (self.name, self.factor)


NAMES = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")
for _name in NAMES:
    setattr(ReduceOp, _name, ReduceOp(_name))
ReduceOp.RedOpType = ReduceOp

_OF_NUMBERS = {"SUM": "SUM", "AVG": "SUM", "PREMUL_SUM": "SUM", "PRODUCT": "PROD", "MIN": "MIN", "MAX": "MAX"}
_OF_BITS = {"BAND": "BAND", "BOR": "BOR", "BXOR": "BXOR"}
_OF_BOOLS = {
    "SUM": "LOR", "MAX": "LOR", "BOR": "LOR", "PRODUCT": "LAND", "MIN": "LAND", "BAND": "LAND", "BXOR": "LXOR",
}  # fmt: skip


def make_premul_sum(factor: Any) -> ReduceOp:
    """A sum of values that are multiplied by a number, or a tensor of one element, before."""
    return ReduceOp("PREMUL_SUM", factor)


def as_reduce_op(op: Any) -> ReduceOp:
    """A `ReduceOp` from one, or from its name in any case ("sum", "avg")."""
    if isinstance(op, ReduceOp):
        return op
    if isinstance(op, str) and op.upper() in NAMES:
        return ReduceOp(op)
    if isinstance(op, str) and op.lower() == "mean":
        return ReduceOp.AVG
    raise ValueError(f"op: expected a ReduceOp or one of {', '.join(n.lower() for n in NAMES)}, got {op!r}")


def mpi_name(op: ReduceOp) -> str:
    """The operation's name in MPI, for numbers."""
    return _OF_NUMBERS[op.name]


class Reduction:
    """An array on its way through a reduction over `size` ranks."""

    def __init__(self, array: Any, op: ReduceOp, size: int):
        self.op, self.size, self.given = op, size, array
        self.kind = _kind(op, array.dtype)
        self.send = _carrier(array, op)

    @property
    def own(self) -> bool:
        """Whether what is sent is the array's own memory."""
        return self.send is self.given or self.given.dtype.kind == "b"

    def finish(self, reduced: Any) -> Any:
        """The result, of the array's own dtype, from what the library reduced."""
        if self.op.name == "AVG":
            if reduced.dtype.kind in "iu":
                reduced //= self.size
            else:
                reduced /= self.size
        kind = self.given.dtype
        if reduced.dtype == kind:
            return reduced
        return reduced.view(kind) if kind.kind == "b" else reduced.astype(kind)


def _kind(op: ReduceOp, dtype: np.dtype) -> str:
    """The operation's name in MPI, for elements of a dtype."""
    if dtype.kind == "b":
        table = _OF_BOOLS
    else:
        table = _OF_NUMBERS | (_OF_BITS if dtype.kind in "iu" else {})
    if op.name not in table or (dtype.kind == "c" and op.name in ("MIN", "MAX")):
        raise ValueError(f"Cannot use ReduceOp.{op.name} with tensors of dtype {dtype}")
    if op.name == "PREMUL_SUM" and op.factor is None:
        raise ValueError(
            "ReduceOp.PREMUL_SUM needs a factor: make it with torch.distributed._make_nccl_premul_sum(factor)"
        )
    return table[op.name]


def _carrier(array: Any, op: ReduceOp) -> Any:
    """The array in a type that can be reduced."""
    if array.dtype.kind == "b":
        return array.view(np.uint8)
    if array.dtype.kind not in "iufc" or array.dtype.itemsize == 2 and array.dtype.kind == "f":
        if array.dtype.itemsize < 2:
            raise ValueError(f"Cannot reduce tensors of dtype {array.dtype} over ranks")
        array = array.astype(np.float32)
    if op.name == "PREMUL_SUM":
        factor = op.factor.item() if hasattr(op.factor, "item") else op.factor
        return (array * factor).astype(array.dtype, copy=False)
    return array
