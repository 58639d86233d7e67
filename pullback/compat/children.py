"""Processes that begin anew (`spawn`, `forkserver`) and not as copies: `torch` means pullback in them too.

What such a process is told first is a pickled dict. One entry more, read before any module of the program is imported, makes the alias.
"""

from __future__ import annotations

import os
from typing import Any

_KEY = "torch is pullback"


class _Alias:
    """A value that makes the alias where it is unpickled. The package need not be on the path there."""

    def __reduce__(self) -> tuple:
        folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        return exec, (f"import sys; sys.path.append({folder!r}); import pullback.compat.torch as t; t.install()",)


def follow() -> None:
    """Let processes that are started from now on have the alias."""
    import multiprocessing.spawn as spawn

    told = spawn.get_preparation_data
    if getattr(told, "makes_alias", False):
        return

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {_KEY: _Alias(), **told(name)}

    get_preparation_data.makes_alias = True  # type: ignore[attr-defined]
    spawn.get_preparation_data = get_preparation_data
