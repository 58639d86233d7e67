"""Recording operators into a graph, from below autograd.

`GraphTrace` is a dispatch mode: every operator that reaches it becomes a `call_function` node whose target is the
operator, and the results are marked with that node. Gradients are computed by the same operators, so a function that
calls `backward` gives one graph of both passes. What comes in besides the inputs (tensors that the function closes
over, tensors made of Python data) becomes an attribute of the graph's module, met at most once each.

A tensor's node is kept on the tensor, under the trace that made it (`marks_of`), and goes along when autograd makes
another tensor object of the same value. Symbolic numbers have an expression in symbols instead; nodes for it are made
where an operator needs the number.
"""

from __future__ import annotations

import operator
import os
import sys
from bisect import bisect
from typing import Any

from ...core import modes
from ...core.device import contiguous_format
from ...core.modes import ambient
from ...core.node import AccumulateGrad, next_sequence, requires_grad
from ...core.size import Size
from ...core.source import GENERATED
from ...core.symbolic import sym_not
from ...core.tensor import DISPATCH_SUBCLASS, FAKE, LAYOUTS, Tensor, stride_of
from ...graph import Graph, Node, traceback
from ...graph.lines import stack_behind
from ...graph.metadata import facts_without_data
from ...graph.node import has_side_effect
from ...ops.make.factories import format_of
from ...ops.make.lifting import lift_fresh, lift_fresh_copy, local_scalar_dense
from ...ops.system import dispatch as dispatching
from ...ops.system.operator import Operator, find
from ...ops.system.overrides import TorchDispatchMode, call_form
from ..fake.mode import FakeTensorMode, unset_fake_temporarily
from ..shapes.relations import Relation, negate
from .subclasses import is_wrapper, layout_of, parts_of, rebuilt, taken_by_wrappers

PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
NEVER = AccumulateGrad.sequence  # the sinks of gradients stand for no call


class UnexpectedFake(AssertionError, RuntimeError):
    """A fake tensor in a traced function that it was not given, and did not make."""


class UnknownNumber(RuntimeError):
    """A graph needs a number that nothing in it shows."""


def marks_of(t: Tensor) -> dict:
    """What traces know of a tensor: trace -> its node there (or whatever a mode keeps under its own key)."""
    return t.__dict__.get("trace_marks") or _NOTHING


_NOTHING: dict = {}


def mark(t: Tensor, key, value) -> None:
    """Note something on a tensor; objects that autograd makes of the same value carry it along."""
    t.__dict__["trace_marks"] = {**(t.__dict__.get("trace_marks") or _NOTHING), key: value}


def current_value(t: Tensor) -> Tensor:
    """What a tensor holds now, where a functionalization that has ended wrote to its memory."""
    for mode in t._memory.__dict__["written"]:
        if mode not in ambient.dispatch_modes and not mode.active:
            return mode.value(t)
    return t


# What a trace says of a storage: it knows tensors, and not which of them lie there.
NO_STORAGE = (
    "set_() from a storage, where a graph is traced, of memory on which no input and no view lies: use set_() from the tensor that has "
    "the storage"
)


@has_side_effect
def take_memory(target: Tensor, source: Tensor) -> Tensor:
    """`target.data = source`, as a call."""
    target.data = source
    return target


class Composition:
    """In a table of decompositions: a composite operator's own body."""

    def __init__(self, op: Operator):
        self.op = op

    def __call__(self, *args, **kwargs):
        return self.op(*args, **kwargs)


class GraphTrace(TorchDispatchMode):
    """Records what is called while it is active. `graph` and `constants` (attribute name -> tensor) are the result."""

    refuses_data = False  # whether, without fakes, Python may not read what tensors hold
    body_names: dict[str, str] = {}  # what graphs of functions are called, where it is not as operators say
    whole = False  # whether composite operators that the table of decompositions does not name are kept as they are
    partitioned = False  # whether what is to be computed again is decided later, by tags on the nodes (`tagging`)

    def __init__(
        self, *, fake_mode: FakeTensorMode | None = None, decompositions: dict | None = None, stacks: bool = True
    ):
        super().__init__()
        self.graph = Graph()
        self.around = len(ambient.tasks)
        self.constants: dict[str, Any] = {}
        self.fake_mode = fake_mode
        self.snapshots = fake_mode or FakeTensorMode(allow_non_fake_inputs=True)
        self.decompositions = decompositions or {}
        self.stacks = stacks
        self.body_numbers: dict[str, int] = {}  # how many graphs of functions have a name so far
        self.symbols: dict = {}  # symbol -> the function that makes (or gives) its node
        self.expressions: dict = {}  # symbolic expression -> node
        self.steps_of_numbers: dict = {}  # function and arguments, on the way to an expression -> node
        self.numbers: list[int] = []  # sequence numbers of the forward's nodes, and where each was called
        self.forward: list[str | None] = []
        self.constant_nodes: set[Node] = set()  # of single numbers that are the same whatever the inputs are
        self.lifted: dict[int, tuple] = {}  # id of a constant tensor -> (the tensor, its node)

    # ---- values and nodes
    def track(self, value, node: Node) -> None:
        """Say that `node` gives `value`: a tensor, a number, or a sequence of them."""
        if isinstance(value, Tensor):
            mark(value, self, node)
            self.annotate(node, value)
            self._note_symbols(value, node)
        elif getattr(value, "is_symbolic", False):
            node.meta["val"] = value
            self._note_symbol(value, lambda: node)
        elif isinstance(value, (tuple, list)):
            node.meta["val"] = (
                type(value)([self.snapshot(v) for v in value])
                if not hasattr(value, "_fields")
                else tuple(self.snapshot(v) for v in value)
            )
            for i, v in enumerate(value):
                if isinstance(v, (Tensor, tuple, list)) or getattr(v, "is_symbolic", False):
                    self.track(v, self.create_node(operator.getitem, (node, i), {}, "getitem"))
        else:
            node.meta["val"] = value

    def annotate(self, node: Node, value: Tensor) -> None:
        """Say on a node what its tensor is: as a tensor without data, and as plain facts, which passes over graphs read."""
        node.meta["val"] = known = self.snapshot(value)
        if known._keys & FAKE and not known._keys & LAYOUTS and not is_wrapper(known):
            node.meta["tensor_meta"] = facts_without_data(known, value.requires_grad)

    def snapshot(self, value):
        """What a node's `meta["val"]` keeps of a value: no data, no history, nothing that a later write could change."""
        if not isinstance(value, Tensor):
            return value
        if value._keys & FAKE:
            result = value.shallow(storage=False)
            result._autograd = None
            return result
        if is_wrapper(value):
            return rebuilt(layout_of(value), iter([self.snapshot(p) for p in parts_of(value)]))
        if value._array.__class__.__name__ not in ("ndarray", "Geometry"):
            return value.detach()
        return self.snapshots.make(tuple(value._array.shape), stride_of(value), value.dtype, value.device)

    def node_of(self, t: Tensor) -> Node:
        """The node of a tensor; one that the trace has not met becomes a constant."""
        if t._memory is not None and "written" in t._memory.__dict__:
            t = current_value(t)
        node = marks_of(t).get(self)
        return node if node is not None else self.constant(t)

    def constant(self, t: Tensor) -> Node:
        """An attribute of the graph's module that holds a tensor from outside."""
        known = self.lifted.get(id(t))
        if known is None:
            if t._keys & FAKE and self.fake_mode is not None and t.__dict__["fake_mode"] is self.fake_mode:
                raise UnexpectedFake(
                    f"Unexpected fake: a fake tensor of shape {list(t.shape)} that is no input of the traced function, and was not made in it, was used there"
                )
            name = f"_tensor_constant{sum(isinstance(c, Tensor) for c in self.constants.values())}"
            self.constants[name] = t
            node = self.graph.create_node("get_attr", name, (), {}, name=name)
            self.annotate(node, t)
            known = self.lifted[id(t)] = (t, node)
        return known[1]

    def _note_symbols(self, t: Tensor, node: Node) -> None:
        for dim, size in enumerate(t._array.shape):
            if size.__class__ is not int and getattr(size, "is_symbolic", False):
                self._note_symbol(size, lambda d=dim: self.graph_number("sym_size.int", node, d))
        if t._array.__class__.__name__ == "Geometry":
            for dim, step in enumerate(t._array.stride):
                if step.__class__ is not int and getattr(step, "is_symbolic", False):
                    self._note_symbol(step, lambda d=dim: self.graph_number("sym_stride.int", node, d), False)
        if getattr(t._offset, "is_symbolic", False):
            self._note_symbol(t._offset, lambda: self.graph_number("sym_storage_offset.default", node), False)

    def _note_symbol(self, number, make, computed: bool = True) -> None:
        """Remember where a symbol's value can be read. Computed strides are no such place: dimensions of size 0 or 1 have any."""
        expr = number.node.expr
        if not hasattr(expr, "is_symbol"):  # already known to be one number
            return
        if expr.is_symbol:
            self.symbols.setdefault(expr, make)
        elif computed:
            self.expressions.setdefault(expr, make)

    def graph_number(self, name: str, *args) -> Node:
        return self.create_node(find(name), args, {})

    def number(self, value) -> Node | Any:
        """The node of a symbolic number, made of the sizes it is computed from; a known number as it is."""
        expr = value.node.expr
        return self._number_node(expr, value) if hasattr(expr, "is_symbol") else expr

    def _number_node(self, expr, value=None) -> Node | Any:
        known = self.expressions.get(expr)
        if known is None or callable(known):
            if known is not None:
                result = known()
            elif expr.is_symbol:
                result = self.symbols[expr]() if expr in self.symbols else self._solved(expr)
            elif isinstance(expr, Relation) and negate(expr) in self.expressions:
                result = self._part(sym_not, self._number_node(negate(expr)))
            else:
                result = expr.build(self._number_node, self._part)
            self.expressions[expr] = known = result
            if isinstance(result, Node) and value is not None:
                result.meta.setdefault("val", value)
        return known

    def _solved(self, symbol) -> Node:
        """The node of a symbol that is seen only inside other numbers, such as a size of `2 * n + 1`."""
        env = self.fake_mode.shape_env if self.fake_mode is not None else None
        for seen in [*self.expressions, *self.symbols]:
            expr = env.replace(seen) if env is not None else seen
            terms = getattr(expr, "terms", {})
            if (symbol,) in terms and terms.keys() <= {(symbol,), ()}:
                result = self._number_node(seen)
                if () in terms:
                    result = self._compute(operator.sub, (result, terms[()]))
                return self._compute(operator.floordiv, (result, terms[symbol,])) if terms[symbol,] != 1 else result
        raise UnknownNumber(f"the graph needs the number {symbol}, which none of its inputs and results shows")

    def _part(self, function, *parts):
        """A step on the way to a number: of nodes that there are already, by the node that there is."""
        key = (function, *[(type(p), p) for p in parts])
        if key not in self.steps_of_numbers:
            self.steps_of_numbers[key] = self._compute(function, parts)
        return self.steps_of_numbers[key]

    def _compute(self, function, parts: tuple) -> Node:
        return self.create_node(function, parts, {})

    def argument(self, value):
        """A call's argument as a node's argument."""
        if isinstance(value, Tensor):
            return self.node_of(value)
        if value.__class__ in (list, tuple):
            return type(value)([self.argument(v) for v in value])
        if isinstance(value, Size):
            return tuple([self.argument(v) for v in value])
        if value.__class__ is dict:
            return {k: self.argument(v) for k, v in value.items()}
        if getattr(value, "is_symbolic", False):
            return self.number(value)
        return value

    # ---- recording
    def create_node(self, target, args: tuple, kwargs: dict, name: str | None = None) -> Node:
        node = self.graph.create_node("call_function", target, args, kwargs, name=name)
        current = traceback.current_meta
        if current:
            node.meta.update(current)
        in_backward = (
            len(ambient.tasks) > self.around
        )  # one that the trace runs: it may itself be made while another runs
        if in_backward:
            node.meta["partitioner_tag"] = "is_backward"
            self._of_forward(node)
        if self.stacks and "stack_trace" not in node.meta:
            where = self.place()
            if where is not None:
                node.meta["stack_trace"] = where
        if not in_backward:
            self._as_forward(node)
        return node

    def place(self) -> str | None:
        """The line of the user's code that is being traced."""
        return user_stack()

    def _as_forward(self, node: Node) -> None:
        """Number a node of the forward: what autograd records for it gets the numbers up to the next node's."""
        number = node.meta["seq_nr"] = next_sequence()
        self.numbers.append(number)
        self.forward.append(node.meta.get("stack_trace"))

    def _of_forward(self, node: Node) -> None:
        """Give a node of the backward the number and the user's line of the call whose gradient it computes."""
        running = ambient.tasks[-1].node
        at = bisect(self.numbers, running.sequence) - 1 if running is not None and running.sequence < NEVER else -1
        if at >= 0:
            node.meta["seq_nr"] = self.numbers[at]
            if self.forward[at] is not None:
                node.meta.setdefault("stack_trace", self.forward[at])

    def handle(self, op: Operator, args: tuple):
        """Run an operator below this mode and record it."""
        taken = NotImplemented if self._knows_whole(op, args) else taken_by_wrappers(self, op, args)
        if taken is not NotImplemented:
            return taken
        decomposed = self.decompositions.get(op)
        if decomposed is not None:
            with self:
                positional, keywords = call_form(op, args)
                result = decomposed(*positional, **keywords)
            if result is not NotImplemented:
                return result
        if op in SPECIAL:
            return SPECIAL[op](self, op, args)
        return self.record(op, args)

    def _knows_whole(self, op: Operator, args: tuple) -> bool:
        """Whether each tensor of a subclass is a value of the graph, and not made of tensors that may be."""
        wrapped = [t for t in op.tensors(args) if t._keys & DISPATCH_SUBCLASS]
        return bool(wrapped) and all(self in marks_of(t) and not is_wrapper(t) for t in wrapped)

    def composite(self, op: Operator, args: tuple):
        """A composite operator: by the table, or whole, or (NotImplemented) by its body."""
        rule = self.decompositions.get(op)
        if isinstance(rule, Composition) or not self.decompositions and not self.whole:
            return NotImplemented
        if rule is not None:
            positional, keywords = call_form(op, args)
            return rule(*positional, **keywords)
        if not self.whole or any(requires_grad(t) for t in op.tensors(args)) or self.shares_memory(op, args):
            return NotImplemented
        return dispatching.autograd_layer(op, args)

    def shares_memory(self, op: Operator, args: tuple) -> bool:
        """Whether a result of a composite operator is (a view of) an argument, or one is written: tried on other fakes."""
        mode, may_alias = self.fake_mode, any(r.alias is not None for r in op.schema.returns)
        if op.schema.is_mutable or may_alias or mode is None or ambient.mode & modes.TRANSFORM:
            return True
        given: list[Tensor] = []

        def fresh(value):
            if not isinstance(value, Tensor):
                return tuple([fresh(v) for v in value]) if value.__class__ is tuple else value
            given.append(mode.make(tuple(value._array.shape), stride_of(value), value.dtype, value.device))
            return given[-1]

        before, ambient.dispatch_modes = ambient.dispatch_modes, [mode]
        try:
            with modes.masked(modes.GRAD):
                out = op.body(*[fresh(a) for a in args])
        except RuntimeError:
            return True
        finally:
            ambient.dispatch_modes = before
        results = [t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, Tensor)]
        return any(r is g or r._memory is not None and r._memory is g._memory for r in results for g in given)

    def higher_order(self, op, args: tuple, kwargs: dict):
        """An operator that takes functions."""
        return op.trace_rule(self, *args, **kwargs)

    def record(self, op: Operator, args: tuple):
        self.refuse_data(op, args)
        positional, keywords = call_form(op, args)
        nodes = tuple([self.argument(a) for a in positional])
        named = {k: self.argument(v) for k, v in keywords.items()} if keywords else keywords
        out = dispatching.autograd_layer(op, args) if op.body is None else op.body(*args)
        node = self.create_node(op, nodes, named, op.name)
        known = bool(self.constant_nodes) and self._is_constant(op, args)
        self.track(out, node)
        if known:
            self._note_constants(out)
        return out

    def _is_constant(self, op: Operator, args: tuple) -> bool:
        """Whether a call computes with constants alone, and gives the same each time."""
        known = all(marks_of(t).get(self) in self.constant_nodes for t in op.tensors(args))
        if op.schema.is_mutable and not known:
            self.constant_nodes.clear()  # other tensors may show the memory that was written
        tags = op.tags if op.inplace_of is None else (*op.tags, *op.inplace_of.tags)
        return known and bool(op.tensors(args)) and "nondeterministic_seeded" not in tags

    def _note_constants(self, out) -> None:
        """Remember single numbers that are computed of constants alone: what Python reads of them is no data of the program's."""
        for t in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(t, Tensor) and t.numel() == 1:
                self.constant_nodes.add(marks_of(t)[self])

    def refuse_data(self, op: Operator, args: tuple) -> None:
        """Python gets a value out of a tensor that is traced on its data: a graph would hold the value of this example."""
        if self.fake_mode is not None or not self.refuses_data or op not in READS_DATA:
            return
        nodes = [node for t in op.tensors(args) if (node := marks_of(t).get(self)) is not None]
        if any(node not in self.constant_nodes for node in nodes):
            raise RuntimeError(
                f"It appears that you're trying to get value out of a tracing tensor with {op} - erroring out! It's likely that this is caused by "
                "data-dependent control flow or similar.  It may be possible to trace this with dynamic shapes; try setting "
                "tracing_mode='symbolic' in your make_fx call."
            )

    def set_memory(self, target: Tensor, source: Tensor, op: Operator | None = None) -> None:
        """A tensor takes over another's memory, when the graph runs too: by an operator, or (None) by an assignment to `.data`."""
        node = self.create_node(op or take_memory, (self.node_of(target), self.node_of(source)), {}, "set_")
        self.annotate(node, source)
        mark(target, self, node)

    def set_storage(self, target: Tensor, storage, shape: tuple, stride: tuple, offset: int) -> None:
        raise NotImplementedError(NO_STORAGE)

    def resize_storage(self, target: Tensor, nbytes: int) -> None:
        """The memory under a tensor gets another number of bytes, when the graph runs too."""
        op = find("inductor::resize_storage_bytes_.default")
        self.create_node(op, (self.node_of(target), self.argument(nbytes)), {}, "resize_storage_bytes_")

    def resize(self, target: Tensor, shape: tuple, stride: tuple) -> None:
        """A tensor gets another shape, when the graph runs too."""
        if self not in marks_of(target) or id(target) in self.lifted:
            raise NotImplementedError(
                "Can't call metadata mutating ops where a graph is traced: resize_() of a tensor that is a constant of the graph, whose shape "
                "would be another at each run"
            )
        memory_format = format_of(shape, stride)
        if memory_format is None:
            raise NotImplementedError(
                f"Can't call metadata mutating ops where a graph is traced: resize_as_() to the strides {stride}, which no memory format has, "
                "is traced under functionalization only"
            )
        said = {} if memory_format is contiguous_format else {"memory_format": memory_format}
        node = self.create_node(
            find("resize_.default"), (self.node_of(target), [self.argument(s) for s in shape]), said, "resize_"
        )
        self.annotate(node, self.snapshots.make(shape, stride, target.dtype, target.device))
        mark(target, self, node)

    def __hash__(self) -> int:
        return id(self)


def _lift_fresh(trace: GraphTrace, op: Operator, args: tuple):
    """A tensor made of Python data: the data is a constant of the graph, copied at each run."""
    t = args[0]
    if marks_of(t).get(trace) is not None:
        return t
    with unset_fake_temporarily():
        source = trace.constant(t.clone())  # the program may write to its own
    out = dispatching.autograd_layer(op, args)
    if out is t:
        out = t.shallow()
    node = trace.create_node(lift_fresh_copy, (source,), {}, "lift_fresh_copy")
    if out.numel() == 1:
        trace.constant_nodes.add(node)
    trace.track(out, node)
    return out


def _number(trace: GraphTrace, op: Operator, args: tuple):
    """`item()`: a symbol's node where the number is symbolic; a plain number is a constant of the trace."""
    trace.refuse_data(op, args)
    source = trace.node_of(args[0]) if marks_of(args[0]).get(trace) is not None else None
    out = dispatching.autograd_layer(op, args)
    if getattr(out, "is_symbolic", False) and source is not None:
        node = trace.create_node(op, (source,), {})
        trace.track(out, node)
    return out


SPECIAL = {lift_fresh: _lift_fresh, local_scalar_dense: _number}
READS_DATA = {local_scalar_dense}


def user_stack() -> str | None:
    """The innermost lines of the user's code that led here, formatted as a traceback is."""
    frame = sys._getframe(3)
    while frame is not None and frame.f_code.co_filename.startswith((PACKAGE, GENERATED)):
        frame = frame.f_back
    if frame is None:
        return None
    behind = stack_behind(frame, frame.f_lasti)  # the code of a graph that was captured from the user's
    return behind if behind is not None else _line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


_lines: dict[tuple, str] = {}


def _line(file: str, line: int, name: str) -> str:
    known = _lines.get((file, line, name))
    if known is None:
        import linecache

        code = linecache.getline(file, line).strip()
        known = _lines[file, line, name] = f'  File "{file}", line {line}, in {name}\n    {code}\n'
    return known
