"""A run of a program, as a graph that tools read: `torch.jit._get_trace_graph`, which counters of operations ask for.

In: a module or function, and example arguments. Out: (graph, result). Nodes are the operators that Python called, in order,
whole (`aten::linear`, `aten::batch_norm`; convolutions as `aten::_convolution`), with their inputs and outputs; scopes are those
that hooks of modules push on the tracing state. Always holds: the program ran once, eagerly, and its result is the eager one.
Nothing runs such a graph: `torch.compile` and `torch.export` make those that do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...autograd.profiler.recorder import Recorder
from ...core import modes
from ...core.tensor import Tensor
from ...ops.system import dispatch as dispatching
from ...ops.system.operator import Operator

_MADE_OF = (
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
)  # never in a graph
_RENAMED = {"convolution": "_convolution"}
_LIBRARY_FLAGS = (False, False, True, True)  # how `_convolution` ends: what cuDNN may do


class TensorType:
    """What is known of a tensor value."""

    def __init__(self, t: Tensor):
        self._sizes, self._strides, self._dtype, self._device = list(t.shape), list(t.stride()), t.dtype, t.device

    def sizes(self) -> list[int]:
        return self._sizes

    def strides(self) -> list[int]:
        return self._strides

    def dim(self) -> int:
        return len(self._sizes)

    def dtype(self) -> Any:
        return self._dtype

    def scalarType(self) -> str:
        return self._dtype.scalar_name

    def device(self) -> Any:
        return self._device

    def kind(self) -> str:
        return "TensorType"


class PythonType:
    """The type of a constant or a list."""

    def __init__(self, name: str):
        self._name = name

    def kind(self) -> str:
        return self._name


class Value:
    """One input or output of nodes."""

    def __init__(self, graph: Graph, node: Node | None, kind: Any, constant: Any = None):
        self._node, self._type, self._constant = node, kind, constant
        self._name = graph.fresh_name()

    def node(self) -> Node | None:
        return self._node

    def type(self) -> Any:
        return self._type

    def debugName(self) -> str:
        return self._name

    def isCompleteTensor(self) -> bool:
        return isinstance(self._type, TensorType)

    def toIValue(self) -> Any:
        """The Python value of a constant; None for others."""
        return self._constant


class Node:
    """One operator, constant or list."""

    def __init__(self, kind: str, scope: str, inputs: Sequence[Value], pyname: str = ""):
        self._kind, self._scope, self._inputs, self._pyname = kind, scope, list(inputs), pyname
        self._outputs: list[Value] = []

    def kind(self) -> str:
        return self._kind

    def scopeName(self) -> str:
        return self._scope

    def pyname(self) -> str:
        return self._pyname

    def inputs(self) -> Iterator[Value]:
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        return iter(self._outputs)

    def inputsSize(self) -> int:
        return len(self._inputs)

    def outputsSize(self) -> int:
        return len(self._outputs)

    def output(self) -> Value:
        return self._outputs[0]

    # ---- attributes: the value of a constant
    def attributeNames(self) -> list[str]:
        return ["value"] if self._kind == "prim::Constant" and self._letter() else []

    def kindOf(self, name: str) -> str:
        """The letter of the method that reads an attribute."""
        return self._letter()

    def _letter(self) -> str:
        constant = self._outputs[0].toIValue()
        return next((k for kind, k in ((int, "i"), (float, "f"), (str, "s")) if isinstance(constant, kind)), "")

    def i(self, name: str) -> Any:
        return self._outputs[0].toIValue()

    f = s = i

    def __repr__(self) -> str:
        names = ", ".join(f"%{v.debugName()}" for v in self._outputs)
        return f"{names} = {self._kind}({', '.join(f'%{v.debugName()}' for v in self._inputs)}), scope: {self._scope}"


class Graph:
    """The nodes of a run, in order."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []
        self._names = 0

    def fresh_name(self) -> str:
        self._names += 1
        return str(self._names)

    def nodes(self) -> Iterator[Node]:
        return iter(self._nodes)

    def inputs(self) -> Iterator[Value]:
        return iter(self._inputs)

    def outputs(self) -> Iterator[Value]:
        return iter(self._outputs)

    def __repr__(self) -> str:
        lines = "\n".join(f"  {node!r}" for node in self._nodes)
        return f"graph({', '.join(f'%{v.debugName()}' for v in self._inputs)}):\n{lines}"


class TracingState:
    """The trace that is being made: hooks of modules say in whose call operators run."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.scopes: list[str] = []

    def push_scope(self, name: str) -> None:
        self.scopes.append(name)

    def pop_scope(self) -> None:
        self.scopes.pop()

    def current_scope(self) -> str:
        return "/".join(self.scopes)


_running: list[TracingState] = []


def tracing_state() -> TracingState | None:
    """The state of the innermost `_get_trace_graph`."""
    return _running[-1] if _running else None


class _Run(Recorder):
    """Hears every operator that Python calls while it is entered."""

    def __init__(self, state: TracingState):
        super().__init__()
        self.state, self.depth = state, 0
        self.values: dict[int, Value] = {}
        self.kept: list[Tensor] = []  # so that no two tensors of a run have one id

    def __enter__(self) -> _Run:
        _running.append(self.state)
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        _running.remove(self.state)

    def call(self, op: Operator, args: tuple) -> Any:
        name = op.inplace_of.name + "_" if op.inplace_of is not None else op.name
        inner = self.depth > 0 or name in _MADE_OF
        if inner:
            return dispatching.dispatch(op, args, modes.PROFILE)
        shown = (*args, *_LIBRARY_FLAGS) if name == "convolution" else args
        kind = f"{op.namespace}::{_RENAMED.get(name, name)}"
        return self._record(kind, shown, dispatching.dispatch, op, args, modes.PROFILE)

    def apply(self, cls: type, args: tuple, kwargs: dict, run: Any) -> Any:
        if self.depth:
            return run(cls, args, kwargs)
        return self._record("prim::PythonOp", args, run, cls, args, kwargs, pyname=cls.__name__)

    def _record(self, kind: str, args: tuple, run: Any, *given: Any, pyname: str = "") -> Any:
        node = Node(kind, self.state.current_scope(), [self._value(a) for a in args], pyname)
        self.depth += 1
        try:
            result = run(*given)
        finally:
            self.depth -= 1
        self.state.graph._nodes.append(node)
        for t in result if isinstance(result, (tuple, list)) else (result,):
            node._outputs.append(self._defined(t, node) if isinstance(t, Tensor) else self._constant(t))
        return result

    def _defined(self, t: Tensor, node: Node | None) -> Value:
        """A new value for a tensor: what a node gives, or an input of the graph."""
        value = self.values[id(t)] = Value(self.state.graph, node, TensorType(t))
        self.kept.append(t)
        return value

    def _value(self, a: Any) -> Value:
        if isinstance(a, Tensor):
            return self.values[id(a)] if id(a) in self.values else self._input(a)
        if isinstance(a, (tuple, list)):
            node = Node("prim::ListConstruct", self.state.current_scope(), [self._value(v) for v in a])
            return self._output_of(node, PythonType("ListType"))
        return self._constant(a)

    def _input(self, t: Tensor) -> Value:
        value = self._defined(t, None)
        self.state.graph._inputs.append(value)
        return value

    def _constant(self, value: Any) -> Value:
        node = Node("prim::Constant", self.state.current_scope(), [])
        return self._output_of(node, PythonType(f"{type(value).__name__.capitalize()}Type"), value)

    def _output_of(self, node: Node, kind: Any, constant: Any = None) -> Value:
        self.state.graph._nodes.append(node)
        node._outputs.append(Value(self.state.graph, node, kind, constant))
        return node._outputs[0]


def _get_trace_graph(
    f: Any, args: Any = (), kwargs: dict[str, Any] | None = None, strict: bool = True, *rest: Any
) -> tuple:
    """(graph, result) of a call; see the module."""
    given = args if isinstance(args, tuple) else (args,)
    with _Run(TracingState()) as run:
        for t in given:
            if isinstance(t, Tensor):
                run._input(t)
        result = f(*given, **(kwargs or {}))
    found = result if isinstance(result, (tuple, list)) else (result,)
    run.state.graph._outputs = [run.values[id(t)] for t in found if id(t) in run.values]
    return run.state.graph, result
