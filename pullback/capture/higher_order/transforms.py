"""Function transforms inside a captured program: `func.grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, and `vmap` of them.

In: a transform, the user's function, the arguments. Out: one node, which runs the transform on the function's graph. Who traces
that node again (ahead-of-time autograd, say) sees the operators that the transform calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...batching.vmap import vmap
from ...core.modes import FORWARD, ambient
from ...func import derivatives, jacobians
from ...func.arguments import slice_argnums
from ...graph import GraphModule
from .base import distinct
from .region import Region, Structure, capturing


def _wrapping(transform: Callable) -> Callable:
    return lambda f, options, args, kwargs: transform(f, **options)(*args, **kwargs)


RUN: dict[str, Callable] = {
    "grad_and_value": _wrapping(derivatives.grad_and_value),
    "jacrev": _wrapping(jacobians.jacrev),
    "jacfwd": _wrapping(jacobians.jacfwd),
    "vmap": _wrapping(vmap),
    "jvp": lambda f, options, primals, tangents: derivatives.jvp(f, primals, tangents, **options),
    "vjp": lambda f, options, primals, cotangents: derivatives.vjp(f, *primals, **options)[1](*cotangents),
    "call": lambda f, options, primals, kwargs: _value(f, options, primals),
}


def _value(f: Callable, options: dict, primals: tuple) -> Any:
    """What a function gives where it is differentiated, which may ask whether its arguments require grad."""
    result = derivatives.vjp(f, *primals, **options)
    return (result[0], result[2]) if options.get("has_aux") else result[0]


class Transformed:
    """A transform of a graph, as a target of nodes: `(graph, *operands of the call, *tensors the function closes over)`."""

    def __init__(self, name: str, options: dict, region: Region, call: tuple):
        self.name, self.options, self.region = name, options, region
        self.call = Structure(call)
        self.count = len(self.call.tensors)
        self.result: Structure | None = None
        self.__name__ = self.__qualname__ = name
        self.__module__ = "func"

    def __call__(self, graph: GraphModule, *values: Any) -> tuple:
        f = self.region.function(graph, values[self.count :])
        out = Structure(RUN[self.name](f, self.options, *self.call.rebuild(values[: self.count])))
        self.result = self.result or out
        return tuple(out.tensors)


def apply(name: str, options: dict, region: Region, call: tuple) -> Any:
    """Record a transform of a captured function, and give its result."""
    target = Transformed(name, options, region, call)
    trace = region.trace
    operands = [trace._inside(v) for v in (*target.call.tensors, *region.free)]
    out = distinct(region.run(target, operands), operands)
    region.record(target, operands, out, "func_body_")
    return target.result.rebuild(out)  # type: ignore[union-attr]


class Pull:
    """The second result of `vjp`: called, it is one more node, which runs the function again."""

    def __init__(self, region: Region, primals: tuple, options: dict):
        self.region, self.primals, self.options = region, primals, options

    def __call__(self, *cotangents: Any, **options: Any) -> Any:
        trace = capturing()
        if trace is None or options:
            raise RuntimeError("the function that vjp() gave inside a captured program was called outside of it")
        self.region.trace = trace
        return apply("vjp", self.options, self.region, (self.primals, cotangents))


def captured_transform(name: str, func: Callable, options: dict, args: tuple, kwargs: dict) -> Any:
    """A transform that a captured program calls; NotImplemented where none is captured."""
    trace = capturing()
    if trace is None:
        return NotImplemented
    if ambient.mode & FORWARD:  # the node would not hear of tangents
        trace.refuse(f"{name}() inside an open level of forward mode")
    if name == "jvp":
        primals, tangents = args
        return apply(name, options, Region(trace, func, primals, {}, derives=True), (primals, tangents))
    if name == "vjp":
        return _vjp(Region(trace, func, args, {}, tracked=args, derives=True), args, options)
    if name == "vmap":
        options, dims = {k: v for k, v in options.items() if k != "dims"}, options["dims"]
        given = Structure((args, kwargs))
        of_leaves = [*dims, *[0] * (len(given.leaves) - len(dims))]  # tensors given by name are batched along the first
        region = Region(trace, func, args, kwargs, [of_leaves[i] for i in given.places])
        return apply(name, options, region, (args, kwargs))
    tracked = slice_argnums(args, options["argnums"]) if name in ("grad_and_value", "jacrev") else ()
    region = Region(trace, func, args, kwargs, tracked=tracked, derives=True)
    return apply(name, options, region, (args, kwargs))


def _vjp(region: Region, primals: tuple, options: dict) -> tuple:
    if any("nondeterministic_seeded" in getattr(n.target, "tags", ()) for n in region.graph.graph.nodes):
        region.trace.refuse("vjp() of a function that draws random numbers")
    out = apply("call", options, region, (primals, {}))
    pull = Pull(region, primals, options)
    return (out[0], pull, out[1]) if options.get("has_aux") else (out, pull)
