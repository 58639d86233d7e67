"""Constructors of tensor subclasses that say that exported programs may call them.

An exported program is traced through the operators that a constructor calls, so nothing has to be written down of the call itself. What
always holds: a class whose tensors cannot be taken apart and made again is refused while a program is exported.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..capture.trace.subclasses import is_traceable_wrapper_subclass_type
from .compiler import is_exporting


def mark_subclass_constructor_exportable(constructor: Callable) -> Callable:
    """A decorator for `__init__` of a tensor subclass."""
    if constructor.__name__ != "__init__":
        raise RuntimeError(
            "torch._export.wrappers.mark_constructor_exportable_experimental can only be applied on subclass tensor.__init__, "
            f"but it is on {constructor.__name__}"
        )

    @wraps(constructor)
    def construct(self: Any, *args: Any, **kwargs: Any) -> None:
        constructor(self, *args, **kwargs)
        if is_exporting() and not is_traceable_wrapper_subclass_type(type(self)):
            raise RuntimeError(
                f"Can't intercept {type(self).__qualname__} in export because this object is not a traceable tensor subclass: it has "
                "no __tensor_flatten__ and __tensor_unflatten__"
            )

    return construct
