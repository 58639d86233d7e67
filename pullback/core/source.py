"""Generated Python, compiled under a name by which tracebacks and debuggers find its lines."""

from __future__ import annotations

import linecache

__all__ = ["run_source"]


def run_source(source: str, name: str, namespace: dict, locals: dict | None = None) -> None:
    """Execute generated source; `name` says what it is, as in "<pullback: torch.mul>"."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), namespace, namespace if locals is None else locals)
