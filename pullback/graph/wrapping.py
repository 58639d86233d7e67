"""Functions that a trace records as one call: `torch.fx.wrap("name")` at the top level of a module.

In: a function of a module, or its name. Out: nothing but the note, in `wrapped_names`, that traces go by.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

wrapped_names: dict[tuple[int, str], dict[str, Any]] = {}  # (id of a module's globals, name) -> the globals
wrapped_methods: list[tuple[type, str]] = []  # methods that a trace records as one call of a method


def wrap(fn_or_name: str | Callable) -> str | Callable:
    """At the top level of a module: record calls of this function as one node; works as a decorator too."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    wrapped_names[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name
