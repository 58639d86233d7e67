"""Functions inside a captured program: as programs themselves, recorded above autograd.

In: the trace of the program, the functions that an operator takes, examples of their operands. Out: graphs that can still
be differentiated (switches of recording included), and the tensors they close over, which become operands.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager

from ...core import modes
from ...core.modes import ambient
from ...core.node import requires_grad
from ...core.tensor import Tensor, set_requires_grad
from ..trace.graph_trace import marks_of
from ..trace.program import ProgramTrace, UncapturedHigherOrderOpError
from ..trace.promises import asserted_inside
from .subgraph import Example, Joining, isolated

PACKAGE = __name__.partition(".")[0] + "."


class SubProgram(ProgramTrace, Joining):
    """The program of one function. Tensors that are not its own are inputs."""

    def __init__(self, outer: ProgramTrace, free: list[Tensor]):
        super().__init__(outer.fake_mode, outer.stacks)
        self.outer = outer
        if outer.body_names:  # graphs inside each other are numbered together
            self.body_names, self.body_numbers = outer.body_names, outer.body_numbers
        self.prepare(free)

    def count_effects(self) -> int:
        return self.outer.count_effects()

    def spoil(self) -> None:
        self.outer.spoil()

    def operand(self, example: Example):
        """A new input, like an example."""
        value = example.fake(self.fake_mode)
        if isinstance(value, Tensor) and (requires_grad(example.value) or example.tracked):
            set_requires_grad(value, True)
        self.track(value, self.placeholder())
        return value

    def lift(self, t: Tensor) -> Tensor:
        known = self.stand_ins.get(id(t))
        if known is None:
            known = self.stand_ins[id(t)] = Example(t).fake(self.fake_mode)
            if requires_grad(t):
                set_requires_grad(known, True)
            self.track(known, self.join(t))
        return known

    def _inside(self, value):
        if isinstance(value, Tensor):
            return value if marks_of(value).get(self) is not None else self.lift(value)
        return super()._inside(value)

    def constant(self, t: Tensor):
        return self.joined[id(t)][1] if id(t) in self.joined else super().constant(t)

    def argument(self, value):
        """A result may be a tensor from outside."""
        return super().argument(self._inside(value) if isinstance(value, Tensor) and not self.making(value) else value)

    def module(self):
        result = super().module()
        for node in result.graph.nodes:
            if node.op == "placeholder" and "val" in node.meta:
                node.meta["example_value"] = node.meta["val"]
        return result

    def making(self, t: Tensor) -> bool:
        return id(t) in self.lifted

    def run(self, f: Callable, inputs: list) -> None:
        at_start = ambient.mode & modes.GRAD
        with asserted_inside(self, in_words=True), isolated([self.fake_mode], bool(at_start)), self:
            out = f(*inputs)
        self.finish_grad_mode(at_start)
        self.output(out)


def capture_functions(
    outer: ProgramTrace, functions: list[tuple[Callable, list[Example]]], runs_once: bool = True
) -> tuple[list, list[Tensor]]:
    """Functions as graphs, all with the same free tensors; and these. Where each need not run exactly once per call, one
    that changes Python state is refused: the change would be made once, whatever happens."""
    free: list[Tensor] = []
    traces = []
    for f, given in functions:
        trace = SubProgram(outer, free)
        before = outer.count_effects(), None if runs_once else reachable_state(f)
        trace.run(f, [trace.operand(e) for e in given])
        if not runs_once and (outer.count_effects(), reachable_state(f)) != before:
            outer.spoil()
            raise UncapturedHigherOrderOpError(
                f"{getattr(f, '__name__', 'a function')} changes Python state, which a graph that runs it any number of times "
                "does not do"
            )
        traces.append(trace)
    return [trace.module() for trace in traces], free


def reachable_state(f: Callable) -> list[tuple]:
    """What a function may change of what it closes over, one step deep: the variables, containers and instances there. Of a
    function of this package, what the user's functions in it may change."""
    out: list[tuple] = []
    f = getattr(f, "function", f)  # as native code gets it, calling it goes back to the machine that captures
    ours = getattr(f, "__globals__", {}).get("__name__", "").startswith(PACKAGE)
    for cell in getattr(f, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # not filled yet
            continue
        if ours:
            out += reachable_state(value) if callable(value) else []
            continue
        if isinstance(value, dict):
            inside = tuple([(id(k), id(v)) for k, v in value.items()])
        elif isinstance(value, (list, set)):
            inside = tuple(map(id, value))
        else:
            own = getattr(value, "__dict__", {}) if not isinstance(value, (Tensor, type, Callable)) else {}  # type: ignore[arg-type]
            inside = tuple([(k, id(v)) for k, v in own.items()])
        out.append((id(value), inside))
    return out


@contextmanager
def paused_capture(trace: ProgramTrace):
    """Leave the program for a block: what is done there is not part of it."""
    at = ambient.captures.index(trace)
    inner, ambient.captures[at:] = ambient.captures[at:], []
    try:
        with modes.masked(modes.CAPTURE):
            yield
    finally:
        ambient.captures.extend(inner)
