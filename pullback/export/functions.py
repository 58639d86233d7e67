"""`_dynamo.export` of programs with dynamic sizes or decompositions: by `export`, for functions as well as modules.

In: a function or module, what is said of sizes, a decomposition table. Out: (graph, guards) of one call, as capturing gives them
where nothing of that is said.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..capture.front import exporting
from ..nn.module import Module
from .trace import export as export_module

UNUSED = ("tracing_mode", "assume_static_by_default", "same_signature", "specialize_float", "disable_constraint_solver")


class FunctionModule(Module):
    """A function as the forward of a module."""

    def __init__(self, function: Callable):
        super().__init__()
        self.forward = function  # type: ignore[method-assign]


def export(
    f: Callable,
    *given: Any,
    aten_graph: bool = False,
    pre_dispatch: bool = False,
    decomposition_table: dict | None = None,
    dynamic_shapes: Any = None,
    **options: Any,
) -> Any:
    """`export(f, ...)(*args)`: (graph, guards) of one call; or, by its older form, `export(f, *args, ...)`."""
    if decomposition_table is not None and not aten_graph:
        raise AssertionError(
            "Specifying a decomposition_table table or tracing mode is illegal without setting aten_graph=True"
        )
    if pre_dispatch and not aten_graph:
        raise AssertionError("pre_dispatch=True can only be used when aten_graph=True")
    left = {k: v for k, v in options.items() if k not in UNUSED}
    if options.get("same_signature") is False and not given:
        left["same_signature"] = False
    if dynamic_shapes is None and decomposition_table is None:
        return exporting.export(f, *given, aten_graph=aten_graph, **left)

    def run(*args: Any, **kwargs: Any) -> exporting.ExportResult:
        program = export_module(
            f if isinstance(f, Module) else FunctionModule(f),
            args,
            kwargs,
            dynamic_shapes=by_name(f, dynamic_shapes, args),
        )
        if decomposition_table is not None:
            program = program.run_decompositions({**decomposition_table})
        return exporting.ExportResult(program.module(), list(program._guards_code))

    return run(*given, **left) if given else run


def by_name(f: Callable, dynamic_shapes: Any, args: tuple) -> Any:
    """What is said of some arguments, by name, as something that is said of each."""
    if not isinstance(dynamic_shapes, dict) or not args:
        return dynamic_shapes
    names = list(inspect.signature(f.forward if isinstance(f, Module) else f).parameters)[: len(args)]
    return {**dict.fromkeys(names), **dynamic_shapes} if dynamic_shapes.keys() <= set(names) else dynamic_shapes
