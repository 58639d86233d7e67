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
from ..trace.program import ProgramTrace
from .subgraph import Example, Joining, isolated


class SubProgram(ProgramTrace, Joining):
    """The program of one function. Tensors that are not its own are inputs."""

    def __init__(self, outer: ProgramTrace, free: list[Tensor]):
        super().__init__(outer.fake_mode, outer.stacks)
        if outer.body_names:  # graphs inside each other are numbered together
            self.body_names, self.body_numbers = outer.body_names, outer.body_numbers
        self.prepare(free)

    def operand(self, example: Example):
        """A new input, like an example."""
        value = example.fake(self.fake_mode)
        if isinstance(value, Tensor) and requires_grad(example.value):
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

    def making(self, t: Tensor) -> bool:
        return id(t) in self.lifted

    def run(self, f: Callable, inputs: list) -> None:
        at_start = ambient.mode & modes.GRAD
        with isolated([self.fake_mode], bool(at_start)), self:
            out = f(*inputs)
        self.finish_grad_mode(at_start)
        self.output(out)


def capture_functions(
    outer: ProgramTrace, functions: list[tuple[Callable, list[Example]]]
) -> tuple[list, list[Tensor]]:
    """Functions as graphs, all with the same free tensors; and these."""
    free: list[Tensor] = []
    traces = []
    for f, given in functions:
        trace = SubProgram(outer, free)
        trace.run(f, [trace.operand(e) for e in given])
        traces.append(trace)
    return [trace.module() for trace in traces], free


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
