"""What compiling a function comes to: its graphs, where they end and why, what each depends on, which operators of theirs native
code has no loops for.

`explain(f)(*args)` compiles and runs a function once and gives an `Explanation`, which prints as a report.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...core.layers import above
from ...graph import GraphModule
from .backends import lowered_only
from .compile import CompiledFunction, Segments


class GraphBreak(NamedTuple):
    """Where a graph ended: why, and at which line of the user's."""

    reason: str
    user_stack: str | None


@dataclass
class Explanation:
    """Graphs in the order in which they were made, with what ended them."""

    graphs: list[GraphModule] = field(default_factory=list)
    break_reasons: list[GraphBreak] = field(default_factory=list)
    out_guards: list[str] = field(default_factory=list)
    account: Any = None  # everything that the compiler told, for the page

    def html(self, file: str | os.PathLike | None = None) -> str:
        """The whole account as a page; also written to `file`, if one is named."""
        text = self.account.html()
        if file is not None:
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)
        return text

    @property
    def refusals(self) -> list:
        """The operators that native code has no loops for: each with its reason and the user's line."""
        return [] if self.account is None else self.account.refusals

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        return len(self.break_reasons)

    @property
    def ops_per_graph(self) -> list[list]:
        return [[n.target for n in g.graph.nodes if n.op.startswith("call_")] for g in self.graphs]

    @property
    def op_count(self) -> int:
        return sum(map(len, self.ops_per_graph))

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        for i, found in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {i}:", f"    Reason: {found.reason}", f"    User Stack: {found.user_stack}"]
        lines.append("Ops per Graph:")
        for i, ops in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {i}:", *(f"    {op}" for op in ops)]
        if self.refusals:
            lines.append("Not in Native Code:")
            lines += [f"  {refused}" for refused in self.refusals]
        lines.append("Guards:")
        lines += [f"  {guard}" for guard in self.out_guards]
        return "\n".join(lines)


class Explained(CompiledFunction):
    """A compiled function that keeps account."""

    def __init__(self, fn: Callable):
        self.account = Explanation()
        super().__init__(fn, self._keep)

    def _keep(self, graph: GraphModule, inputs: list) -> Callable:
        self.account.graphs.append(graph)
        return lowered_only(graph, inputs)

    def broke(self, reason: str, where: str | None) -> None:
        super().broke(reason, where)
        self.account.break_reasons.append(GraphBreak(reason, where))

    def uncaptured(self, reason: str) -> None:
        super().uncaptured(reason)
        self.account.break_reasons.append(GraphBreak(reason, None))


def explain(f: Callable, *given, **named):
    """`explain(f)(*args)`: an `Explanation` of compiling and running `f` on these arguments."""

    def run(*args, **kwargs) -> Explanation:
        compiled = Explained(f)
        with above.collecting() as compiled.account.account:
            compiled(*args, **kwargs)
        if isinstance(compiled.front, Segments):
            compiled.account.out_guards = compiled.front.conditions()
        return compiled.account

    return run(*given, **named) if given or named else run
