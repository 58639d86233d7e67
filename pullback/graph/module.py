"""`GraphModule`: a module whose `forward` is generated from a graph.

In: a graph and the module (or dict) that holds what it refers to. Out: a module that runs it. What always holds: the
code is generated when the graph is set or `recompile` is called, and compiled when it first runs; each instance has a
class of its own, because `forward` belongs to the class; tracebacks show the generated lines.
"""

from __future__ import annotations

import copy
import itertools
import linecache
import sys
import traceback
import weakref
from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from ..nn.module import Module
from ..nn.parameter import Parameter
from .codegen import PythonCode, indented
from .folder import write_folder
from .graph import Graph, graph_state, has_attribute, rebuild_graph
from .node import path_of
from .stacks import is_own_file
from .tree_codegen import _BoxedCodeGen, _PyTreeCodeGen

_numbers = itertools.count()
GENERATED = "<eval_with_key>"
_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")


def compile_source(source: str, names: dict[str, Any], origin: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run generated source; its lines can be seen in tracebacks."""
    key = f"{GENERATED}.{next(_numbers)}"
    if origin:
        key += f" from {origin['co_filename']}:{origin['co_firstlineno']} in {origin['co_name']}"
    linecache.cache[key] = (len(source), None, source.splitlines(keepends=True), key)
    names = dict(names)
    exec(compile(source, key, "exec"), names)
    return names


FORWARD = "forward"  # the method that each generated class gets


class _Forward:
    """Stands for a `forward` that is compiled when it is first asked for."""

    def __init__(self, code: PythonCode, name: str, origin: dict[str, Any]):
        self.code, self.name, self.origin = code, name, origin

    def __get__(self, instance: Any, owner: type) -> Any:
        function = compile_source(self.code.src, self.code.globals, self.origin)[self.name]
        weakref.finalize(function, linecache.cache.pop, function.__code__.co_filename, None)
        for cls in owner.__mro__:
            if vars(cls).get(FORWARD) is self:
                setattr(cls, FORWARD, function)
        return function.__get__(instance, owner)


class GraphModule(Module):
    """A module made of a graph."""

    def __new__(cls, *args: Any, **kwargs: Any):
        """Each instance gets a class of its own, under the class that was asked for."""
        base = next(c for c in cls.__mro__ if not vars(c).get("_is_generated_class", False))
        result = type(base.__name__, (base,), {"_is_generated_class": True, "__module__": base.__module__})
        result.__qualname__ = base.__qualname__
        return super().__new__(result)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            for target in _targets(graph):
                copy_attribute(root, self, target)
        elif isinstance(root, dict):
            for target in sorted(_targets(graph, root), key=lambda t: t.count(".")):
                assign_attribute(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        tracer = graph._tracer_cls
        self._tracer_cls = tracer if tracer is not None and "<locals>" not in tracer.__qualname__ else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        for hooks in _HOOKS:
            self.__dict__[hooks] = []
        self.shape_env: Any = None

    # ---- the graph and its code
    @property
    def graph(self) -> Graph:
        """The graph. Setting it, or calling `recompile` after changing it, makes the code follow."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    def recompile(self) -> PythonCode:
        """Generate the code again, after the graph was changed."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen) and codegen.pytree_info is not None:
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        result = self._graph.python_code("self")
        self._code = result.src
        self._lineno_map, self._prologue_start = result._lineno_map, result._prologue_start
        setattr(type(self), FORWARD, _Forward(result, codegen._func_name, self._graph._co_fields))
        return result

    @property
    def code(self) -> str:
        """The generated source."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except Exception as e:
            if not getattr(e, "is_expected", False):  # some are for those who trace graphs, and are no failure
                explain(e)
            raise

    _wrapped_call = __call__

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The graph's function by itself: compiled code is no module of the user's, so no module hook hears of it."""
        return self.forward(*args, **kwargs)

    # ---- submodules
    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a dotted path, making empty modules on the way; False where something is in the way."""
        *path, name = target.split(".")
        at: Any = self
        for part in path:
            if not hasattr(at, part):
                setattr(at, part, Module())
            at = getattr(at, part)
            if not isinstance(at, Module):
                return False
        at.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a dotted path; False where there is none."""
        *path, name = target.split(".")
        at: Any = self
        for part in [*path, None]:
            if not isinstance(at, Module):
                return False
            at = getattr(at, part, None) if part is not None else at
        if not isinstance(getattr(at, name, None), Module):
            return False
        delattr(at, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the submodules that no node refers to."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node._op not in ("call_module", "get_attr"):
                continue
            path = path_of(node)
            parts = path.split(".")
            used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
            if node._op == "call_module" and has_attribute(self, path):
                used.update(f"{path}.{name}" for name, _ in self.get_submodule(path).named_modules())
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- copies
    def __deepcopy__(self, memo: dict) -> GraphModule:
        result = type(self).__new__(type(self))
        memo[id(self)] = result
        Module.__init__(result)
        type(result).__name__ = "GraphModule"  # as PyTorch's copies are called
        graph = copy.deepcopy(self._graph, memo)
        state = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        result.__dict__.update(copy.deepcopy(state, memo))
        result.graph = graph
        for hook in result._deepcopy_hooks:
            hook(result)
        return result

    def __copy__(self) -> GraphModule:
        result = GraphModule(self, self._graph, type(self).__name__)
        result.meta = self.meta
        return result

    def __reduce__(self):
        """The graph goes along in plain values; metadata of nodes, which may be anything, does not."""
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", *_HOOKS)}
        base = next(c for c in type(self).__mro__ if not vars(c).get("_is_generated_class", False))
        return rebuild_module, (base, type(self).__name__, state, graph_state(self._graph))

    # ---- text
    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Write the module down as a Python package with its parameters."""
        write_folder(self, folder, module_name)

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The code with shapes and with the user's lines, submodules included."""
        style = dict(
            include_stride=include_stride, include_device=include_device, colored=colored,
            expanded_def=expanded_def, additional_meta=additional_meta,
        )  # fmt: skip
        text = readable(self, self._get_name(), style)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, reminder])

    def _replicate_for_data_parallel(self) -> GraphModule:
        result = copy.copy(self)
        result.__dict__["_is_replica"] = True
        return result


def _add_hook_methods(kind: str) -> None:
    """`_register_X_hook` and `_unregister_X_hook`, for passes that watch a graph change."""
    table = f"_{kind}_hooks"

    def register(self: GraphModule, f: Callable) -> None:
        if not callable(f):
            raise AssertionError(f"{kind} hook must be a callable.")
        getattr(self, table).append(f)

    def unregister(self: GraphModule, f: Callable) -> None:
        getattr(self, table).remove(f)

    word = "replace_node" if kind == "replace" else kind
    setattr(GraphModule, f"_register_{word}_hook", register)
    setattr(GraphModule, f"_unregister_{word}_hook", unregister)


for _kind in ("replace", "create_node", "erase_node", "deepcopy"):
    _add_hook_methods(_kind)


def readable(module: GraphModule, name: str, style: dict[str, Any]) -> str:
    """A module's class with its code, and the classes of its submodules inside."""
    source = module._graph.python_code("self", verbose=True, **style).src.lstrip("\n")
    text = indented(f"class {name}(torch.nn.Module):\n{source}")
    style = {**style, "expanded_def": False}
    inner = [readable(m, n, style) for n, m in module.named_children() if isinstance(m, GraphModule)]
    return text + indented("\n".join(["", *inner]))


def explain(error: Exception) -> None:
    """Print the generated lines around the one that failed, once, if it was generated code that called what failed."""
    if getattr(error, "_generated_line_shown", False):
        return
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((f for f in reversed(frames) if not is_own_file(f.filename)), None)
    if frame is not None and GENERATED in frame.filename:
        error._generated_line_shown = True  # type: ignore[attr-defined]
        print(error_message(frame), file=sys.stderr)


def error_message(frame: traceback.FrameSummary) -> str:
    """The traceback, and the generated lines around the one that failed."""
    lines = linecache.getlines(frame.filename)
    at = frame.lineno or 1
    return "\n".join([
        traceback.format_exc(),
        f"Call using an FX-traced Module, line {at} of the traced Module's generated forward function:",
        "".join(lines[at - 2 : at]),
        "~" * len(frame.line or "") + "~~~ <--- HERE",
        "\n".join(lines[at : at + 2]),
    ])  # fmt: skip


# ---- attributes by dotted path
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # in `meta`: what copies of a module keep of it


class _CodeOnlyModule(Module):
    """The state of a module without its class: what a copy is made from."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        self.__dict__ = body


def _targets(graph: Graph, root: dict | None = None) -> list[str]:
    """What a graph refers to in its module, each once."""
    found: dict[str, None] = {}
    for node in graph.nodes:
        if node._op not in ("get_attr", "call_module"):
            continue
        path = path_of(node)
        if root is not None and path not in root:
            raise RuntimeError(f"Node {node} referenced target {path} but that target was not provided in ``root``!")
        found[path] = None
    return list(found)


def copy_attribute(source: Module, to: Module, target: str) -> None:
    """Share an attribute of one module with another, at the same path."""
    *path, name = target.split(".")
    for part in path:
        below = getattr(source, part)
        existing = getattr(to, part, None)
        if below is existing:
            return
        if existing is None:
            existing = Module()
            setattr(to, part, existing)
        source, to = below, existing
    if not hasattr(source, name):
        return
    _set(to, name, getattr(source, name), source._non_persistent_buffers_set if isinstance(source, Module) else ())


def assign_attribute(value: Any, to: Module, target: str) -> None:
    """Put a value at a dotted path, making empty modules on the way."""
    *path, name = target.split(".")
    for part in path:
        if getattr(to, part, None) is None:
            setattr(to, part, Module())
        to = getattr(to, part)
    _set(to, name, value)


def _set(to: Module, name: str, value: Any, transient: Any = ()) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to.register_buffer(name, value, persistent=name not in transient)
    else:
        setattr(to, name, value)


# ---- unpickling
def rebuild_module(base: type[GraphModule], name: str, state: dict, graph: tuple) -> GraphModule:
    """A module from its attributes and its graph in plain values."""
    result = base.__new__(base)
    Module.__init__(result)
    type(result).__name__ = name
    result.__dict__.update(state)
    for hooks in _HOOKS:
        result.__dict__[hooks] = []
    result.graph = rebuild_graph(*graph)
    return result


__all__ = ["GraphModule"]
