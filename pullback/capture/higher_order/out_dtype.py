"""`out_dtype(op, dtype, *args)`: an operator whose sums are kept in a wider dtype than its arguments have.

It is one node in graphs. Computed, the floating or integer arguments are cast first, so that nothing overflows on the way.
"""

from __future__ import annotations

from ...core import tree
from ...core.dtype import dtype as dtype_type
from ...core.tensor import Tensor
from ...ops.system.operator import Operator
from .base import HigherOrderOperator


class OutDtype(HigherOrderOperator):
    """See the module's docstring."""

    def __init__(self) -> None:
        super().__init__("out_dtype")

    def __call__(self, op, output_dtype, *args):
        if not isinstance(op, Operator):
            raise ValueError("out_dtype's first argument must be an OpOverload")
        if op.schema.is_mutable:
            raise ValueError("out_dtype's first argument needs to be a functional operator")
        if len(op.schema.returns) != 1 or op.schema.returns[0].type != "Tensor":
            raise ValueError(f"out_dtype's can only apply to ops that return a single tensor, not {op}")
        if not isinstance(output_dtype, dtype_type):
            raise TypeError(f"out_dtype's second argument must be a dtype, got {output_dtype!r}")
        return super().__call__(op, output_dtype, *args)

    def plain(self, op, output_dtype, *args):
        wide = tree.tree_map_only(Tensor, lambda t: t.to(output_dtype) if _is_number(t) else t, args)
        return op(*wide).to(output_dtype)


def _is_number(t: Tensor) -> bool:
    return t.dtype.is_floating_point or not t.dtype.is_complex


out_dtype = OutDtype()
