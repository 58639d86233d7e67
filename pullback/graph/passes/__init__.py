"""Passes: functions from graphs to graphs.

In: graphs or graph modules. Out: changed or new ones. Each module here holds one pass; they are imported when named.
"""

from __future__ import annotations

import importlib

_PASSES = frozenset((
    "cse", "dead_code", "fake_tensor_prop", "fuse", "graph_drawer", "matcher", "operator_support", "ordering", "partitioner",
    "pass_manager", "replace_pattern", "shape_prop", "split_module",
))  # fmt: skip


def __getattr__(name: str):
    if name in _PASSES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
