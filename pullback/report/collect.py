"""Listening: what the compiler tells, as records.

`with collecting() as account:` gives an `Account`, which fills as functions are compiled inside and is whole when the block
ends. What always holds: records are text and numbers; after the block no tensor and no graph is kept alive.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from operator import getitem
from typing import Any

from ..core.events import is_compiling, listening
from ..graph import Graph, GraphModule, Node
from .advice import advised
from .kernels import Kernel, kernels_of, limits
from .memory import Alive, bytes_alive, size_of
from .places import line_of
from .walks import Walks


@dataclass
class GraphNode:
    """A node as people look at it. `line`: (file, line) of the user's code that it is of."""

    name: str
    op: str
    target: str
    inputs: list[str]
    value: str
    line: tuple[str, int] | None


@dataclass
class Refusal:
    """An operator that native code has no loops for: it runs as it is. `line`: (file, line) of the user's code."""

    operator: str
    reason: str
    line: tuple[str, int] | None

    def __str__(self) -> str:
        return f"{self.operator}: {self.reason}" + ("" if self.line is None else f" ({self.line[0]}:{self.line[1]})")


@dataclass
class GraphRecord:
    """A graph, and what became of it. `kind`: captured, joint, forward, backward, compiled backward, native."""

    number: int
    kind: str
    title: str
    nodes: list[GraphNode]
    function: str | None = None
    notes: list[str] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    memory: Alive | None = None


@dataclass
class FunctionRecord:
    """A compiled function: where its source is, where its graphs ended, what they depend on, why there are several."""

    name: str
    file: str | None
    first: int
    source: list[str]
    graphs: list[int] = field(default_factory=list)
    breaks: list[tuple[str, str | None]] = field(default_factory=list)  # (reason, where)
    guards: list[str] = field(default_factory=list)
    recompiles: list[str] = field(default_factory=list)


@dataclass
class Account:
    """Everything that was told, in order."""

    functions: list[FunctionRecord] = field(default_factory=list)
    graphs: list[GraphRecord] = field(default_factory=list)
    stages: dict[str, float] = field(default_factory=dict)
    walks: Walks = field(default_factory=Walks)  # backwards that the engine ran
    machine: dict[str, float] = field(default_factory=dict)  # what it can do at best: see `kernels.limits`

    def html(self, title: str = "What the compiler did") -> str:
        """The account as a page (see `page`)."""
        from .page import page

        return page(self, title)

    @property
    def refusals(self) -> list[Refusal]:
        """What native code has no loops for, each operator of a line once."""
        return list({str(r): r for g in self.graphs for r in g.refusals}.values())

    def as_data(self) -> dict[str, Any]:
        return {**asdict(self), "advice": advised(b for f in self.functions for b in f.breaks)}


class Collector:
    """The listener that fills an account."""

    def __init__(self, account: Account):
        self.account = account
        self.known: dict[int, FunctionRecord] = {}
        self.kept: list[Any] = []  # functions whose identity is a key above
        self.lowered: list[tuple[GraphRecord, Any]] = []  # loops, and the records of their graphs
        self.programs: list[tuple[GraphRecord, Any]] = []  # native code, whose kernels are timed at the end

    def __call__(self, kind: str, facts: dict[str, Any]) -> None:
        getattr(self, f"on_{kind}", lambda **_: None)(**facts)

    def on_stage(self, name: str, seconds: float) -> None:
        self.account.stages[name] = self.account.stages.get(name, 0.0) + seconds

    def on_captured(self, function: Any, graph: GraphModule) -> None:
        record = self._function(function)
        added = self._graph("captured", f"a graph of {record.name}", graph.graph, record.name)
        record.graphs.append(added.number)

    def on_broke(self, function: Any, reason: str, where: str | None) -> None:
        self._function(function).breaks.append((reason, where))

    def on_recompiled(self, function: Any, reason: str) -> None:
        self._function(function).recompiles.append(reason)

    def on_entered(self, function: Any, conditions: list[str]) -> None:
        known = self._function(function).guards
        known += [c for c in conditions if c not in known]

    def on_cut(self, joint: GraphModule, forward: GraphModule, backward: GraphModule) -> None:
        self._graph("joint", "forward and backward together", joint.graph).notes += cut_in_words(forward, backward)

    def on_backward(self, graph: GraphModule, reason: str) -> None:
        added = self._graph("compiled backward", "a backward that compiled autograd captured", graph.graph)
        added.notes.append(reason)

    def on_walked(self, nodes: list) -> None:
        if not is_compiling():  # else a stage differentiates to see what a backward would do
            self.account.walks.add(nodes)

    def on_lowered(self, program: Any) -> None:
        is_backward = any(n.meta.get("partitioner_tag") == "is_backward" for n in program.module.graph.nodes)
        kind = "backward" if is_backward else "forward"
        added = self._graph(kind, f"native code of a {kind}", program.module.graph)
        self.lowered.append((added, program))
        added.refusals = [
            Refusal(str(n.target), program.reasons[n.name], line_of(n))
            for n in program.module.graph.nodes
            if n.name in program.reasons
            and n.target is not getitem  # of which the operator that it takes apart is told
        ]

    def on_native(self, program: Any) -> None:
        added = next(record for record, known in self.lowered if known is program)
        self.programs.append((added, program))
        added.memory = bytes_alive(program.module.graph, program.segments)

    def finish(self) -> None:
        """Time the kernels, and let go of everything that is no record."""
        for record, program in self.programs:
            record.kernels = kernels_of(program)
        if self.programs:
            self.account.machine = dict(limits())
        self.lowered, self.programs, self.kept, self.known = [], [], [], {}

    # ---- records
    def _function(self, function: Any) -> FunctionRecord:
        known = self.known.get(id(function))
        if known is None:
            self.kept.append(function)
            known = self.known[id(function)] = _record_of(function)
            self.account.functions.append(known)
        return known

    def _graph(self, kind: str, title: str, graph: Graph, function: str | None = None) -> GraphRecord:
        nodes = [node_record(n) for n in graph.nodes]
        added = GraphRecord(len(self.account.graphs), kind, title, nodes, function)
        self.account.graphs.append(added)
        return added


def _record_of(function: Any) -> FunctionRecord:
    fn = inspect.unwrap(getattr(function, "fn", function))
    code = getattr(getattr(fn, "forward", fn), "__code__", None)
    try:
        lines, first = inspect.getsourcelines(code) if code is not None else ([], 0)
    except (OSError, TypeError):
        lines, first = [], 0
    file = code.co_filename if code is not None else None
    return FunctionRecord(function.name, file, first, [line.rstrip("\n") for line in lines])


def node_record(node: Node) -> GraphNode:
    return GraphNode(
        node.name, node.op, str(node.target), [i.name for i in node.all_input_nodes], shown_value(node.meta.get("val")), line_of(node)
    )  # fmt: skip


def shown_value(value: Any) -> str:
    """What a node gives, in short: `float32[8, 16]`."""
    if isinstance(value, (tuple, list)):
        return f"({', '.join(shown_value(v) for v in value)})"
    shape = getattr(value, "shape", None)
    if shape is None:
        return "" if value is None else str(value)
    return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(str, shape))}]"


def cut_in_words(forward: GraphModule, backward: GraphModule) -> list[str]:
    """What the forward keeps for the backward, and what the backward computes again."""
    inputs = [n for n in backward.graph.nodes if n.op == "placeholder" and not n.name.startswith("tangents")]
    kept = [n for n in inputs if not n.name.startswith("primals")]
    names = {n.name for n in forward.graph.nodes if n.op == "call_function"}
    again = [n.name for n in backward.graph.nodes if n.op == "call_function" and n.name in names]
    saved = sum(size_of(n) for n in kept)
    lines = [f"kept for the backward: {len(kept)} values, {saved:,} bytes, and {len(inputs) - len(kept)} inputs"]
    lines += [f"  {n.name}: {shown_value(n.meta.get('val'))}, {size_of(n):,} bytes" for n in kept]
    return [*lines, f"computed again in the backward: {', '.join(again) or 'nothing'}"]


@contextlib.contextmanager
def collecting() -> Iterator[Account]:
    """Keep account of everything that is compiled inside."""
    collector = Collector(Account())
    with listening(collector):
        yield collector.account
    collector.finish()
