"""`unflatten`: an exported program with the modules it had.

In: an `ExportedProgram`. Out: a module whose submodules are those of the original, as graphs: each can be looked at, called
and replaced. What always holds: the operators run in the order of the program. A submodule that is called again with
another graph, or whose work is interrupted, is there once more for each such graph, as `name@1`, `name@2`, with the same
parameters; one whose signature was preserved is one module, which takes and gives what the original did.
"""

from __future__ import annotations

import abc
import sys
import types
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..capture.trace.program import gives_back_first
from ..core import tree
from ..graph import Graph
from ..ops.system.operator import Operator
from ..ops.system.packet import ops
from .exported_program import ExportedProgram
from .input_checks import check_inputs
from .outline import InterpreterModule, InterpreterModuleDispatcher, Outlines
from .unlift import GuardFailed, GuardsFn, UnliftedModule

copy_ = ops.aten.copy_


class FlatArgsAdapter(abc.ABC):
    """Makes arguments of the exported structure of arguments of another."""

    @abc.abstractmethod
    def adapt(
        self, target_spec: Any, input_spec: Any, input_args: list[Any], metadata: dict | None = None, obj: Any = None
    ) -> list[Any]:
        """The flat arguments in the order of `target_spec`."""

    def get_flat_arg_paths(self) -> list[str]:
        return []


class UnflattenedModule(UnliftedModule):
    """See the module's docstring."""

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None):
        source = export_module.module(check_guards=False)
        sink_writes(source.graph)
        resolve_writes(source.graph)
        signatures = {e.fqn: e.signature for e in export_module.module_call_graph if e.fqn and e.signature is not None}
        outlines = Outlines(source, signatures, export_module._module_aliases)
        graph = outlines.whole(source.graph)
        graph.set_codegen(source.graph._codegen)
        super().__init__({}, Graph(), "UnflattenedModule")
        names = [e.fqn for e in export_module.module_call_graph if e.fqn and "@" not in e.fqn]
        outlines.assemble(self, names)
        self.graph = graph
        self.argument_names, self.keyword_names = source.argument_names, source.keyword_names
        self.graph_signature, self.module_call_graph = export_module.graph_signature, export_module.module_call_graph
        self.adapter, self.dispatchers, self.kept_values = flat_args_adapter, outlines.dispatchers, outlines.kept
        user = list(self.graph.find_nodes(op="placeholder"))
        self.__dict__["conditions"] = GuardsFn([n.name for n in user], export_module._guards_code)  # no submodule
        self.values = [n.meta.get("val") for n in user]
        self.check_input_constraints = True

        self.kind = next((n.meta["nn_module_stack"] for n in source.graph.nodes if "nn_module_stack" in n.meta), {})

    _run_with_interpreter = False  # graphs run as generated code

    @property
    def graph_module(self) -> UnflattenedModule:
        return self

    def type_name(self) -> str | None:
        """The class that the module had; None for a program of no operators."""
        return next(iter(self.kind.values()))[1] if self.kind else None

    def _checked(self, args: tuple, kwargs: dict) -> list:
        for dispatcher in self.dispatchers:
            dispatcher.restart()
        self.kept_values.clear()
        given = super()._checked(args, kwargs)
        leaves = tree.tree_leaves(given)
        if self.check_input_constraints and len(leaves) == len(self.values):
            check_inputs(leaves, self.values, self._in_spec)
            try:
                self.__dict__["conditions"](*leaves)
            except GuardFailed as error:
                raise RuntimeError(str(error)) from None
        return given

    def _refuse(self, spec: Any) -> None:
        raise TypeError(
            "There is no flat args adapter specified. Are you sure you are calling this with the right arguments? "
            f"The program was exported for arguments of the structure {self._in_spec}, and got {spec}."
        )


def resolve_writes(graph: Graph) -> None:
    """Let readers of a written tensor read the tensor itself, not the result of the write: they are one object."""
    for n in graph.nodes:
        if n.op == "call_function" and isinstance(n.target, Operator) and gives_back_first(n.target):
            n.replace_all_uses_with(n.args[0])


def sink_writes(graph: Graph) -> None:
    """Have buffers get their new values where these are computed, inside the module that computes them."""
    order = {n: i for i, n in enumerate(graph.nodes)}
    for n in list(graph.nodes):
        if n.target is not copy_.default or n.args[0].op != "get_attr" or "nn_module_stack" in n.meta:
            continue
        buffer, value = n.args[:2]
        stack = value.meta.get("nn_module_stack")
        if stack and all(order[user] <= order[value] for user in buffer.users if user is not n):
            value.append(n)
            n.meta["nn_module_stack"] = stack


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """The program with the modules it had."""
    if not isinstance(module, ExportedProgram):
        raise TypeError(f"unflatten: expected an ExportedProgram, got {type(module).__name__}")
    return UnflattenedModule(module, flat_args_adapter)


def _disable_interpreter() -> AbstractContextManager:
    """Inside, unflattened programs run as generated code, which they do anyway."""
    return nullcontext()


class CallableModule(types.ModuleType):
    """A module that is called as the function of its name: importing it sets that name of the package to the module."""

    def __call__(self, *args: Any, **kwargs: Any) -> UnflattenedModule:
        return unflatten(*args, **kwargs)


sys.modules[__name__].__class__ = CallableModule
__all__ = ["FlatArgsAdapter", "InterpreterModule", "InterpreterModuleDispatcher", "UnflattenedModule", "unflatten"]
