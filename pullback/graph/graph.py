"""`Graph`: a list of nodes, in execution order.

In: nodes, one at a time, at the end or at a chosen place. Out: Python source, text, pictures, copies. What always holds
(`lint` checks it): nodes only use nodes before them, names are unique, and the lists of users are exact.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .arguments import map_aggregate, replace_nodes
from .codegen import (  # noqa: F401 - programs look for these here
    CodeGen,
    PythonCode,
    Style,
    inplace_methods,
    magic_methods,
    reflectable_magic_methods,
)  # fmt: skip
from .names import is_lasting, is_reachable, name_hint, qualified_name, reach
from .naming import Namespace, is_base, snake_case, valid
from .node import GAP, Argument, Node, Target
from .tree_codegen import _BoxedCodeGen, _PyTreeCodeGen, _PyTreeInfo  # noqa: F401

_Namespace = Namespace
_snake_case = snake_case
_name_hints: dict[Any, str] = {}  # lasting function -> what its results are called, before numbers
_bases: dict[Any, str] = {}  # those of the hints that need no other change than a number


class _NodeList:
    """The nodes of a graph, forwards or backwards, safe against erasing the node just seen."""

    def __init__(self, graph: Graph, direction: str = "_next"):
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        return self._walk(self.direction == "_next")

    def __reversed__(self) -> Iterator[Node]:
        return self._walk(self.direction != "_next")

    def _walk(self, forward: bool) -> Iterator[Node]:
        root = self.graph._root
        node = root._next if forward else root._prev
        while node is not root:
            if not node._erased:
                yield node
            node = node._next if forward else node._prev


class _InsertPoint:
    """While entered (or until another is set), new nodes go to one place."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]):
        self.graph = graph
        self.before, graph._insert = graph._insert, insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: Any) -> None:
        self.graph._insert = self.before


class Graph:
    """Nodes in execution order, from placeholders to the output."""

    def __init__(self, owning_module: Any = None, tracer_cls: type | None = None, tracer_extras: dict | None = None):
        self._root = Node(self, "", "root", "", (), {})
        self._len = 0
        self._insert: Callable[[Node], None] = self._root.prepend
        self._at_end = self._insert
        self._graph_namespace = Namespace()
        self._owners = 0
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}
        self._index: dict[Any, dict[Node, None]] = {}  # what find_nodes looks up: see _index_key

    @property
    def owning_module(self) -> Any:
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owning_module = module

    # ---- looking
    @property
    def nodes(self) -> _NodeList:
        """All nodes, in order; `reversed(graph.nodes)` works too."""
        return _NodeList(self)

    def output_node(self) -> Node:
        """The one output."""
        return next(iter(reversed(self.nodes)))

    @staticmethod
    def _index_key(node: Node) -> Any:
        return (node._op, node._target) if node._op == "call_function" else node._op

    def _remember(self, node: Node) -> None:
        self._index.setdefault(self._index_key(node), {})[node] = None

    def _forget(self, node: Node) -> None:
        self._index.get(self._index_key(node), {}).pop(node, None)

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of one kind, in order; quicker than looking through all."""
        if op == "call_function":
            if target is None:
                raise AssertionError("target is required for call_function")
            found = list(self._index.get((op, target), ()))
        else:
            found = [n for n in self._index.get(op, ()) if target is None or n._target == target]
        return sorted(found, key=lambda n: n._sort_key) if sort else found

    # ---- making nodes
    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Make a node and put it at the insert point."""
        if args is None:
            args = ()
        elif not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if kwargs is not None and not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        namespace = self._graph_namespace
        base = _bases.get(target) if name is None and op == "call_function" else None
        if base is not None:
            name = namespace.numbered(base)
        else:
            name = namespace._unused(self._target_to_str(target) if name is None else name, None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        namespace.names[node] = name
        namespace.used.add(name)
        self._link(node)
        key = (op, target) if op == "call_function" else op
        found = self._index.get(key)
        if found is None:
            self._index[key] = {node: None}
        else:
            found[node] = None
        self._len += 1
        hooks = getattr(self._owning_module, "_create_node_hooks", None) if self._owning_module is not None else None
        for hook in hooks or ():
            hook(node)
        return node

    def _link(self, node: Node) -> None:
        """Put a new node at the insert point; at the end, without ceremony."""
        if self._insert is not self._at_end:
            self._insert(node)
            return
        root = self._root
        last = root._prev
        last._next = root._prev = node
        node._prev, node._next = last, root
        node._sort_key = last._sort_key + GAP

    @staticmethod
    def _target_to_str(target: Target | None) -> str:
        """The wished-for name of a node, from what it calls."""
        if not isinstance(target, str):
            hint = _name_hints.get(target)
            if hint is None:
                hint = valid(snake_case(name_hint(target)))
                if is_lasting(target):
                    _name_hints[target] = hint
                    if is_base(hint):
                        _bases[target] = hint
            return hint
        if target.startswith("__") and target.endswith("__"):
            target = target[2:-2]
        return snake_case(target)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An input of the function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or other attribute of the module that owns the graph."""
        owner = self._owning_module
        if owner is not None and not has_attribute(owner, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! "
                "Call GraphModule.add_submodule to add the necessary submodule, "
                "GraphModule.add_parameter to add the necessary Parameter, or nn.Module.register_buffer to add the "
                "necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args=None, kwargs=None, type_expr: Any = None) -> Node:
        """A call of a submodule of the module that owns the graph."""
        owner = self._owning_module
        if owner is not None and not has_attribute(owner, module_name):
            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args=None, kwargs=None, type_expr: Any = None) -> Node:
        """A method call; the object is the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function: Callable, args=None, kwargs=None, type_expr: Any = None, name=None) -> Node:
        """A function call."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """What the function returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    # ---- changing
    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nothing uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} "
                f"users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self._owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        self._forget(to_erase)
        # The erased node keeps its links, so that loops over the list that stand on it can go on.
        before, after = to_erase._prev, to_erase._next
        before._next, after._prev = after, before
        to_erase._erased = True
        self._len -= 1
        to_erase._update((), {})

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Where new nodes go: before a node; without one, at the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        self._check_owned(n)
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Where new nodes go: right after a node (so the last made comes first); without one, at the end."""
        if n is None:
            return self.inserting_before(self._root)
        self._check_owned(n)
        return _InsertPoint(self, n.append)

    def _check_owned(self, n: Node) -> None:
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Copy a node of any graph to the insert point of this one."""
        args = replace_nodes(node._args, Node, arg_transform)
        kwargs = replace_nodes(node._kwargs, Node, arg_transform)
        result = self.create_node(node._op, node._target, args, kwargs, node._name, node.type)
        result.meta = dict(node.meta)
        return result

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy all nodes of a graph to the insert point; the value of its output, in nodes of this graph."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node._op == "output":
                result = replace_nodes(node._args[0], Node, val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo: dict | None = None) -> Graph:
        """A copy with nodes of its own; meta is copied one level deep."""
        memo = {} if memo is None else memo
        created = Graph(tracer_cls=self._tracer_cls)
        created._codegen = self._codegen
        created._co_fields = self._co_fields
        values: dict[Node, Node] = {}
        found = created.graph_copy(self, values, return_output_node=True)
        if found is not None:
            result, old = found
            output = created.output(result, type_expr=old.type)
            output.meta = dict(old.meta)
            values[old] = output
        memo.update({id(old): new for old, new in values.items()})
        memo[id(self)] = created
        return created

    def __reduce__(self):
        return rebuild_graph, graph_state(self)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes whose results nothing uses and that do nothing else; whether there were any."""
        self.lint()
        impure = is_impure_node or _is_impure
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
        return self._len != before

    # ---- text and code
    def set_codegen(self, codegen: CodeGen) -> None:
        """Choose how the graph becomes a function."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        return self._codegen.process_outputs(out)

    def on_generate_code(self, make_transformer: Callable) -> contextlib.AbstractContextManager:
        """Register a function that changes the generated lines; as a context, only inside of it."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def undo():
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return undo()

    def python_code(self, root_module: str, **options: Any) -> PythonCode:
        """The graph as Python source; `root_module` is the name of the module, usually `self`."""
        namespace = Namespace()
        names = {node: namespace.create_name(node._name, node) for node in self.nodes}
        renamed = {node: name for node, name in names.items() if name != node._name}
        for node in renamed:
            node._repr_fn = renamed.__getitem__
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, Style(**options))
        finally:
            for node in renamed:
                node._repr_fn = None

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        from .table import table

        print(table(self))

    def draw(self, path: str | None = None) -> str:
        """The graph as a picture: SVG text, written to `path` where one is given."""
        from .draw import svg

        text = svg(self)
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return text

    def lint(self) -> None:
        """Check that the graph is well formed; raises where it is not."""
        from .lint import lint

        lint(self)


def _is_impure(node: Node) -> bool:
    return node._op == "call_module" and node.graph.owning_module is None or node.is_impure()


def has_attribute(module: Any, path: str) -> bool:
    """Whether a module has an attribute at a dotted path."""
    for part in path.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True


def graph_state(graph: Graph) -> tuple:
    """A graph in plain values: nodes refer to each other by number."""
    numbers = {node: i for i, node in enumerate(graph.nodes)}
    place = lambda node: NodeNumber(numbers[node])
    rows = [
        (
            n._op,
            Function.of(n._target),
            replace_nodes(n._args, Node, place),
            replace_nodes(n._kwargs, Node, place),
            n._name,
            n.type,
        )
        for n in graph.nodes
    ]
    return rows, graph._tracer_cls, graph._codegen


def rebuild_graph(rows: list, tracer_cls: type | None, codegen: Any) -> Graph:
    """A graph from plain values."""
    graph = Graph(tracer_cls=tracer_cls)
    graph._codegen = codegen
    result: list = []
    find = lambda leaf: result[leaf] if type(leaf) is NodeNumber else leaf
    for op, target, args, kwargs, name, kind in rows:
        target = target.find() if isinstance(target, Function) else target
        node = graph.create_node(op, target, map_aggregate(args, find), map_aggregate(kwargs, find), name, kind)
        result.append(node)
    return graph


class Function:
    """Stands for a function of this package, by its public name, where a graph is written down."""

    def __init__(self, name: str):
        self.name = name

    @staticmethod
    def of(target: Any) -> Any:
        """What to write for a target: its public name where that gives it back, else itself."""
        if isinstance(target, str):
            return target
        name = qualified_name(target)
        return Function(name) if is_reachable(name, target) else target

    def find(self) -> Any:
        return reach(self.name)


class NodeNumber(int):
    """Stands for a node, by its place, where a graph is written down."""


__all__ = ["PythonCode", "CodeGen", "Graph"]
