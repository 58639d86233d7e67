"""A graph as a function: native where there are loops for it, operator by operator where there are none.

`compile_graph(module)` gives a callable that takes what the module takes and returns what it returns. A graph that is lowered
whole is one call (see `runner`); others run in stages (see `stages`).

What always holds: where a call does not fit (other strides, a tensor subclass, an index out of bounds, somebody listening), the
same nodes run as operators, and give their own results and errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ..core import events
from ..core.logs import artifacts, logger
from ..core.modes import LISTENING, ambient
from ..graph.module import GraphModule
from ..graph.node import Node, map_arg
from ..runtime.build import CompileFailed, NoCompiler, afterwards, compiler
from ..runtime.cpu import readable
from .inference import of_inference
from .landing import landings
from .overlap import overlapped
from .runner import runner
from .segment import Operators, Segment
from .sizes import Sized, symbolic_inputs
from .stages import stages_of
from .transposes import untransposed

_warned = False


class Native:
    """A compiled graph. `source` is the C text, `native` whether no operator is left, `fallbacks` which ones are.

    `reasons` says, by the name of its node, why each of them has no loops.
    """

    def __init__(self, module: GraphModule):
        self.module = module
        self.stages, why = stages_of(module.graph, landings(module))
        self.segments = [s for s in self.stages if isinstance(s, Segment)]
        self.fallbacks = [str(n.target) for s in self.stages if isinstance(s, Operators) for n in s.nodes]
        self.reasons = {n.name: why[n] for s in self.stages if isinstance(s, Operators) for n in s.nodes}
        self.native = not self.fallbacks and len(self.segments) <= 1
        self.placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
        self.attributes = [n for n in module.graph.nodes if n.op == "get_attr"]
        self.output = module.graph.output_node().args[0]
        self.kind = type(self.output)
        self.flat = self.kind in (tuple, list) and all(isinstance(n, Node) for n in self.output)
        self.dying = last_uses(self.stages, module.graph.output_node())
        for stage, dying in zip(self.stages, self.dying, strict=True):
            stage.dying = dying
        self.run: Callable = self.in_stages
        # the same of a list, which may be emptied: an argument that the list alone has lives until its last use
        self.consume: Callable[[list], object] = self.staged

    @property
    def source(self) -> str:
        return "\n".join(s.source.text for s in self.segments)

    @property
    def kernels(self) -> list[str]:
        return [k for s in self.segments for k in s.source.kernels]

    @property
    def functions(self) -> list[str]:
        """The C text of the kernels alone."""
        return [f for s in self.segments for f in s.source.functions]

    def begin(self) -> None:
        """Let compilers begin: `build` waits for them."""
        for segment in self.segments:
            segment.begin()

    def give_up(self) -> None:
        """Run the graph operator by operator from now on."""
        self.stages, self.segments, self.native = [], [], False
        self.run, self.consume = self.general, lambda args: self.general(*args)

    def build(self) -> None:
        """Compile and load; from then on the graph can be called."""
        for segment in self.segments:
            segment.build()
        if self._one_call():
            self.run = run = runner(self, self.general)
            self.consume = lambda args: run(*args)
        elif self._direct():
            self.run, self.consume = self.segments[0].direct(self), self.segments[0].consuming(self)

    def _one_call(self) -> bool:
        """Whether the graph is one segment, of placeholders alone, that a function can be written for."""
        if not self.native or len(self.segments) != 1 or self.attributes:
            return False
        return self.segments[0].one_call and not self.segments[0].others

    def _direct(self) -> bool:
        """Whether the graph is one segment that is called with its arguments as they come."""
        if not self.native or len(self.segments) != 1 or self.attributes or self.segments[0].one_call:
            return False
        known = {*self.placeholders, *self.segments[0].results}
        flat = (self.output,) if isinstance(self.output, Node) else self.output
        return isinstance(flat, (tuple, list)) and all(isinstance(n, Node) and n in known for n in flat)

    def __call__(self, *args):
        return self.run(*args)

    def general(self, *args):
        """The same, operator by operator; in inference mode, by native code that is told of no such mode."""
        found = of_inference(self.run, args)
        return self.module(*args) if found is NotImplemented else found

    def recording(self, masked: Callable) -> Callable | None:
        """The same, called with recording on, where native code alone may run so; what it cannot do is left to `masked`, which
        switches recording off. None where there is no such code, or it does not give a tuple."""
        return runner(self, masked) if self._one_call() and isinstance(self.output, tuple) else None

    def in_stages(self, *args):
        return self.staged(list(args))

    def staged(self, args: list):
        if ambient.mode >= LISTENING:
            return self.general(*args)
        values: dict[Node, object] = dict(zip(self.placeholders, args, strict=True))
        args.clear()
        for node in self.attributes:
            values[node] = attribute(self.module, node.target)
        for stage, dying in zip(self.stages, self.dying, strict=True):
            stage.run(values)
            for node in dying:
                values.pop(node, None)
        if self.flat:
            return self.kind([values[n] for n in self.output])
        return map_arg(self.output, lambda n: values[n])


def attribute(module, path: str):
    for name in path.split("."):
        module = getattr(module, name)
    return module


def last_uses(stages: list, output: Node) -> list[list[Node]]:
    """Per stage, the values that nobody needs after it."""
    kept = set(output.all_input_nodes)
    result: list[list[Node]] = []
    for stage in reversed(stages):
        needed = {i for n in stage.nodes for i in n.all_input_nodes}
        made = (
            stage.wanted if isinstance(stage, Segment) else stage.nodes
        )  # what of it has a value of its own afterwards
        result.append(list((needed - set(stage.nodes) | set(made)) - kept))
        kept |= needed
    return result[::-1]


def compile_graph(module: GraphModule) -> Callable:
    """The module as native code; itself where nothing in it has loops, or there is no compiler (then with one warning)."""
    watched = symbolic_inputs(module)
    if overlapped(module.graph) | (bool(watched) and untransposed(module.graph)):
        module.recompile()
    return Sized(module, watched, compile_static) if watched else compile_static(module)


def lower_graph(module: GraphModule) -> Callable:
    """The module, which runs as it is: only its loops are written down, and whoever listens learns what has none."""
    watched = symbolic_inputs(module)
    return Sized(module, watched, lower_static) if watched else lower_static(module)


def lower_static(module: GraphModule) -> GraphModule:
    """As `lower_graph`, where all sizes are numbers."""
    lowered(module)
    return module


def lowered(module: GraphModule) -> Native:
    """The loops of a graph, and what has none, told to whoever listens."""
    with events.stage("lower"):
        result = Native(module)
    events.publish("lowered", program=result)
    return result


def compile_static(module: GraphModule) -> Callable:
    """As `compile_graph`, where all sizes are numbers. Inside `together` the graph may be called when that is over."""
    try:
        if not readable():
            raise NoCompiler("this Python lays its objects out in a way that native code does not read")
        compiler()
        result = lowered(module)
        if not result.segments:
            return module
        with events.stage("build"):
            result.begin()
    except (NoCompiler, CompileFailed) as error:
        _warn(error)
        return module
    afterwards(lambda: _finish(result))
    return result if result.segments else module


def _finish(result: Native) -> None:
    """Wait for compilers, and load what they made."""
    try:
        with events.stage("build"):
            result.build()
    except (NoCompiler, CompileFailed) as error:
        result.give_up()
        _warn(error)
        return
    events.publish("native", program=result)
    if artifacts["output_code"]:
        logger("output_code").debug("%s", result.source)


def _warn(error: NoCompiler | CompileFailed) -> None:
    global _warned
    if isinstance(error, CompileFailed):
        warnings.warn(f"compile: a graph runs operator by operator: {error}", RuntimeWarning, stacklevel=2)
    elif not _warned:  # once: it holds for every graph
        _warned = True
        warnings.warn(f"compile: graphs run operator by operator: {error}", RuntimeWarning, stacklevel=2)


__all__ = ["Native", "compile_graph", "lower_graph"]
