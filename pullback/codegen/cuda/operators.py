"""Operators on a CUDA device, called one by one, by the loops that graphs are lowered to: a program for each signature.

In: an operator that declares loops (`lower=`) and canonical arguments, all tensors on one device. Out: what it gives, or None where
there are no loops for the call, where the operator has programs enough, or while algorithms must be deterministic: then the array
library computes it. Element-wise operators are not met here: their kernels are for all sizes (see `elements`).

A program is for sizes and strides as well as dtypes. So that calls with ever new sizes do not compile for ever, an operator has
a bounded number of them; which signatures have one never changes, and so neither do results.
"""

from __future__ import annotations

import operator as python_operators
import warnings
from collections import Counter
from typing import Any

from ...core import device as devices
from ...core.device import device
from ...core.dtype import dtype
from ...core.geometry import Geometry
from ...core.modes import process
from ...core.tensor import META, Tensor, assemble, stride_of
from ...graph.graph import Graph
from ...graph.node import Node
from ...ops.family.pointwise import POINTWISE
from ...ops.lowering import NotLowerable
from ...ops.system.operator import Operator
from ...ops.system.return_types import pack_results
from ...runtime.build import CompileFailed, NoCompiler
from .calls import NESTED, has_tensors, native, ready, record_of, remember
from .segment import CudaSegment

MOST_PROGRAMS = 64  # of one operator

_programs: Counter[Operator] = Counter()
segment_class = CudaSegment


def run(op: Operator, args: tuple, where: device) -> Any:
    """The result of a call, or None; nothing is recorded."""
    if process.deterministic or not ready() or not has_programs(op):
        return None
    result = native.plain(op, args, 0)
    if result is NotImplemented:
        remember(op, args, _call(op, args, where))
        result = native.plain(op, args, 0)
    return None if result is NotImplemented else result


def has_programs(op: Operator) -> bool:
    """Whether an operator is one that this module is for."""
    return (
        op.lower is not None
        and op.family is not POINTWISE
        and not op.is_view
        and not op.schema.is_mutable
        and not op.declared.over_cpu
    )


def _call(op: Operator, args: tuple, where: device) -> Any:
    """The native call of a signature, or None."""
    if _programs[op] >= MOST_PROGRAMS or len(op.tensors(args)) != len(_tensors(args)) or not _stays(op, args, where):
        return None
    try:
        segment = _segment(op, args, where)
        if segment is None:
            return None
        _programs[op] += 1
        segment.build()
    except NoCompiler:
        return None
    except CompileFailed as error:
        warnings.warn(f"{op.qualified_name} has no kernels of our own: {error}", RuntimeWarning, stacklevel=2)
        return None
    return _native_call(op, args, segment)


def _segment(op: Operator, args: tuple, where: device) -> CudaSegment | None:
    """The graph of one call, lowered; None where it has no loops."""
    graph = Graph()

    def node_of(a: Any, place: int) -> Any:
        if has_tensors(a):
            return tuple([node_of(v, place + NESTED * (j + 1)) for j, v in enumerate(a)])
        if not isinstance(a, Tensor):
            return a
        node = graph.placeholder(f"x{place}")
        node.meta["val"] = _outline(a._array.shape, stride_of(a), a.dtype, where)
        return node

    nodes = [node_of(a, k) for k, a in enumerate(args)]
    try:
        result = op.family.run_meta(op, tuple([_values(n) for n in nodes]))
    except Exception:  # whoever computes it says what is wrong
        return None
    packed = isinstance(result, (tuple, list))
    there = [
        None if t is None else _outline(t._array.shape, stride_of(t), t.dtype, where)
        for t in (result if packed else (result,))
    ]
    return _lowered(graph, op, nodes, tuple(there) if packed else there[0])


def _tensors(args: tuple) -> list[int]:
    """The places of tensors among arguments and in their lists."""
    nested = [(k, j) for k, a in enumerate(args) if has_tensors(a) for j, v in enumerate(a) if isinstance(v, Tensor)]
    return [k for k, a in enumerate(args) if isinstance(a, Tensor)] + [k + NESTED * (j + 1) for k, j in nested]


def _stays(op: Operator, args: tuple, where: device) -> bool:
    """Whether a call's result is where its tensors are, in memory like theirs."""
    if not op.declared.cross_device:
        return True
    named = dict(zip([a.name for a in op.schema.arguments], args, strict=True))
    return (
        named.get("device") in (None, where)
        and named.get("layout") in (None, devices.strided)
        and not named.get("pin_memory")
    )


def _values(node: Any) -> Any:
    """What stands for an argument where only shapes are looked at."""
    if isinstance(node, tuple):
        return tuple([_values(n) for n in node])
    return node.meta["val"] if isinstance(node, Node) else node


def _outline(shape: tuple, strides: tuple, d: dtype, where: device) -> Tensor:
    """A tensor without data that says to be on a device."""
    return assemble(Tensor, Geometry(tuple(shape), tuple(strides), d.numpy), d, where, META, None, [0], None, 0)


def _lowered(graph: Graph, op: Operator, nodes: list, result: Any) -> CudaSegment | None:
    node = graph.call_function(op, tuple(nodes))
    node.meta["val"] = result
    wanted = [node]
    if isinstance(result, (tuple, list)):
        wanted = []
        for k, t in enumerate(result):
            if t is not None:
                part = graph.call_function(python_operators.getitem, (node, k))
                part.meta["val"] = t
                wanted.append(part)
    graph.output(tuple(wanted))
    lowering = segment_class.lowering()
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    nodes = [node, *[w for w in wanted if w is not node]]
    steps = ((how, n) for how, group in ((lowering.input, inputs), (lowering.run_node, nodes)) for n in group)
    if any(isinstance(how(n), NotLowerable) for how, n in steps):  # the first is the last
        return None
    return segment_class(nodes, wanted, lowering)


def _native_call(op: Operator, args: tuple, segment: CudaSegment) -> Any:
    """The program of a segment as a native call; None where its results are not all new tensors of their own."""
    inputs = tuple([int(str(node.target)[1:]) for node in segment.given])
    news = segment.news
    many = _many(segment, news) if len(news) == len(segment.places) else None
    return segment.native_call(inputs, many, None if many is None else _packer(op, many), record_of(op))


def _packer(op: Operator, many: tuple) -> Any:
    """What makes of a tuple what the operator gives; None where that is the tuple."""
    if op.schema.returns[0][0].endswith("[]"):
        return list
    return None if type(pack_results(op, list(many))) is tuple else lambda found: pack_results(op, list(found))


def _many(segment: CudaSegment, news: list[int]) -> tuple | None:
    """Which outputs are the tuple that comes back; None where one tensor does."""
    head = segment.nodes[0]
    value = head.meta["val"]
    if not isinstance(value, (tuple, list)):
        return None
    given: dict[int, int] = {
        int(node.args[1]): at
        for node, at in zip(segment.results, news, strict=True)  # type: ignore[arg-type]
    }
    return tuple([given.get(k) for k in range(len(value))])
