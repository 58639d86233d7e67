"""The table that programs are entered into."""

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    PROGRAMS[function.__name__] = function
    return function
