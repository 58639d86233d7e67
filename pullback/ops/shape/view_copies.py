"""The `_copy` form of every view: `view_copy`, `t_copy`, ... give a fresh tensor where the view shares memory.

In: a view's arguments. Out: a copy of the view (of each of them, where there are several). Made from the views by a
table: the schema is the view's without its alias marks.
"""

from __future__ import annotations

import re

from ...core.device import contiguous_format
from ...core.tensor import Tensor
from ..family.base import PLAIN_FAMILY
from ..make.conversion import detach_op
from ..system.calls import export_operator
from ..system.dispatch import dispatch
from ..system.operator import Operator
from ..system.overloads import overloaded
from .complex_views import view_as_complex, view_as_real, view_dtype
from .views import (
    alias,
    as_strided,
    diagonal,
    expand,
    permute,
    reshape_alias,
    select,
    slice_,
    split_even,
    split_with_sizes,
    squeeze_all,
    squeeze_dim,
    squeeze_dims,
    t,
    transpose,
    unbind,
    unfold,
    unsqueeze,
    view_,
)


def _row_by_row(view: Tensor) -> Tensor:
    return view.clone(memory_format=contiguous_format)


def _copying(view: Operator):
    def body(*args):
        result = dispatch(view, args)
        return tuple(map(_row_by_row, result)) if isinstance(result, (tuple, list)) else _row_by_row(result)

    return body


def _of_what_is_meant(view: Operator):
    """The copy by a view that reads memory as it lies, or as another dtype: memory must hold what the tensor means."""
    copy = _copying(view)
    return lambda self, *args: copy(self.resolve_conj().resolve_neg(), *args)


def _reshaped(self, size):
    """`view_copy` also takes what no view can give: a copy may change the order of memory."""
    result = self.reshape(size)
    return result.clone() if result._counter is self._counter else result


def make_copy(view: Operator, function: bool = True, body=None) -> Operator:
    """The operator `NAME_copy` of a view; `body` where it is not just a clone of the view."""
    text = re.sub(r"\(a[^)]*\)", "", view.text)
    head, paren, rest = text.partition("(")
    name, dot, overload = head.partition(".")
    return export_operator(
        Operator(
            f"{name}_copy{dot}{overload}{paren}{rest}",
            PLAIN_FAMILY,
            body=body or _copying(view),
            function=function,
            method=False,
            strict=True,
            names_memory=view.declared.names_memory,
        )
    )


for _view in (
    alias, diagonal, expand, permute, select, slice_, split_even, split_with_sizes, t,
    transpose, unbind, unfold, unsqueeze,
):  # fmt: skip
    make_copy(_view)
for _view in (as_strided, reshape_alias, view_as_complex, view_as_real):
    make_copy(_view, body=_of_what_is_meant(_view))
make_copy(detach_op, body=_row_by_row)  # a copy, and like every copy of a view it has a gradient

overloaded(
    "view_copy",
    make_copy(view_, False, _reshaped),
    make_copy(view_dtype, False, _of_what_is_meant(view_dtype)),
    homes=("torch",),
)
overloaded(
    "squeeze_copy",
    make_copy(squeeze_all, False),
    make_copy(squeeze_dim, False),
    make_copy(squeeze_dims, False),
    homes=("torch",),
)
