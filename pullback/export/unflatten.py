"""`unflatten`: an exported program with the modules it had.

In: an `ExportedProgram`. Out: a module whose submodules are those of the original, as graphs: each can be looked at, called
and replaced. What always holds: the operators run in the order of the program. So a submodule that is called again, or
whose work is interrupted, is there once more for each such stretch, as `name@1`, `name@2`, with the same parameters.
"""

from __future__ import annotations

import abc
import sys
import types
from typing import Any

from ..graph import Graph, GraphModule, Node
from ..graph.module import assign_attribute
from .exported_program import ExportedProgram
from .unlift import UnliftedModule


class FlatArgsAdapter(abc.ABC):
    """Makes arguments of the exported structure of arguments of another."""

    @abc.abstractmethod
    def adapt(
        self, target_spec: Any, input_spec: Any, input_args: list[Any], metadata: dict | None = None, obj: Any = None
    ) -> list[Any]:
        """The flat arguments in the order of `target_spec`."""

    def get_flat_arg_paths(self) -> list[str]:
        return []


class InterpreterModule(GraphModule):
    """A submodule of an unflattened program: it takes what it needs, in the order in which it needs it."""


class Outline:
    """The part of a program that one call of one module is."""

    def __init__(self, source: GraphModule, fqn: str, depth: int):
        self.source, self.fqn, self.depth = source, fqn, depth
        self.graph, self.env = Graph(), {}
        self.root: dict[str, Any] = {}  # what the graph reads: tensors and submodules, by relative name

    def relative(self, name: str) -> str:
        return name.removeprefix(f"{self.fqn}.") if self.fqn else name

    def holds(self, n: Node) -> bool:
        """Whether a node reads something that lies within this module."""
        return n.op == "get_attr" and (not self.fqn or n.target.startswith(f"{self.fqn}."))

    def value(self, n: Node) -> Node:
        if n not in self.env and self.holds(n):
            name = self.relative(n.target)
            self.env[n] = self.graph.get_attr(name)
            self.env[n].meta = dict(n.meta)
            self.root[name] = attribute(self.source, n.target)
        return self.env[n]

    def key(self, n: Node) -> str | None:
        """The call of a submodule that a node belongs to."""
        stack = list(n.meta.get("nn_module_stack", ()))
        return stack[self.depth + 1] if len(stack) > self.depth + 1 else None

    def add(self, nodes: list[Node]) -> None:
        """Take nodes over; those of submodules become calls of them."""
        at = 0
        while at < len(nodes):
            n, key, end = nodes[at], self.key(nodes[at]), at + 1
            if key is not None:
                while end < len(nodes) and self.key(nodes[end]) == key:
                    end += 1
                self.call(n.meta["nn_module_stack"][key][0], nodes[at:end])
            elif n.op != "get_attr":
                self.env[n] = self.graph.node_copy(n, self.value)
                if n.op == "call_module":
                    self.root[n.target] = attribute(self.source, n.target)
            at = end

    def call(self, fqn: str, nodes: list[Node]) -> None:
        """One stretch of a submodule's work."""
        part, inside = Outline(self.source, fqn, self.depth + 1), set(nodes)
        taken = dict.fromkeys(a for n in nodes for a in n.all_input_nodes if a not in inside and not part.holds(a))
        given = [n for n in nodes if any(user not in inside for user in n.users)]
        for n in taken:
            part.env[n] = part.graph.placeholder(n.name)
            part.env[n].meta = dict(n.meta)
        part.add(nodes)
        results = [part.env[n] for n in given]
        part.graph.output(results[0] if len(results) == 1 else tuple(results))
        name = self.free_name(self.relative(fqn))
        self.root[name] = InterpreterModule(part.root, part.graph, "InterpreterModule")
        result = self.graph.call_module(name, tuple([self.value(n) for n in taken]))
        for i, n in enumerate(given):
            self.env[n] = result if len(given) == 1 else self.graph.call_function(operator_getitem, (result, i))
            self.env[n].meta["val"] = n.meta.get("val")

    def free_name(self, name: str) -> str:
        count = sum(known == name or known.startswith(f"{name}@") for known in self.root)
        return f"{name}@{count}" if count else name


def operator_getitem(values: tuple, i: int) -> Any:
    """One of several results of a submodule."""
    return values[i]


def attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


class UnflattenedModule(UnliftedModule):
    """See the module's docstring."""

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None):
        source = export_module.module()
        whole = Outline(source, "", 0)
        whole.add(list(source.graph.nodes))
        whole.graph.set_codegen(source.graph._codegen)
        super().__init__(whole.root, whole.graph, "UnflattenedModule")
        for name, value in (*source.named_parameters(), *source.named_buffers()):
            assign_attribute(value, self, name)
        self.argument_names, self.keyword_names = source.argument_names, source.keyword_names
        self.adapter = flat_args_adapter


def unflatten(module: ExportedProgram, flat_args_adapter: FlatArgsAdapter | None = None) -> UnflattenedModule:
    """The program with the modules it had."""
    if not isinstance(module, ExportedProgram):
        raise TypeError(f"unflatten: expected an ExportedProgram, got {type(module).__name__}")
    return UnflattenedModule(module, flat_args_adapter)


class CallableModule(types.ModuleType):
    """A module that is called as the function of its name: importing it sets that name of the package to the module."""

    def __call__(self, *args: Any, **kwargs: Any) -> UnflattenedModule:
        return unflatten(*args, **kwargs)


sys.modules[__name__].__class__ = CallableModule
