"""The plain case of views: another array on the same memory, made by one NumPy call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.modes import ambient
from ...core.node import UNTRACKED_VIEW
from ...core.objects import make_view
from ...core.size import Size
from ...core.tensor import PLAIN, Tensor
from .text import Call, PlainCase, attempt, block, is_plain

if TYPE_CHECKING:
    from ..system.operator import Operator

__all__ = ["SIZES", "ViewCase", "is_plain_tensor", "may_have_history", "plain_view"]

SIZES = frozenset((tuple, Size))
REFUSALS = "(ValueError, TypeError, IndexError)"


class ViewCase(PlainCase):
    """A view of a plain tensor is one NumPy call: if `when` holds and `expression` (of its array `a`) does not raise.

    The call is recorded as it was made, or as the operator `recorded_as` called with `arguments`.
    """

    __slots__ = ("when", "expression", "recorded_as", "arguments")

    def __init__(self, when: str, expression: str, recorded_as: Operator | None = None, arguments: str | None = None):
        self.when, self.expression = when, expression
        self.recorded_as, self.arguments = recorded_as, arguments

    def lines(self, call: Call) -> list[str]:
        arguments = self.arguments or call.given
        changed = "g is not UNTRACKED_VIEW or (i := input._view_info).version != input._counter[0] or i.creation"
        result = [
            f"t = make_view(input, array, input._offset, viewed, ({arguments},), mode)",
            *block(
                f"if mode and (g := input._autograd) is not None and ({changed}):",
                f"viewed.record(t, {arguments})",
            ),
            "return t",
        ]
        fits = block(f"if mode < 2 and {self.when}:", *attempt(f"array = {self.expression}", REFUSALS, *result))
        return block(f"if {is_plain(['input'])}:", "mode = ambient.mode", "a = input._array", *fits)

    def names(self, op: Operator) -> dict:
        return {
            "SIZES": SIZES, "new_axis": new_axis, "refuse": refuse, "make_view": make_view,
            "UNTRACKED_VIEW": UNTRACKED_VIEW, "viewed": self.recorded_as or op,
        }  # fmt: skip


def new_axis(a, dim: int):
    """An array with one more dimension of size 1, its stride as PyTorch sets it; refuses if it is not row-major."""
    shape = a.shape
    n = len(shape)
    d = dim if dim >= 0 else dim + n + 1
    if not 0 <= d <= n or 0 in shape or not a.flags.c_contiguous:
        raise IndexError(dim)
    result = a.reshape((*shape[:d], 1, *shape[d:]))  # of a row-major array, the strides are what they must be
    if 1 in shape and (result.strides[:d] != a.strides[:d] or result.strides[d + 1 :] != a.strides[d:]):
        raise IndexError(dim)  # NumPy does not keep odd strides of dimensions of size 1
    return result


def refuse():
    """Ends the plain case from inside its expression."""
    raise ValueError


# ---- the same, for functions written by hand
def is_plain_tensor(t) -> bool:
    """Whether nothing listens to what is done with a tensor."""
    return t.__class__ in PLAIN and not t._keys and ambient.mode < 2


def may_have_history(t: Tensor) -> bool:
    """Whether recording may find anything: not where a view of an untracked tensor is as it was when it was made.

    A view made with recording off may be one of a tensor that is tracked.
    """
    return (
        t._autograd is not UNTRACKED_VIEW or t._view_info.version != t._counter[0] or t._view_info.creation is not None
    )


def is_unheard(t: Tensor) -> bool:
    """Whether a write to a view concerns nobody but its memory: neither the view nor its base is known to recording."""
    return t._autograd is UNTRACKED_VIEW and t._view_info.base._autograd is None


def plain_view(t: Tensor, array, offset: int, op: Operator, args: tuple) -> Tensor:
    """A view of a plain tensor, already made as an array."""
    mode = ambient.mode
    result = make_view(t, array, offset, op, args, mode)
    if mode and t._autograd is not None and may_have_history(t):
        op.record(result, *args)
    return result
