"""What `inspect.signature` and `help` say of public functions, before their first call too.

In: a public function and the operators it calls. Out: a signature read from their schemas when somebody asks for it, so
that importing hundreds of functions costs nothing, and a docstring that names the schemas (`ops.texts` says more).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core.layers import above

if TYPE_CHECKING:
    from ..system.operator import Operator

__all__ = ["describe"]

_new = object.__new__
_FACTS = ("_parameters", "_return_annotation")


class SchemaSignature(inspect.Signature):
    """A signature that reads the schemas when its parameters are first asked for."""

    __slots__ = ("about",)

    def __getattr__(self, name: str):
        if name not in _FACTS:
            raise AttributeError(name)
        known = above.call_signature(*self.about)
        self._parameters, self._return_annotation = known._parameters, known._return_annotation  # type: ignore[attr-defined]
        return getattr(self, name)


def describe(function: Callable, operators: tuple[Operator, ...], inplace: bool = False):
    """Say on a function what it does: `inplace` for the form that writes."""
    function.__signature__ = result = _new(SchemaSignature)  # type: ignore[attr-defined]
    result.about = (function, operators, inplace)
    function.__doc__ = "; ".join([f"`{op.text}`" for op in operators])
    return function
