"""What a program says to a TorchScript compiler: marks on functions, types of values.

In: functions and values. Out: the same functions and values. A mark is written on the function
(`_torchscript_modifier`), where tools look for it; nothing here reads it.
"""

from __future__ import annotations

import types
import typing
import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")

__all__ = ["Attribute", "Final", "annotate", "export", "ignore", "interface", "isinstance_of", "unused"]


class Attribute(NamedTuple):
    """A value and the type that TorchScript is to give it."""

    value: Any
    type: Any


def _unwrap_optional(x: Any) -> Any:
    """A value that is not None."""
    assert x is not None, "Unwrapping null optional"
    return x


def annotate(the_type: Any, the_value: T) -> T:
    """The value; its type is a word to the compiler."""
    return the_value


def _marked(function: T, mark: str) -> T:
    target = function.fget if isinstance(function, property) else function
    target._torchscript_modifier = mark  # type: ignore[union-attr]
    return function


def export(fn: T) -> T:
    """Mark a method as an entry point of its module."""
    return _marked(fn, "export")


def copy_to_script_wrapper(fn: T) -> T:
    """Mark a method of Python that a compiled module keeps."""
    return _marked(fn, "copy to script wrapper")


def unused(fn: T) -> T:
    """Mark a function that a compiler is to replace by an error."""
    return _marked(fn, "unused")


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Mark a function that a compiler is to leave to Python; used bare or with arguments."""
    if callable(drop):
        return _marked(drop, "ignore")
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    if kwargs.pop("drop_on_export", None):
        warnings.warn(
            "ignore(drop_on_export=True) has been deprecated. TorchScript will now drop the function call on compilation. "
            "Use torch.jit.unused now.",
            FutureWarning,
            stacklevel=2,
        )
        drop = True

    def decorate(fn: Callable) -> Callable:
        return _marked(fn, "unused" if drop else "ignore")

    return decorate


def interface(obj: T) -> T:
    """Mark a class as an interface of modules or of classes."""
    if not isinstance(obj, type):
        raise RuntimeError("interface must be applied to a class")
    obj._is_interface = True  # type: ignore[attr-defined]
    return obj


def isinstance_of(obj: Any, target_type: Any) -> bool:
    """`isinstance` that looks into containers: `isinstance(x, list[int])` is true of lists of ints alone."""
    if isinstance(target_type, tuple):
        return any(isinstance_of(obj, t) for t in target_type)
    origin, inner = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        return isinstance(obj, type(None) if target_type is None else target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance_of(obj, t) for t in inner)
    if not isinstance(obj, origin):
        return False
    if origin is dict:
        return all(isinstance_of(k, inner[0]) and isinstance_of(v, inner[1]) for k, v in obj.items())
    if origin is tuple and not (len(inner) == 2 and inner[1] is Ellipsis):
        return len(obj) == len(inner) and all(isinstance_of(o, t) for o, t in zip(obj, inner, strict=True))
    return all(isinstance_of(o, inner[0]) for o in obj)


class _BroadcastingList:
    """What TorchScript writes for "one value or a list of n": in Python `BroadcastingList2[int]` is a list type."""

    def __getitem__(self, kind: Any) -> Any:
        return list[kind]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = _BroadcastingList()


def overload(function: T) -> T:
    """Mark a signature for TorchScript's compiler; in Python the last definition is the function."""
    return function


class TracerWarning(Warning):
    """What TorchScript's tracer warns of: it never runs here."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing to ignore."""
