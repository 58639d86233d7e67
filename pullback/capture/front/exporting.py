"""`_dynamo.export`: one call of a function as a graph that stands by itself.

In: a function and the arguments of one call. Out: a graph module that is called as the function is and holds the tensors
that the function reached otherwise, and the conditions under which it was captured, in words. What always holds: given
arguments of other sizes, dtypes or values than those it was made for, where it reads them, the graph runs only if the function,
captured for them, is the same graph (`same_program`); otherwise it refuses them.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings
from collections.abc import Callable
from typing import NamedTuple

from ...core import modes, tree
from ...core.modes import ambient
from ...core.tensor import Tensor
from ...graph import Graph, GraphModule, Node, map_arg
from ...graph.tree_codegen import _PyTreeCodeGen, _PyTreeInfo
from ...nn.module import Module
from ..bytecode.binding import frame_of
from ..bytecode.outside import is_symbol
from ..bytecode.segment import Capture, Segment, Uncapturable
from ..shapes.environment import ShapeEnv
from ..trace.program import Unsupported
from .backends import lookup_backend
from .compile import CompiledFunction, UserError, entry_function
from .fakes import holds_fakes, refuse_hidden
from .guards import SIMPLE


class ExportResult(NamedTuple):
    """What `export` gives."""

    graph_module: GraphModule
    guards: list[str]


class Exported(NamedTuple):
    """A whole program, captured: its graph, the real tensors behind its inputs, and what it gives."""

    graph: Graph
    constants: dict[str, object]
    inputs: list
    sources: list[str]  # where the function found its inputs, in words
    results: list  # nodes and constants
    out_spec: object
    conditions: list[str]
    env: ShapeEnv  # in which sizes are symbols


def export(f: Callable, *given, aten_graph: bool = False, same_signature: bool = True, **options) -> Callable:
    """`export(f)(*args)`: (graph, guards) of one call; or, by its older form, `export(f, *args)`."""

    def run(*args, **kwargs) -> ExportResult:
        refuse_dataclasses("inputs", tree.tree_leaves((args, kwargs)))
        found = captured(f, args, kwargs)
        if not same_signature and not any(n.op.startswith("call_") for n in found.graph.nodes):
            raise AssertionError("Failed to produce a graph: the function computes nothing with tensors")
        return ExportResult(standalone(f, found, args, kwargs), found.conditions)

    return run(*given, **options) if given else run


def captured(f: Callable, args: tuple, kwargs: dict) -> Exported:
    """One call of a function as a graph; its sizes are symbols where the function allows that."""
    try:
        return _captured(f, args, kwargs, True)
    except Unsupported as error:
        if hasattr(error, "observed"):  # it is the program's own
            raise
        return _captured(f, args, kwargs, False)


def _captured(f: Callable, args: tuple, kwargs: dict, dynamic: bool) -> Exported:
    policy = CompiledFunction(f, lookup_backend("eager"), fullgraph=True, dynamic=dynamic)
    first, function = entry_function(f)
    frames = [frame_of(function, (*first, *args), kwargs)]
    sizes = policy.new_sizes()
    sizes.numbers = False  # numbers that the function is given are what they are
    try:
        return Segment(sizes).capture(frames, policy.compile, policy.broke, policy.escaped, ExportCapture)
    except Uncapturable as error:
        raise Unsupported(str(error)) from error


class ExportCapture(Capture):
    """A capture of a whole program of which the graph is wanted, and nothing that runs it."""

    def _entry(self, machine, value, ended: str | None, left: int) -> Exported:
        outside = self.world.outside
        if ended is not None:
            raise Unsupported(ended)
        for effect in self.world.journal.log:
            if effect.kind != "attribute":
                raise Unsupported(f"it changes Python state: {effect.kind}")
            warnings.warn("export: the function assigns to an attribute of an object outside of it: the graph does not", stacklevel=6)  # fmt: skip
        leaves, spec = tree.tree_flatten(value)
        refuse_dataclasses("outputs", leaves)
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                refuse_hidden(leaf)
        results = [self.trace.outside(v) if isinstance(v, Tensor) or is_symbol(v) else v for v in leaves]
        reals = {id(known.source): known.value for known in outside.known.values()}
        return Exported(
            self.trace.graph, dict(self.trace.constants), [reals.get(id(s)) for s in self.trace.inputs],
            [s.name for s in self.trace.inputs], results, spec,
            outside.conditions.words, self.trace.fake_mode.shape_env,
        )  # fmt: skip


def refuse_dataclasses(where: str, leaves: list) -> None:
    """An exported graph takes and gives containers that are taken apart; a dataclass is one only where it was registered."""
    for leaf in leaves:
        if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            raise UserError(
                f"It looks like one of the {where} with type `{type(leaf)}` is not supported or pytree-flattenable: register it, by "
                "torch.export.register_dataclass, or give what is in it"
            )


def standalone(f: Callable, found: Exported, args: tuple, kwargs: dict) -> GraphModule:
    """A graph of a function's own arguments, in their structure; other tensors that it reads are attributes."""
    flat, in_spec = tree.tree_flatten((args, kwargs))
    names = parameter_names(f, args, kwargs)
    graph, copies, attributes = Graph(), {}, dict(found.constants)
    given = [graph.placeholder(f"arg{i}") for i in range(len(flat))]
    check = AsExported(leaf_names(names, args, kwargs), flat)
    check.again = lambda values: _again(f, tree.tree_unflatten(values, in_spec), module)
    checked = graph.call_function(check, tuple(given))
    places = {id(a): i for i, a in reversed(list(enumerate(flat))) if isinstance(a, Tensor)}
    old = [n for n in found.graph.nodes if n.op == "placeholder"]
    places_of_inputs = dict(zip(old, found.sources, strict=True))
    for node, real in zip(old, found.inputs, strict=True):
        if id(real) in places:
            copies[node] = given[places[id(real)]]
        else:
            name = attribute_name(places_of_inputs[node], attributes)
            attributes[name] = real
            copies[node] = graph.get_attr(name)
        copies[node].meta = dict(node.meta)
    for node in found.graph.nodes:
        if node.op != "placeholder":
            copies[node] = graph.node_copy(node, copies.__getitem__)
    first = next((n.meta for n in found.graph.nodes if n.stack_trace is not None), {})
    for node in (checked, *[n for n in graph.nodes if n.op == "get_attr"]):  # they belong where the program begins
        for key in ("stack_trace", "nn_module_stack", "source_fn_stack"):
            if key in first:
                node.meta.setdefault(key, first[key])
    graph.output([copies[r] if isinstance(r, Node) else r for r in found.results])
    graph.eliminate_dead_code()
    fakes = [n.meta.get("val") for n in old]
    origins = [(places.get(id(real)), real) for real in found.inputs]
    check.fits = lambda values: found.env.evaluate_guards_for_args(
        fakes, [real if i is None else values[i] for i, real in origins], ignore_static=False
    )
    check.unread = {i for i, node in enumerate(given) if isinstance(flat[i], Tensor) and len(node.users) == 1}
    graph._codegen = _PyTreeCodeGen(_PyTreeInfo(names, in_spec, found.out_spec))
    module = GraphModule(attributes, graph)
    return module


def attribute_name(place: str, taken: dict) -> str:
    """The name under which a tensor that a function reached is kept: of the place where it was found."""
    stem = name = re.sub(r"\W", "_", re.sub(r"\._(?:buffers|parameters)\['(\w+)'\]", r".\1", place))
    count = 0
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    return name


def _again(f: Callable, call: tuple, module: GraphModule) -> bool:
    """Whether a function is the same graph for the arguments of another call."""
    try:
        found = captured(f, *call)
    except Unsupported:
        return False
    return same_program(module, standalone(f, found, *call))


def same_program(one: GraphModule, other: GraphModule) -> bool:
    """Whether two graphs do the same: call for call, with equal constants and the same tensors."""
    pairs: dict[Node, Node] = {}
    if len(one.graph.nodes) != len(other.graph.nodes):
        return False
    for a, b in zip(one.graph.nodes, other.graph.nodes, strict=True):
        pairs[b] = a
        if a.op != b.op or not _same_target(one, other, a, b):
            return False
        theirs = map_arg((b.args, dict(b.kwargs)), pairs.__getitem__)
        if not _same_constants((a.args, dict(a.kwargs)), theirs):
            return False
    return True


def _same_target(one: GraphModule, other: GraphModule, a: Node, b: Node) -> bool:
    if a.op in ("placeholder", "output") or isinstance(a.target, AsExported) and isinstance(b.target, AsExported):
        return True
    if a.op == "get_attr":
        x, y = getattr(one, a.target), getattr(other, b.target)
        return x is y or isinstance(x, GraphModule) and isinstance(y, GraphModule) and same_program(x, y)
    return a.target is b.target or a.target == b.target


def _same_constants(a, b) -> bool:
    """Whether arguments are the same nodes and equal constants, of the same types."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same_constants, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_same_constants(a[k], b[k]) for k in a)
    if isinstance(a, slice) and isinstance(b, slice):
        return _same_constants((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    return a is b or type(a) is type(b) and not isinstance(a, (Node, Tensor)) and a == b


def parameter_names(f: Callable, args: tuple, kwargs: dict) -> list[str]:
    """A name for each argument, by the function's parameters."""
    try:
        parameters = list(inspect.signature(f.forward if isinstance(f, Module) else f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "rest")
    return [named[i] if i < len(named) else f"{rest}_{i - len(named)}" for i in range(len(args))] + list(kwargs)


def leaf_names(names: list[str], args: tuple, kwargs: dict) -> list[str]:
    """A name for each leaf of the arguments: `L['x']`, `L['xs'][0]`."""
    values = zip(names, (*args, *kwargs.values()), strict=True)
    return [f"L[{name!r}]{path}" for name, value in values for path in _paths(value)]


def _paths(value) -> list[str]:
    """Where each leaf is inside a value, in the order of flattening."""
    if isinstance(value, dict):
        return [f"[{k!r}]{p}" for k in value for p in _paths(value[k])]
    if isinstance(value, (tuple, list)):
        return [f"[{i}]{p}" for i, v in enumerate(value) for p in _paths(v)]
    return [f".leaf{i}" for i in range(n)] if (n := len(tree.tree_leaves(value))) != 1 else [""]


def fact_of(a):
    """What a graph was made for, of an argument."""
    return (a.dtype, tuple(a.shape)) if isinstance(a, Tensor) else a


class AsExported:
    """Refuses arguments of other sizes, dtypes or values than those that a graph was made for: what it computes of them
    is not what the program would, unless that is the same graph for them."""

    has_effects = True

    def __init__(self, names: list[str], examples: list):
        self.names = names
        self.facts = [fact_of(a) for a in examples]
        self.__name__ = self.__qualname__ = "as_exported"
        self.__module__ = "capture"
        self.unread: set[int] = set()  # tensors that the graph does nothing with
        self.fits: Callable[[tuple], bool] | None = None  # whether sizes are such that the graph is right for them
        self.again: Callable[[list], bool] | None = None  # whether the program is this graph for other arguments too
        self.others: list[list] = []  # facts of arguments for which it is

    def __getstate__(self) -> dict:
        return {
            **self.__dict__,
            "fits": None,
            "again": None,
        }  # a graph that is kept elsewhere stands for one call alone

    def __deepcopy__(self, memo: dict) -> AsExported:
        return self

    def __call__(self, *args) -> None:
        error = self._mismatch(args)
        if error is None:
            return
        facts = [fact_of(a) for a in args]
        if any(_same_constants(facts, known) for known in self.others):
            return
        if self.again is None or ambient.mode & ~modes.GRAD or holds_fakes(list(args), 1) or not self.again(list(args)):
            raise error
        self.others.append(facts)

    def _mismatch(self, args: tuple) -> RuntimeError | None:
        """What is wrong with arguments, if they are not as those that the graph was made for."""
        for i, (name, a, fact) in enumerate(zip(self.names, args, self.facts, strict=True)):
            if type(fact) is tuple and isinstance(a, Tensor):
                if i in self.unread or (a.dtype, tuple(a.shape)) == fact:
                    continue
                if a.dtype is fact[0] and self.fits is not None and self.fits(args):
                    continue
                takes, not_this = (
                    f"a {dtype} tensor of size {list(size)}" for dtype, size in (fact, (a.dtype, a.shape))
                )
            else:
                if a is fact or isinstance(fact, SIMPLE) and type(a) is type(fact) and a == fact:
                    continue
                takes, not_this = "a tensor" if type(fact) is tuple else repr(fact), repr(a)
            return RuntimeError(
                f"the exported graph takes {takes} for {name}, not {not_this}: export the program again for such arguments"
            )
        return None
