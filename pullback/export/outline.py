"""The modules of an exported program, as graphs cut out of the flat one.

In: the flat graph, whose nodes know in which calls of submodules they were made (`nn_module_stack`). Out: one graph for
each call, and the tree of modules that hold them. What always holds: calls of one module with equal graphs share one
module; parameters and submodules of a module are those of all its graphs.
"""

from __future__ import annotations

from operator import getitem
from typing import Any

from ..capture.trace.program import gives_back_first
from ..core import tree
from ..core.tensor import Tensor
from ..graph import Graph, GraphModule, Node
from ..graph.tree_codegen import _PyTreeCodeGen, _PyTreeInfo
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..ops.system.operator import Operator
from .graph_signature import ConstantArgument, ModuleCallSignature
from .modules import call_name
from .unlift import CalledAsTraced


class InterpreterModule(GraphModule):
    """A submodule of an unflattened program: it takes what it needs, in the order in which it needs it."""

    kind = ""
    _run_with_interpreter = False

    @property
    def graph_module(self) -> InterpreterModule:
        return self

    def type_name(self) -> str:
        """The class that the submodule had."""
        return self.kind


class SignedModule(CalledAsTraced, InterpreterModule):
    """A submodule that takes and gives what the original did."""


class InterpreterModuleDispatcher(Module):
    """A submodule with a preserved signature whose calls differ: the graphs of its calls, run in their order."""

    def __init__(self, calls: list[InterpreterModule]):
        super().__init__()
        self.__dict__["_call_modules"] = calls  # no submodules: they hold what this module holds
        self._num_calls = 0

    def call_modules(self) -> list[InterpreterModule]:
        return self.__dict__["_call_modules"]

    def type_name(self) -> str:
        return self.call_modules()[0].kind

    def restart(self) -> None:
        """The program is called anew."""
        self._num_calls = 0

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        calls = self.call_modules()
        self._num_calls += 1
        return calls[(self._num_calls - 1) % len(calls)](*args, **kwargs)


class Keep:
    """Puts a value aside, for a part of the program that the signature of a module hides it from."""

    has_effects = True

    def __init__(self, values: dict, name: str):
        self.values, self.name = values, name
        self.__name__ = self.__qualname__ = "keep"
        self.__module__ = "export"

    def __call__(self, value: Any) -> None:
        self.values[self.name] = value


class Fetch(Keep):
    """Takes a value that was put aside."""

    has_effects = False

    def __init__(self, values: dict, name: str):
        super().__init__(values, name)
        self.__name__ = self.__qualname__ = "fetch"

    def __call__(self) -> Any:
        if self.name not in self.values:
            raise RuntimeError(
                f"the value {self.name}, which another module of the program reads, was computed inside a module that was "
                "replaced, and is none of the results in its signature"
            )
        return self.values[self.name]


class Unflattened:
    """A structure of flat values, as a target of nodes."""

    def __init__(self, spec: Any):
        self.spec = spec
        self.__name__ = self.__qualname__ = "tree_unflatten"
        self.__module__ = "export"

    def __call__(self, *leaves: Any) -> Any:
        return tree.tree_unflatten(leaves, self.spec)


class Outlines:
    """All modules of one program, while they are cut out."""

    def __init__(self, source: GraphModule, signatures: dict[str, ModuleCallSignature], aliases: dict[str, str]):
        self.source, self.signatures, self.aliases = source, signatures, aliases
        self.nodes = {n.name: n for n in source.graph.nodes}
        self.kept: dict[str, Any] = {}  # values that signatures hide, while the program runs
        self.hidden: set[Node] = set()
        self.known: dict[tuple, InterpreterModule] = {}  # by the module and what its graph does
        self.named: dict[str, list[InterpreterModule]] = {}  # the different graphs of a module, in their order
        self.calls: dict[str, list[InterpreterModule]] = {}  # of modules with preserved signatures
        self.dispatchers: list[InterpreterModuleDispatcher] = []
        self.state: dict[str, Any] = dict(
            (*source.named_parameters(remove_duplicate=False), *source.named_buffers(remove_duplicate=False))
        )
        self.state.update(plain_tensors(source))
        self.names: dict[int, list[str]] = {}
        for name, value in self.state.items():
            self.names.setdefault(id(value), []).append(name)

    def whole(self, graph: Graph) -> Graph:
        """The graph of the program itself."""
        whole = Outline(self, "", 0)
        whole.add(list(graph.nodes))
        self.whole_outline = whole
        return whole.graph

    def module(self, fqn: str, part: Outline, cls: type, kind: str) -> tuple[InterpreterModule, int]:
        """The module of a graph: one that is known, where the graph is; and its number among the graphs of its name."""
        key = (self.aliases.get(fqn, fqn), cls, part.described())
        if key not in self.known:
            made = self.known[key] = cls({}, Graph(), "InterpreterModule")
            for name, graph in part.root.items():
                setattr(made, name, graph)
            made.graph, made.kind = part.graph, kind
        module, own = self.known[key], self.named.setdefault(fqn, [])
        if module not in own:
            own.append(module)
        return module, own.index(module)

    def value_of(self, argument: Any) -> Any:
        """What an argument of a signature is in the flat graph; None for what is no longer there."""
        if isinstance(argument, ConstantArgument):
            return argument.value
        return origin(self.nodes[argument.name]) if argument.name in self.nodes else None

    # ---- the tree
    def assemble(self, root: Module, names: list[str]) -> None:
        """Hang all modules and tensors below `root`."""
        self.holders: dict[str, list[Module]] = {"": [root]}
        for name, graph in self.whole_outline.root.items():
            setattr(root, name, graph)
        for fqn in dict.fromkeys([*names, *self.named, *self.calls]):
            self.hang(fqn)
        copies: dict[int, Any] = {}  # the program's own state stays as it is
        for name, value in self.state.items():
            path, _, leaf = name.rpartition(".")
            self.hang(path)
            for holder in self.holders[path]:
                assign_like(self.source, name, copies.setdefault(id(value), copied(value)), holder, leaf)

    def hang(self, fqn: str) -> None:
        if fqn in self.holders:
            return
        path, _, leaf = fqn.rpartition(".")
        self.hang(path)
        rows: list[tuple[str, Module]] = [
            (f"{leaf}@{i}" if i else leaf, m) for i, m in enumerate(self.named.get(fqn, ()))
        ]
        holders = [m for _, m in rows]
        if fqn in self.calls:
            calls = self.calls[fqn]
            one: Module = calls[0]
            if any(c is not calls[0] for c in calls):
                one = InterpreterModuleDispatcher(calls)
                self.dispatchers.append(one)
                holders.append(one)
            rows = [(leaf, one), *[(name, m) for name, m in rows if name != leaf and m not in calls]]
        if not rows:
            rows = [(leaf, Module())]
            holders = [rows[0][1]]
        for parent in self.holders[path]:
            for name, module in rows:
                parent.add_module(name, module)
        self.holders[fqn] = holders


def assign_like(source: Module, name: str, value: Any, holder: Module, leaf: str) -> None:
    """Set a parameter or buffer of a module as it is one of another."""
    path, _, own = name.rpartition(".")
    owner = source.get_submodule(path)
    if own in owner._buffers:
        holder.register_buffer(leaf, value, persistent=own not in owner._non_persistent_buffers_set)
    else:
        setattr(holder, leaf, value)


def plain_tensors(module: Module) -> dict[str, Tensor]:
    """Tensors that are neither parameters nor buffers, by their full names."""
    return {
        f"{prefix}.{name}" if prefix else name: value
        for prefix, owner in module.named_modules()
        for name, value in vars(owner).items()
        if isinstance(value, Tensor)
    }


def copied(value: Tensor) -> Tensor:
    """A tensor of its own with the same values."""
    copy = value.detach().clone()
    return (
        Parameter(copy, value.requires_grad)
        if isinstance(value, Parameter)
        else copy.requires_grad_(value.requires_grad)
    )


def common_annotations(nodes: list[Node]) -> dict[str, Any]:
    """What was annotated on all nodes of a call of a module: it is said of the call."""
    first, *rest = [n.meta.get("custom") or {} for n in nodes]
    return {k: v for k, v in first.items() if all(k in other and other[k] == v for other in rest)}


def without_annotations(graph: Graph, said: dict[str, Any]) -> None:
    """Take from the nodes of a call what is said of the call."""
    for n in graph.nodes if said else ():
        left = {k: v for k, v in (n.meta.get("custom") or {}).items() if k not in said}
        n.meta = {k: v for k, v in n.meta.items() if k != "custom"} | ({"custom": left} if left else {})


class Outline:
    """The part of a program that one call of one module is."""

    def __init__(self, all: Outlines, fqn: str, depth: int):
        self.all, self.fqn, self.depth = all, fqn, depth
        self.graph, self.env = Graph(), {}
        self.root: dict[str, Any] = {}  # graphs that nodes take, by name

    def relative(self, name: str) -> str | None:
        """The name of something within this module; None for what lies outside."""
        for own in (self.fqn, self.all.aliases.get(self.fqn, self.fqn)):
            if not own:
                return name
            if name.startswith(f"{own}."):
                return name[len(own) + 1 :]
        return None

    def held(self, n: Node) -> str | None:
        """The name within this module of what a node reads."""
        if n.op != "get_attr":
            return None
        value = attribute(self.all.source, n.target)
        if isinstance(value, Module):
            return n.target
        for name in (n.target, *self.all.names.get(id(value), ())):
            own = self.relative(name)
            if own is not None:
                return own
        return None

    def value(self, n: Node) -> Node:
        if n not in self.env:
            name = self.held(n)
            if name is None and n in self.all.hidden:
                return self.fetch(n)
            if name is None:
                raise RuntimeError(f"unflatten: {n.name} is not known in {self.fqn or 'the program'}")
            self.env[n] = self.graph.get_attr(name)
            self.env[n].meta = dict(n.meta)
            value = attribute(self.all.source, n.target)
            if isinstance(value, Module):
                self.root[name] = value
        return self.env[n]

    def inner(self, n: Node) -> tuple[str, str, str, int] | None:
        """The call of a submodule that a node belongs to: its key, its module's name and class, and its place."""
        stack = list(n.meta.get("nn_module_stack", {}).items())
        for i in range(self.depth + 1, len(stack)):
            key, (fqn, kind) = stack[i]
            if fqn and (not self.fqn or fqn.startswith(f"{self.fqn}.")):
                return key, fqn, kind, i
        return None

    def add(self, nodes: list[Node]) -> None:
        """Take nodes over; those of submodules become calls of them."""
        at = 0
        while at < len(nodes):
            n, inner, end = nodes[at], self.inner(nodes[at]), at + 1
            if n.op in ("get_attr", "placeholder") and inner is not None:
                inner = None
            if inner is not None:
                while end < len(nodes) and self.inner(nodes[end]) == inner:
                    end += 1
                self.call(*inner, nodes[at:end])
            elif n.op != "get_attr":
                self.env[n] = self.graph.node_copy(n, self.value)
            at = end

    def call(self, key: str, fqn: str, kind: str, depth: int, nodes: list[Node]) -> None:
        """One stretch of a submodule's work."""
        part, inside = Outline(self.all, fqn, depth), set(nodes)
        taken = dict.fromkeys(a for n in nodes for a in n.all_input_nodes if a not in inside and part.held(a) is None)
        given = [n for n in nodes if any(user not in inside for user in n.users)]
        signature = self.all.signatures.get(call_name(fqn, key))
        if signature is None:
            self.plain_call(part, fqn, kind, list(taken), given, nodes)
        else:
            self.signed_call(part, signature, (fqn, kind), list(taken), given, nodes)

    def plain_call(self, part: Outline, fqn: str, kind: str, taken: list[Node], given: list[Node], nodes: list) -> None:
        for n in taken:
            part.env[n] = part.graph.placeholder(n.name)
            part.env[n].meta = dict(n.meta)
        part.add(nodes)
        results = [part.env[n] for n in given]
        part.graph.output(results[0] if len(results) == 1 else tuple(results))
        annotations = common_annotations(nodes)
        without_annotations(part.graph, annotations)
        _, number = self.all.module(fqn, part, InterpreterModule, kind)
        name = f"{self.relative(fqn)}@{number}" if number else self.relative(fqn)
        result = self.graph.call_module(name, tuple([self.value(n) for n in taken]))
        result.meta["val"] = given[0].meta.get("val") if len(given) == 1 else tuple([n.meta.get("val") for n in given])
        if annotations:
            result.meta["custom"] = annotations
        if len(given) == 1:
            self.env[given[0]] = result
            return
        for i, n in enumerate(given):
            self.env[n] = self.graph.call_function(getitem, (result, i))
            self.env[n].meta["val"] = n.meta.get("val")

    # ---- calls with preserved signatures
    def signed_call(
        self, part: Outline, signature: ModuleCallSignature, who: tuple[str, str], taken: list[Node], given: list[Node], nodes: list,
    ) -> None:  # fmt: skip
        fqn, kind = who
        inputs, outputs = ([self.all.value_of(a) for a in side] for side in (signature.inputs, signature.outputs))
        for value, described in zip(inputs, signature.inputs, strict=True):
            placeholder = part.graph.placeholder(described.name or "constant")
            placeholder.meta["val"] = value.meta.get("val") if isinstance(value, Node) else value
            if isinstance(value, Node):
                part.env.setdefault(value, placeholder)
        for n in taken:
            if n not in part.env and n not in self.all.hidden:
                self.keep(n)
        part.add(nodes)
        for n in given:
            if n not in outputs:
                part.keep(n)
        for v in outputs:  # what it only passes on
            if isinstance(v, Node) and v not in part.env and part.held(v) is None and v not in self.all.hidden:
                self.keep(v)
        results = tuple([part.value(v) if isinstance(v, Node) else v for v in outputs])
        part.graph.output(results)
        names = list(signature.forward_arg_names or ())
        part.graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(names, signature.in_spec, signature.out_spec)))
        module, _ = self.all.module(fqn, part, SignedModule, kind)
        keywords = len(signature.in_spec.children()[1].entries())
        module.argument_names, module.keyword_names = names, names[len(names) - keywords :] if keywords else []
        self.all.calls.setdefault(fqn, []).append(module)
        args, kwargs = self.structure([self.value(v) if isinstance(v, Node) else v for v in inputs], signature.in_spec)
        result = self.graph.call_module(self.relative(fqn), args, kwargs)
        result.meta["val"] = tuple([v.meta.get("val") if isinstance(v, Node) else v for v in outputs])
        self.take_results(result, signature.out_spec, outputs, set(nodes))

    def keep(self, n: Node) -> None:
        """Put a value aside for parts that cannot be given it."""
        node = self.graph.call_function(Keep(self.all.kept, n.name), (self.value(n),))
        node.meta["val"] = None
        self.all.hidden.add(n)

    def fetch(self, n: Node) -> Node:
        self.env[n] = self.graph.call_function(Fetch(self.all.kept, n.name), ())
        self.env[n].meta = {k: v for k, v in n.meta.items() if k == "val"}
        return self.env[n]

    def structure(self, leaves: list, spec: Any) -> tuple[tuple, dict]:
        """Arguments of nodes, in the structure of a call."""
        args, kwargs = tree.tree_unflatten(leaves, spec)
        if plain((args, kwargs)):
            return args, kwargs
        made = self.graph.call_function(Unflattened(spec), tuple(leaves))
        made.meta["val"] = None
        parts = [self.graph.call_function(getitem, (made, i)) for i in (0, 1)]
        return (
            tuple([self.graph.call_function(getitem, (parts[0], i)) for i in range(len(args))]),
            {k: self.graph.call_function(getitem, (parts[1], k)) for k in kwargs},
        )

    def take_results(self, result: Node, spec: Any, outputs: list, inside: set[Node]) -> None:
        """The results of a call, by their places in its structure."""
        flat = None
        for i, n in enumerate(outputs):
            if not isinstance(n, Node) or n not in inside or n in self.env:
                continue
            if spec.is_leaf():
                self.env[n] = result
                result.meta["val"] = n.meta.get("val")
                return
            if flat is None:
                flat = self.graph.call_function(tree.tree_leaves, (result,))
                flat.meta["val"] = result.meta["val"]
            self.env[n] = self.graph.call_function(getitem, (flat, i))
            self.env[n].meta["val"] = n.meta.get("val")

    def described(self) -> tuple:
        """What the graph does, to be compared."""
        place = {n: i for i, n in enumerate(self.graph.nodes)}
        number = lambda v: ("node", place[v]) if isinstance(v, Node) else (type(v).__name__, repr(v))
        rows = []
        for n in self.graph.nodes:
            target = n.target if isinstance(n.target, str) and n.op != "placeholder" else ""
            what = id(self.root[n.target]) if n.op == "get_attr" and n.target in self.root else target
            if n.op == "call_function":
                what = (type(n.target), n.target.name) if isinstance(n.target, Keep) else n.target
            leaves, spec = tree.tree_flatten((n.args, dict(n.kwargs)) if n.op != "placeholder" else ())
            rows.append((n.op, what, tuple(map(number, leaves)), spec))
        return tuple(rows)


def origin(n: Node) -> Node:
    """The tensor that a node gives back after writing it."""
    while n.op == "call_function" and isinstance(n.target, Operator) and gives_back_first(n.target):
        n = n.args[0]
    return n


def plain(value: Any) -> bool:
    """Whether the arguments of a node can hold a structure as it is."""
    if type(value) in (tuple, list):
        return all(map(plain, value))
    if type(value) is dict:
        return all(type(k) is str and plain(v) for k, v in value.items())
    return isinstance(value, (Node, int, float, str, bool, complex, type(None))) and not isinstance(value, Tensor)


def attribute(module: Any, path: str) -> Any:
    """What a dotted name stands for."""
    for part in path.split("."):
        module = getattr(module, part)
    return module
