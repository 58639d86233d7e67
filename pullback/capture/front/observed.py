"""Errors of a program that is to be captured as one graph, and raises.

In: the exception that left the program while it was captured. Out: one that is of its class and `Unsupported` too, with its
arguments, attributes and lines: who catches the program's error catches it, and so does who catches what cannot be captured.
"""

from __future__ import annotations

import functools
import linecache

from ..bytecode.tracebacks import lines_of
from ..trace.program import UncapturedHigherOrderOpError, Unsupported


@functools.lru_cache(maxsize=256)
def _both(cls: type[BaseException], kind: type[BaseException]) -> type[BaseException] | None:
    """A class that is both; None where objects cannot be."""

    def __str__(self) -> str:
        return self.words

    bases = (kind,) if issubclass(kind, cls) else (kind, cls)
    try:
        return type(cls.__name__, bases, {"__str__": __str__, "__module__": cls.__module__, "__qualname__": cls.__qualname__})  # fmt: skip
    except TypeError:
        return None


def observed(error: Exception) -> Exception:
    """See the module's docstring; the error itself where there is no such object."""
    if isinstance(error, Unsupported):
        return error
    cls = type(error)
    within = getattr(error, "in_operator", None)  # a function that an operator takes has raised it
    both = _both(cls, Unsupported if within is None else UncapturedHigherOrderOpError)
    if both is None:
        return error
    try:
        result = cls.__new__(both, *error.args)
        result.args = error.args
        result.__dict__.update(getattr(error, "__dict__", {}))
        for name in (
            "name",
            "obj",
            "value",
            "code",
            "path",
            "errno",
            "strerror",
            "filename",
        ):  # what built-in classes keep beside
            if hasattr(error, name) and name not in result.__dict__:
                setattr(result, name, getattr(error, name))
    except (TypeError, AttributeError):
        return error
    result.observed = True
    result.words = (
        f"{error}\n\nObserved exception: the program raises {cls.__name__} while it is captured, and nothing in it catches that"
        + (f"\nHigher Order Operator: {within}" if within is not None else "")
        + _line(error)
    )  # `str(error)` first: some classes make it of more than their arguments
    result.__traceback__, result.__cause__ = error.__traceback__, error.__cause__
    result.__context__, result.__suppress_context__ = error.__context__, error.__suppress_context__
    return result  # type: ignore[return-value]


def _line(error: Exception) -> str:
    """The user's line that raised."""
    lines = lines_of(error.__traceback__)
    if not lines:
        return ""
    file, number, name = lines[-1]
    return f'\n  File "{file}", line {number}, in {name}\n    {linecache.getline(file, number).strip()}'
