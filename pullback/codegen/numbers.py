"""Numbers that each call of a graph brings along: a learning rate, a count of steps.

Native code reads them when it runs (see `Number`), wherever element-wise operators compute with them; so another learning
rate is no other program. What is computed of numbers alone is Python, before the native call, and so are views of arguments at
places that numbers say.

`loose(module)` are the arguments of that kind. `parted(module, numbers)` gives a module that takes what is computed of them as
arguments of its own, behind the others, and the function that computes it; `told_apart` those of which operators must know the
values. A number of which anything else is made (a size) is none of them: it is a constant, and another value is another program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.dtype import INT, finfo, iinfo
from ..core.tensor import Tensor, stride_of
from ..graph.graph import Graph
from ..graph.module import GraphModule
from ..graph.node import Node
from ..ops.family.pointwise import POINTWISE
from ..ops.lowering import NotLowerable
from ..ops.lowering.expressions import forget
from ..ops.system.operator import Operator
from .landing import WRITTEN
from .lower import NUMBERS, Lowering, is_number


def loose(module: GraphModule) -> set[Node]:
    """The arguments that are numbers, and only computed with."""
    values = [n.meta.get("val") for n in module.graph.nodes]
    if any(isinstance(t, Tensor) and t.device.type != "cpu" for t in values):
        return set()
    kept = _kept(module)
    return {n for n in module.graph.nodes if n.op == "placeholder" and is_number(n) and _is_loose(n, kept)}


def _kept(module: GraphModule) -> set[Node]:
    """The arguments that native code does not write over."""
    given = [n for n in module.graph.nodes if n.op == "placeholder"]
    written = set((module.meta.get(WRITTEN) or {}).values())
    return {n for k, n in enumerate(given) if k not in written}


def _is_loose(node: Node, kept: set[Node]) -> bool:
    """Whether a number is only computed with, and picks from arguments."""
    return all(
        _is_loose(u, kept) if _of_numbers(u) else _has_kind(node) and (_computes_with(u, node) or _picks(u, kept))
        for u in node.users
    )


def _of_numbers(node: Node) -> bool:
    """Whether a node computes a number of numbers, in Python."""
    if node.op != "call_function" or isinstance(node.target, Operator):
        return False
    return _is_flat(node) and all(n.meta.get("val") is None or _has_kind(n) for n in (node, *node.all_input_nodes))


def _has_kind(node: Node) -> bool:
    """Whether it is known which kind of number a node is: steps on the way to one do not say."""
    return getattr(node.meta.get("val"), "symbolic_type", None) in NUMBERS


def _is_flat(node: Node) -> bool:
    """Whether no argument of a node has others in it."""
    return set(node.all_input_nodes) == {a for a in (*node.args, *node.kwargs.values()) if isinstance(a, Node)}


def _picks(node: Node, kept: set[Node]) -> bool:
    """Whether a node is a view of an argument, of known sizes: only where it begins depends on numbers."""
    op, t = node.target, node.meta.get("val")
    if not isinstance(op, Operator) or not op.is_view or not isinstance(t, Tensor):
        return False
    tensors = [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), Tensor)]
    is_known = all(n.__class__ is int for n in (*t._array.shape, *stride_of(t)))
    return is_known and len(tensors) == 1 and tensors[0] in kept and _is_flat(node)


def _computes_with(node: Node, number: Node) -> bool:
    op = node.target
    is_plain = (
        isinstance(op, Operator) and op.namespace == "aten" and op.family is POINTWISE and not op.schema.is_mutable
    )
    return is_plain and any(a is number for a in (*node.args, *node.kwargs.values()))


@dataclass
class Parted:
    """`module` takes what `arithmetic` gives for all arguments behind them; `origins`: of which numbers each of its own is made."""

    module: GraphModule
    arithmetic: Callable[[tuple], tuple]
    origins: dict[Node, set[Node]]

    def told_apart(self) -> set[Node]:
        """The numbers with which an operator computes that has no loops, unless it knows their values."""
        forget()
        told = [n for n in self.origins if is_number(n) and any(map(_has_no_loops, n.users))]
        return {n for number in told for n in self.origins[number]}

    def called(self, compiled: Callable, otherwise: Callable) -> Callable:
        """What calls the module, compiled, with the arguments that it was parted from. Numbers that a tensor's dtype does not
        hold, which are an error in some operators, and those that are not finite, are left to `otherwise`."""
        arithmetic, given = self.arithmetic, [n for n in self.module.graph.nodes if n.op == "placeholder"]
        bounds = [(k, *_bounds(n)) for k, n in enumerate(given) if is_number(n) and n.users]

        def call(*args):
            every = (*args, *arithmetic(args))
            for k, low, high in bounds:
                if not low <= every[k] <= high:
                    return otherwise(*args)
            return compiled(*every)

        return call


def parted(module: GraphModule, numbers: set[Node]) -> Parted:
    """See the module's docstring."""
    kept = _kept(module)
    origins = {n: {n} for n in numbers}
    for n in module.graph.nodes:
        made_of = [i for i in n.all_input_nodes if not isinstance(i.meta.get("val"), Tensor)]
        if made_of and all(i in origins for i in made_of) and (_of_numbers(n) or _picks(n, kept)):
            origins[n] = set().union(*(origins[i] for i in made_of))
    made = [n for n in origins if n not in numbers and any(u not in origins for u in n.users)]
    graph, copies = Graph(), dict[Node, Node]()
    given = [n for n in module.graph.nodes if n.op == "placeholder"]
    for n in given:
        copies[n] = graph.node_copy(n)
    for n in made:
        copies[n] = graph.placeholder(n.name)
        copies[n].meta = dict(n.meta)
    for n in module.graph.nodes:
        if n not in copies and n not in origins:
            copies[n] = graph.node_copy(n, copies.__getitem__)
    result = GraphModule(module, graph)
    result.meta = dict(module.meta)
    arithmetic = _arithmetic([n for n in module.graph.nodes if n in origins and n not in numbers], given, made)
    return Parted(result, arithmetic, {copies[n]: o for n, o in origins.items() if n in copies})


def _bounds(number: Node) -> tuple[float, float]:
    """Between which values a number fits into what it is computed with."""
    own = NUMBERS[number.meta["val"].symbolic_type]
    values = [n.meta.get("val") for u in number.users for n in (u, *u.all_input_nodes)]
    kinds = {t.dtype for t in values if isinstance(t, Tensor)} | {own}
    infos = [iinfo(d) if d.category == INT else finfo(d) for d in kinds if d.category >= INT]
    return max(i.min for i in infos), min(i.max for i in infos)


def _arithmetic(nodes: list[Node], given: list[Node], made: list[Node]) -> Callable[[tuple], tuple]:
    """The function that computes some nodes, of all arguments of their graph."""
    names = {n: f"args[{k}]" for k, n in enumerate(given)} | {n: f"n{k}" for k, n in enumerate(nodes)}
    scope: dict[str, Any] = {f"f{k}": n.target for k, n in enumerate(nodes)}

    def text(a) -> str:
        if isinstance(a, Node):
            return names[a]
        name = f"c{len(scope)}"
        scope[name] = a
        return name

    lines = ["def arithmetic(args):"]
    for k, n in enumerate(nodes):
        arguments = [*map(text, n.args), *[f"{name}={text(a)}" for name, a in n.kwargs.items()]]
        lines.append(f"    n{k} = f{k}({', '.join(arguments)})")
    lines.append(f"    return ({''.join(f'{names[n]}, ' for n in made)})")
    exec("\n".join(lines), scope)
    return scope["arithmetic"]


def _has_no_loops(node: Node) -> bool:
    lowering = Lowering()
    for i in node.all_input_nodes:
        lowering.input(i)
    return isinstance(lowering.run_node(node), NotLowerable)
