"""Generated Python, compiled under a name by which tracebacks and debuggers find its lines."""

from __future__ import annotations

import linecache

__all__ = ["GENERATED", "run_source"]

GENERATED = "<pullback: "  # what the file names of generated source begin with


def run_source(source: str, label: str, namespace: dict, locals: dict | None = None) -> None:
    """Execute generated source; `label` says what it is: the file of "torch.mul" is "<pullback: torch.mul>"."""
    name = f"{GENERATED}{label}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), namespace, namespace if locals is None else locals)
