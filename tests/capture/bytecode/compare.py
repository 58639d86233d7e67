"""What a program does, in a form that can be compared: its result, or what it raised with contexts and causes."""

from collections.abc import Callable
from typing import Any


def described(value: Any) -> Any:
    """Exceptions compare by identity: their type, arguments, context and cause say what they are."""
    if isinstance(value, BaseException):
        return (
            type(value).__name__,
            described(value.args),
            described(value.__context__),
            described(value.__cause__),
            value.__suppress_context__,
        )
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(described, value)]
    return value


def outcome(run: Callable[[], Any]) -> Any:
    try:
        return "returned", described(run())
    except Exception as error:
        return "raised", described(error)
