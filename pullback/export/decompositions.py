"""Which operators `run_decompositions` takes apart, and into what.

In: operators and functions. Out: a table. What always holds: operators that are compositions here (`linear`,
`dropout`, ...) are taken apart in any case, below autograd; the table says what else is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class CustomDecompTable(dict):
    """A decomposition table: operator -> function of the operator's arguments."""

    def __setitem__(self, key: Any, value: Callable) -> None:
        if not callable(value):
            raise TypeError(f"a decomposition must be a function, got {type(value).__name__} for {key}")
        super().__setitem__(key, value)

    def copy(self) -> CustomDecompTable:
        return CustomDecompTable(self)

    def materialize(self) -> dict[Any, Callable]:
        """The table as a plain dict."""
        return dict(self)


def default_decompositions() -> CustomDecompTable:
    """The table that `run_decompositions` starts from: empty, since tracing below autograd takes compositions apart."""
    return CustomDecompTable()
