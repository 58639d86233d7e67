"""Graphs run node by node.

In: a module with a graph, and arguments. Out: what the generated code would return. What always holds: every node goes
through `run_node` and one method per kind of node, so a subclass can watch or change any of them; values are dropped
after their last use; an error says which node was running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import traceback as tracebacks
from .arguments import map_aggregate
from .codegen import last_uses
from .graph import Graph
from .lazy_module import _make_graph_module
from .node import Argument, Node, Target
from .proxy import Proxy
from .tracer import Tracer
from .values import MissingValue, fetch


class Interpreter:
    """Runs a graph. Override `call_function`, `run_node`, ... to do something else with its nodes."""

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        if garbage_collect_values:
            self.user_to_last_uses = last_uses(list(self.graph.nodes))

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the graph; values in `initial_env` are taken as computed."""
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as e:
                if self.extra_traceback:
                    _explain(e, node)
                raise
            if node._op == "output":
                out = self.env[node]
                return self.graph.process_outputs(out) if enable_io_processing else out
            if self.garbage_collect_values:
                for dead in self.user_to_last_uses.get(node, ()):
                    del self.env[dead]
        return None

    def boxed_run(self, args_list: list) -> Any:
        """Run on a list of arguments and empty it, so that they can be freed early."""
        inputs = self.graph.find_nodes(op="placeholder")
        if len(args_list) != len(inputs):
            detail = "extra arguments" if len(args_list) > len(inputs) else "missing arguments"
            raise RuntimeError(
                f"Interpreter.boxed_run expected {len(inputs)} arguments for placeholders "
                f"but received {len(args_list)} ({detail})"
            )
        env = dict(zip(inputs, args_list))
        args_list.clear()
        return self.run(initial_env=env)

    def run_node(self, n: Node) -> Any:
        """Run one node, by the method that is called as its `op`."""
        if tracebacks.should_preserve_node_meta:
            with tracebacks.set_current_meta(n, f"Interpreter_{type(self).__name__}"):
                args, kwargs = self.fetch_args_kwargs_from_env(n)
                return getattr(self, n._op)(n._target, args, kwargs)
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n._op)(n._target, args, kwargs)

    # ---- one method per kind of node
    def placeholder(self, target: str, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument of the run; `*args` takes all that are left."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: str, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Callable[..., Any], args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A function call."""
        return target(*args, **kwargs)

    def call_method(self, target: str, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A method call on the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: str, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The value that the graph returns."""
        return args[0]

    # ---- values
    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module at a dotted path."""
        value = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """A node's arguments with values in the place of nodes."""
        return self.map_nodes_to_values(n._args, n), self.map_nodes_to_values(n._kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """Values in the place of nodes, in lists and dicts that may be changed."""
        try:
            return fetch(args, self.env)
        except MissingValue as e:
            raise RuntimeError(
                f"Node {n} referenced nonexistent value {e.node}! Run Graph.lint() to diagnose such issues"
            ) from None


def _explain(error: Exception, node: Node) -> None:
    """Say in the error which node was running, and where the user wrote it."""
    text = f"While executing {node.format_node()}\nOriginal traceback:\n{node.stack_trace}"
    error.args = (f"{error.args[0]}\n\n{text}" if error.args else text, *error.args[1:])
    if isinstance(error, KeyError):
        raise RuntimeError(*error.args) from error


class Transformer(Interpreter):
    """Runs a graph on proxies, and so makes a new one. Override the methods to change the copy."""

    def __init__(self, module: Any):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: str, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        default = next(iter(args)) if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: str, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: str, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Callable[..., Any], args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> Any:
        """The new module."""
        with tracebacks.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            strip = lambda a: a.node if isinstance(a, Proxy) else a
            output = self.new_graph.output(map_aggregate(result, strip))
            for name, value in self.graph.output_node().meta.items():
                output.meta.setdefault(name, value)
        return _make_graph_module(self.module, self.new_graph)


class _TransformerTracer(Tracer):
    """Records into a graph that is there already; every module is a leaf."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph
        self.tensor_attrs: dict = {}

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return True


__all__ = ["Interpreter", "Transformer"]
