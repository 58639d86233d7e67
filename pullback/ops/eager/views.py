"""The plain case of views: another array on the same memory, made by one NumPy call."""

from __future__ import annotations

from ...core.modes import ambient
from ...core.node import UNTRACKED_VIEW
from ...core.objects import make_view
from ...core.size import Size
from ...core.tensor import PLAIN, Tensor
from ..system.operator import Operator
from .text import Call, attempt, block, is_plain

__all__ = ["NAMES", "SIZES", "is_plain_tensor", "may_have_history", "plain_view", "view_lines"]

SIZES = frozenset((tuple, Size))


def view_lines(call: Call, when: str, expression: str, offset: str, viewed: str) -> list[str]:
    """Make a view of a plain tensor, if `when` holds and `expression` (of the view's array `a`) does not raise.

    The view is recorded as the operator `viewed` called with the arguments `viewed`.
    """
    changed = "g is not UNTRACKED_VIEW or (i := input.view_info).version != input.version[0] or i.creation"
    result = [
        f"t = make_view(input, made, {offset}, viewed, ({viewed},), mode)",
        *block(
            f"if mode and (g := input.autograd) is not None and ({changed}):",
            f"viewed.record(t, {viewed})",
        ),
        "return t",
    ]
    fits = block(f"if mode < 2 and {when}:", *attempt(f"made = {expression}", REFUSALS, *result))
    return block(f"if {is_plain(['input'])}:", "mode = ambient.mode", "a = input.array", *fits)


REFUSALS = "(ValueError, TypeError, IndexError)"


def new_axis(a, dim: int):
    """An array with one more dimension of size 1, its stride as PyTorch sets it; refuses if it is not row-major."""
    shape = a.shape
    n = len(shape)
    d = dim if dim >= 0 else dim + n + 1
    if not 0 <= d <= n or not a.flags.c_contiguous:
        raise IndexError(dim)
    return a.reshape((*shape[:d], 1, *shape[d:]))  # of a row-major array, the strides are what they must be


NAMES = {"SIZES": SIZES, "new_axis": new_axis, "make_view": make_view, "UNTRACKED_VIEW": UNTRACKED_VIEW}


# ---- the same, for functions written by hand
def is_plain_tensor(t) -> bool:
    """Whether nothing listens to what is done with a tensor."""
    return t.__class__ in PLAIN and not t.keys and ambient.mode < 2


def may_have_history(t: Tensor) -> bool:
    """Whether recording may find anything: not where a view of an untracked tensor is as it was when it was made.

    A view made with recording off may be one of a tensor that is tracked.
    """
    return t.autograd is not UNTRACKED_VIEW or t.view_info.version != t.version[0] or t.view_info.creation is not None


def plain_view(t: Tensor, array, offset: int, op: Operator, args: tuple) -> Tensor:
    """A view of a plain tensor, already made as an array."""
    mode = ambient.mode
    result = make_view(t, array, offset, op, args, mode)
    if mode and t.autograd is not None and may_have_history(t):
        op.record(result, *args)
    return result
