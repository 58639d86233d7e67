"""Collectives as operators of the library `_c10d_functional`: functions of tensors, which graphs hold.

In: a tensor, and the name of a group. Out: a new tensor that is under way until `wait_tensor` has seen it. A call starts
at once and copies what it may not keep; `wait_tensor` gives the tensor when it is there. Gradients are collectives in
their turn: those of a sum over ranks are summed over ranks, those of gathered parts are scattered.
"""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor, wrap
from ..graph.node import has_side_effect
from ..ops.family.base import operator
from ..ops.system.operator import NOT_IMPLEMENTED, Operator, Spec, public
from . import lowering, native
from .groups import group_by_name
from .parts import parts_of
from .process_group import ProcessGroup
from .reduce_op import Reduction, as_reduce_op
from .under_way import finish_pending, owner, under_way

LIBRARY = {"library": "_c10d_functional", "function": False, "method": False, "out": False}


def _host(pg: ProcessGroup, array: Any) -> Any:
    """A contiguous array where the group's channel wants it."""
    return pg.channel.buffer(wrap(array))


def _placed(pg: ProcessGroup, like: Any, array: Any) -> tuple[Any, Any]:
    """(the result, on the device of `like`; what puts received elements there) of an array in the channel's memory."""
    if type(array) is type(like):
        return array, None
    import cupy

    result = cupy.empty(array.shape, array.dtype)
    return result, lambda: result.set(array)


# ---- kernels
def _all_reduce_kernel(xp, x, reduce_op, group_name):
    pg = group_by_name(group_name)
    sent = _host(pg, x)
    r = Reduction(sent, as_reduce_op(reduce_op), pg.size())
    received = r.send.copy() if r.own else r.send  # the argument may be overwritten while the call is under way
    result = received if received.dtype == sent.dtype else pg.channel.room(sent.shape, sent.dtype)
    output, put = _placed(pg, x, result)

    def finish() -> None:
        reduced = r.finish(received)
        if reduced is not result:
            result[...] = reduced
        if put is not None:
            put()

    facts = f"({list(x.shape)} {x.dtype}, op={reduce_op})"
    work = pg.begin(
        "all_reduce", facts, lambda c: c.allreduce(None, received, r.kind), finish, watched=True, nbytes=sent.nbytes
    )
    return under_way(output, work)


def _gather_kernel(xp, x, group_size, group_name):
    pg = _group_of_size(group_name, group_size)
    sent = _host(pg, x).copy()
    whole = pg.channel.room((group_size * x.shape[0], *x.shape[1:]), sent.dtype)
    result, put = _placed(pg, x, whole)
    start = lambda c: c.allgather(sent, list(whole.reshape(group_size, -1)))
    return under_way(
        result,
        pg.begin(
            "all_gather_into_tensor", f"({list(x.shape)} {x.dtype})", start, put, watched=True, nbytes=whole.nbytes
        ),
    )


def _reduce_scatter_kernel(xp, x, reduce_op, group_size, group_name):
    pg = _group_of_size(group_name, group_size)
    sent = _host(pg, x)
    r = Reduction(sent, as_reduce_op(reduce_op), pg.size())
    sending = r.send.copy() if r.own else r.send
    shape = (x.shape[0] // group_size, *x.shape[1:])
    received = pg.channel.room(shape, sending.dtype)
    result = received if received.dtype == sent.dtype else pg.channel.room(shape, sent.dtype)
    output, put = _placed(pg, x, result)

    def finish() -> None:
        reduced = r.finish(received)
        if reduced is not result:
            result[...] = reduced
        if put is not None:
            put()

    start = lambda c: c.reduce_scatter(sending, received, r.kind, [received.size] * group_size)
    facts = f"({list(x.shape)} {x.dtype}, op={reduce_op})"
    return under_way(output, pg.begin("reduce_scatter_tensor", facts, start, finish, watched=True, nbytes=sent.nbytes))


def _broadcast_kernel(xp, x, src, group_name):
    pg = group_by_name(group_name)
    array = _host(pg, x).copy()
    result, put = _placed(pg, x, array)
    start = lambda c: c.broadcast(array, src)
    return under_way(result, pg.begin("broadcast", f"({list(x.shape)} {x.dtype}, src={src})", start, put, watched=True))


def _all_to_all_kernel(xp, x, output_split_sizes, input_split_sizes, group_name):
    pg = group_by_name(group_name)
    sent = _host(pg, x).copy()
    whole = pg.channel.room((sum(output_split_sizes), *x.shape[1:]), sent.dtype)
    result, put = _placed(pg, x, whole)
    parts = [
        parts_of(sent, list(input_split_sizes), pg.size(), "input"),
        parts_of(whole, list(output_split_sizes), pg.size(), "output"),
    ]
    return under_way(
        result, pg.begin("all_to_all_single", f"({x.dtype})", lambda c: c.alltoall(*parts), put, watched=True)
    )


def _wait_kernel(xp, x):
    if finish_pending(x):
        return x
    engine = native.loaded()
    return x if engine is not None and engine.wait(owner(x)) else x.copy()


def _group_of_size(name: str, size: int) -> ProcessGroup:
    pg = group_by_name(name)
    if pg.size() != size:
        raise ValueError(f"group_size: expected {pg.size()}, the size of the group {name!r}, got {size}")
    return pg


# ---- gradients
def summed(g: Tensor, group_name: str, op: str = "sum") -> Tensor:
    return wait_tensor(all_reduce(g, op, group_name))


def _linear(reduce_op: str, name: str) -> str:
    """A reduction whose gradient is one of the same kind."""
    if reduce_op.lower() not in ("sum", "avg", "mean"):
        raise NotImplementedError(
            f"the gradient of {name} with reduce_op={reduce_op!r}: only those of sum and avg exist"
        )
    return reduce_op


def _gathered_gradient(g: Tensor, group_size: int, group_name: str) -> Tensor:
    return wait_tensor(reduce_scatter_tensor(g.contiguous(), "sum", group_size, group_name))


def _scattered_gradient(g: Tensor, reduce_op: str, group_size: int, group_name: str) -> Tensor:
    whole = wait_tensor(all_gather_into_tensor(g.contiguous(), group_size, group_name))
    return whole / group_size if _linear(reduce_op, "reduce_scatter_tensor").lower() != "sum" else whole


def _broadcast_gradient(g: Tensor, src: int, group_name: str) -> Tensor:
    total = summed(g.contiguous(), group_name)
    return total if group_by_name(group_name).rank() == src else public("torch", "zeros_like")(total)


# ---- shapes
def _same(x: Tensor, *_: Any) -> Spec:
    return Spec(x.shape, x.dtype)


def _gather_meta(x: Tensor, group_size: int, group_name: str) -> Spec:
    return Spec((x.shape[0] * group_size, *x.shape[1:]), x.dtype)


def _reduce_scatter_meta(x: Tensor, reduce_op: str, group_size: int, group_name: str) -> Spec:
    if not x.ndim or x.shape[0] % group_size:
        raise ValueError(f"input: expected a first dimension that {group_size} ranks divide, got shape {list(x.shape)}")
    return Spec((x.shape[0] // group_size, *x.shape[1:]), x.dtype)


all_reduce: Operator = operator(
    "all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor",
    kernel=_all_reduce_kernel,
    lower=lowering.lower_all_reduce,
    meta=_same,
    vjp={
        "input": lambda g, reduce_op, group_name: summed(g.contiguous(), group_name, _linear(reduce_op, "all_reduce"))
    },
    **LIBRARY,
)
all_gather_into_tensor: Operator = operator(
    "all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor",
    kernel=_gather_kernel,
    lower=lowering.lower_gather,
    meta=_gather_meta,
    vjp={"input": lambda g, group_size, group_name: _gathered_gradient(g, group_size, group_name)},
    **LIBRARY,
)
reduce_scatter_tensor: Operator = operator(
    "reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor",
    kernel=_reduce_scatter_kernel,
    lower=lowering.lower_reduce_scatter,
    meta=_reduce_scatter_meta,
    vjp={
        "input": lambda g, reduce_op, group_size, group_name: _scattered_gradient(g, reduce_op, group_size, group_name)
    },
    **LIBRARY,
)
all_to_all_single: Operator = operator(
    "all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, str group_name) -> Tensor",
    kernel=_all_to_all_kernel,
    lower=lowering.lower_all_to_all,
    meta=lambda x, output_split_sizes, input_split_sizes, group_name: Spec(
        (sum(output_split_sizes), *x.shape[1:]), x.dtype
    ),
    vjp={
        "input": lambda g, output_split_sizes, input_split_sizes, group_name: wait_tensor(
            all_to_all_single(g.contiguous(), input_split_sizes, output_split_sizes, group_name)
        )
    },
    **LIBRARY,
)
broadcast: Operator = operator(
    "broadcast(Tensor input, int src, str group_name) -> Tensor",
    kernel=_broadcast_kernel,
    lower=lowering.lower_broadcast,
    meta=_same,
    vjp={"input": lambda g, src, group_name: _broadcast_gradient(g, src, group_name)},
    **LIBRARY,
)
wait_tensor: Operator = operator(
    "wait_tensor(Tensor tensor) -> Tensor",
    kernel=_wait_kernel,
    lower=lowering.lower_wait,
    meta=_same,
    vjp={"tensor": lambda g: g},
    **LIBRARY,
)
STARTS = (all_reduce, all_gather_into_tensor, reduce_scatter_tensor, all_to_all_single, broadcast)
for _op in (*STARTS, wait_tensor):  # other ranks wait for the call, whether this one uses its result or not
    has_side_effect(_op)
    _op.begins, _op.awaits = _op is not wait_tensor, _op is wait_tensor
all_gather_into_tensor.begins = "gather"


# ---- several tensors, or written in place: composed of the above
def _coalesced(name: str, schema: str, start: Operator) -> Operator:
    def kernel(xp, inputs, *rest):
        return [start.kernel(xp, x, *rest) for x in inputs]

    def meta(inputs, *rest):
        return [start.meta_rule(x, *rest) for x in inputs]

    return operator(
        f"{name}({schema}) -> Tensor[]", kernel=kernel, meta=meta, vjp={"inputs": NOT_IMPLEMENTED}, **LIBRARY
    )


all_reduce_coalesced = _coalesced("all_reduce_coalesced", "Tensor[] inputs, str reduce_op, str group_name", all_reduce)
all_gather_into_tensor_coalesced = _coalesced(
    "all_gather_into_tensor_coalesced", "Tensor[] inputs, int group_size, str group_name", all_gather_into_tensor
)
reduce_scatter_tensor_coalesced = _coalesced(
    "reduce_scatter_tensor_coalesced",
    "Tensor[] inputs, str reduce_op, int group_size, str group_name",
    reduce_scatter_tensor,
)
