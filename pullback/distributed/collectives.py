"""Collectives on tensors, as programs call them: `all_reduce`, `broadcast`, `all_gather`, `all_to_all`, ...

In: tensors of this rank. Out: None when the call is done, or a `Work` with `async_op=True`. Results are written into
the tensors that were given. Tensors without data (a trace) take the functional collectives instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tensor import FAKE, Tensor
from ..ops.system.operator import public
from . import traced
from .groups import get_group_rank, group_or_world
from .parts import parts_of
from .process_group import ProcessGroup
from .reduce_op import ReduceOp, Reduction, as_reduce_op
from .work import Work


# ---- arguments
def check_tensor(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor but got {type(value)} instead."
        )


def check_tensors(values: Any, name: str) -> None:
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor] but got {type(values)} instead."
        )


def check_one_dtype(tensors: list[Tensor]) -> None:
    kinds = {t.dtype for t in tensors}
    if len(kinds) > 1:
        raise ValueError(f"Invalid usage of tensors with different dtypes Found {', '.join(sorted(map(str, kinds)))}")


def check_elements(name: str, given: Tensor, expected: int) -> None:
    if given.numel() != expected:
        raise ValueError(f"{name}: expected {expected} elements, got {given.numel()} (shape {list(given.shape)})")


def root_of(group: ProcessGroup, rank: int | None, group_rank: int | None, name: str) -> int:
    """The rank in the group of a root that was given as one of the world or of the group; 0 without either."""
    if group_rank is not None:
        if rank is not None:
            raise ValueError(f"Can't specify both group_{name} and {name}")
        return group_rank
    return get_group_rank(group, rank) if rank is not None else 0


def facts_of(*tensors: Tensor, **more: Any) -> str:
    """What all ranks must agree on."""
    shapes = "; ".join(f"{list(t.shape)} {str(t.dtype).removeprefix('torch.')}" for t in tensors)
    rest = "".join(f", {k}={v}" for k, v in more.items())
    return f"({shapes}{rest})"


def written(*tensors: Tensor) -> None:
    for t in tensors:
        t._counter[0] += 1


def is_traced(*tensors: Tensor) -> bool:
    return any(t._keys & FAKE for t in tensors)


def finished(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    work.wait()
    return None


# ---- reductions
def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Reduce a tensor over all ranks, on all of them."""
    check_tensor(tensor, "tensor")
    pg = group_or_world(group)
    if pg is None:
        return None
    if is_traced(tensor):
        return traced.all_reduce(tensor, as_reduce_op(op), pg, async_op)
    return finished(start_all_reduce(pg, tensor, as_reduce_op(op), async_op), async_op)


def start_all_reduce(pg: ProcessGroup, tensor: Tensor, op: ReduceOp, watched: bool) -> Work:
    r = Reduction(pg.channel.buffer(tensor), op, pg.size())
    received = r.send

    def finish() -> None:
        pg.channel.write(tensor, r.finish(received))

    written(tensor)
    facts = facts_of(tensor, op=op.name)
    return pg.begin(
        "all_reduce",
        facts,
        lambda c: c.allreduce(None, received, r.kind),
        finish,
        [tensor],
        watched=watched,
        nbytes=received.nbytes,
    )


def reduce(
    tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Reduce a tensor over all ranks, on one of them."""
    check_tensor(tensor, "tensor")
    pg = group_or_world(group)
    if pg is None:
        return None
    op, root = as_reduce_op(op), root_of(pg, dst, group_dst, "dst")
    r = Reduction(pg.channel.buffer(tensor), op, pg.size())
    received = r.send

    def finish() -> None:
        if pg.rank() == root:
            pg.channel.write(tensor, r.finish(received))

    written(tensor)
    start = lambda c: c.reduce(None, received, r.kind, root)
    return finished(
        pg.begin("reduce", facts_of(tensor, op=op.name, dst=root), start, finish, [tensor], watched=async_op), async_op
    )


def reduce_scatter(
    output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce a list of tensors, one for each rank; each rank gets its own."""
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    check_one_dtype([output, *input_list])
    pg = group_or_world(group)
    if pg is None:
        return None
    if len(input_list) != pg.size():
        raise ValueError(f"input_list: expected {pg.size()} tensors, one for each rank, got {len(input_list)}")
    flat = public("torch", "cat")([t.detach().reshape(-1) for t in input_list])
    counts = [t.numel() for t in input_list]
    check_elements("output", output, counts[pg.rank()])
    return _reduce_scatter(pg, "reduce_scatter", output, flat, counts, as_reduce_op(op), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce a tensor over all ranks; each rank gets its part of the first dimension."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_one_dtype([output, input])
    pg = group_or_world(group)
    if pg is None:
        return None
    if is_traced(output, input):
        return traced.reduce_scatter_tensor(output, input, as_reduce_op(op), pg, async_op)
    check_elements("input", input, output.numel() * pg.size())
    counts = [output.numel()] * pg.size()
    return _reduce_scatter(pg, "reduce_scatter_tensor", output, input, counts, as_reduce_op(op), async_op)


def _reduce_scatter(
    pg: ProcessGroup, name: str, output: Tensor, input: Tensor, counts: list[int], op: ReduceOp, async_op: bool
) -> Work | None:
    r = Reduction(pg.channel.buffer(input), op, pg.size())
    received = pg.channel.room((counts[pg.rank()],), r.send.dtype)

    def finish() -> None:
        pg.channel.write(output, r.finish(received))

    written(output)
    start = lambda c: c.reduce_scatter(r.send, received, r.kind, counts)
    facts = facts_of(input, op=op.name)
    return finished(pg.begin(name, facts, start, finish, [output], watched=async_op, nbytes=r.send.nbytes), async_op)


# ---- copies
def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Copy a tensor of one rank to all."""
    check_tensor(tensor, "tensor")
    pg = group_or_world(group)
    if pg is None:
        return None
    root = root_of(pg, src, group_src, "src")
    if is_traced(tensor):
        return traced.broadcast(tensor, root, pg, async_op)
    array = pg.channel.buffer(tensor)

    def finish() -> None:
        if pg.rank() != root:
            pg.channel.write(tensor, array)

    written(tensor)
    start = lambda c: c.broadcast(array, root)
    work = pg.begin("broadcast", facts_of(tensor, src=root), start, finish, [tensor], watched=async_op)
    return finished(work, async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of all ranks, in a list on each. Their sizes may differ where the lists' do."""
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_one_dtype([*tensor_list, tensor])
    pg = group_or_world(group)
    if pg is None:
        return None
    if is_traced(tensor, *tensor_list):
        return traced.all_gather(tensor_list, tensor, pg, async_op)
    if len(tensor_list) != pg.size():
        raise ValueError(f"tensor_list: expected {pg.size()} tensors, one for each rank, got {len(tensor_list)}")
    check_elements(f"tensor_list[{pg.rank()}]", tensor_list[pg.rank()], tensor.numel())
    facts = facts_of(*tensor_list)
    return finished(_all_gather(pg, "all_gather", tensor_list, tensor, facts, async_op), async_op)


def _all_gather(pg: ProcessGroup, name: str, outputs: list[Tensor], tensor: Tensor, facts: str, watched: bool) -> Work:
    sent, received = pg.channel.buffer(tensor), [pg.channel.buffer(t) for t in outputs]

    def finish() -> None:
        for t, array in zip(outputs, received, strict=True):
            pg.channel.write(t, array)

    written(*outputs)
    return pg.begin(name, facts, lambda c: c.allgather(sent, received), finish, outputs, watched=watched)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """The tensors of all ranks, one after the other in one tensor on each."""
    check_tensor(output_tensor, "output_tensor")
    check_tensor(input_tensor, "input_tensor")
    check_one_dtype([output_tensor, input_tensor])
    pg = group_or_world(group)
    if pg is None:
        return None
    if is_traced(output_tensor, input_tensor):
        return traced.all_gather_into_tensor(output_tensor, input_tensor, pg, async_op)
    check_elements("output_tensor", output_tensor, input_tensor.numel() * pg.size())
    sent, whole = pg.channel.buffer(input_tensor), pg.channel.buffer(output_tensor)
    parts = list(whole.reshape(pg.size(), -1))

    def finish() -> None:
        pg.channel.write(output_tensor, whole)

    written(output_tensor)
    start = lambda c: c.allgather(sent, parts)
    facts = facts_of(input_tensor)
    work = pg.begin(
        "all_gather_into_tensor", facts, start, finish, [output_tensor], watched=async_op, nbytes=whole.nbytes
    )
    return finished(work, async_op)


def gather(
    tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """The tensors of all ranks, in a list on one of them."""
    check_tensor(tensor, "tensor")
    pg = group_or_world(group)
    if pg is None:
        return None
    root = root_of(pg, dst, group_dst, "dst")
    outputs = _list_at_root(pg, gather_list, root, "gather_list", "dst")
    check_one_dtype([tensor, *outputs])
    sent, received = pg.channel.buffer(tensor), [pg.channel.buffer(t) for t in outputs]

    def finish() -> None:
        for t, array in zip(outputs, received, strict=True):
            pg.channel.write(t, array)

    written(*outputs)
    start = lambda c: c.gather(sent, received or None, root)
    facts = facts_of(tensor, dst=root)
    return finished(pg.begin("gather", facts, start, finish, outputs, watched=async_op), async_op)


def scatter(
    tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """One rank's list of tensors, one to each rank."""
    check_tensor(tensor, "tensor")
    pg = group_or_world(group)
    if pg is None:
        return None
    root = root_of(pg, src, group_src, "src")
    inputs = _list_at_root(pg, scatter_list, root, "scatter_list", "src")
    check_one_dtype([tensor, *inputs])
    received, sent = pg.channel.buffer(tensor), [pg.channel.buffer(t) for t in inputs]

    def finish() -> None:
        pg.channel.write(tensor, received)

    written(tensor)
    start = lambda c: c.scatter(sent or None, received, root)
    facts = facts_of(tensor, src=root)
    return finished(pg.begin("scatter", facts, start, finish, [tensor], watched=async_op), async_op)


def _list_at_root(pg: ProcessGroup, given: list | None, root: int, name: str, which: str) -> list[Tensor]:
    """The list that one rank gives and the others do not."""
    if pg.rank() != root:
        if given:
            raise ValueError(
                f"Argument ``{name}`` must NOT be specified on non-{'source' if which == 'src' else 'destination'} ranks."
            )
        return []
    if not given:
        raise ValueError(
            f"Argument ``{name}`` must be specified on {'source' if which == 'src' else 'destination'} rank."
        )
    check_tensors(given, name)
    if len(given) != pg.size():
        raise ValueError(f"{name}: expected {pg.size()} tensors, one for each rank, got {len(given)}")
    return list(given)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Each rank sends one tensor of its list to each."""
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    check_one_dtype([*output_tensor_list, *input_tensor_list])
    pg = group_or_world(group)
    if pg is None:
        return None
    for name, given in (("output_tensor_list", output_tensor_list), ("input_tensor_list", input_tensor_list)):
        if len(given) != pg.size():
            raise ValueError(f"{name}: expected {pg.size()} tensors, one for each rank, got {len(given)}")
    sent = [pg.channel.buffer(t) for t in input_tensor_list]
    received = [pg.channel.buffer(t) for t in output_tensor_list]

    def finish() -> None:
        for t, array in zip(output_tensor_list, received, strict=True):
            pg.channel.write(t, array)

    written(*output_tensor_list)
    facts = f"({str(input_tensor_list[0].dtype).removeprefix('torch.')})"
    start = lambda c: c.alltoall(sent, received)
    return finished(pg.begin("all_to_all", facts, start, finish, output_tensor_list, watched=async_op), async_op)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Each rank sends a part of the first dimension to each."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_one_dtype([output, input])
    pg = group_or_world(group)
    if pg is None:
        return None
    if is_traced(output, input):
        return traced.all_to_all_single(output, input, output_split_sizes, input_split_sizes, pg, async_op)
    whole = pg.channel.buffer(output)
    received = parts_of(whole, output_split_sizes, pg.size(), "output")
    sent = parts_of(pg.channel.buffer(input), input_split_sizes, pg.size(), "input")

    def finish() -> None:
        pg.channel.write(output, whole)

    written(output)
    facts = f"({str(input.dtype).removeprefix('torch.')})"
    start = lambda c: c.alltoall(sent, received)
    return finished(pg.begin("all_to_all_single", facts, start, finish, [output], watched=async_op), async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Return when all ranks have come here."""
    pg = group_or_world(group)
    if pg is None:
        return None
    return finished(pg.begin("barrier", "()", lambda c: c.barrier(), watched=async_op), async_op)


# ---- several at once
def all_reduce_coalesced(
    tensors: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Reduce several tensors."""
    return _each(lambda t: all_reduce(t, op, group, True), tensors, async_op)


def all_gather_coalesced(
    outputs: list[list[Tensor]], inputs: list[Tensor], group: Any = None, async_op: bool = False
) -> Any:
    """Gather several tensors."""
    return _each(lambda pair: all_gather(*pair, group, True), list(zip(outputs, inputs, strict=True)), async_op)


def _each(start: Callable, values: list, async_op: bool) -> Works | None:
    works = Works([start(v) for v in values])
    if async_op:
        return works
    works.wait()
    return None


class Works:
    """Several works as one."""

    def __init__(self, works: list):
        self.works = [w for w in works if w is not None]

    def wait(self, timeout: Any = None) -> bool:
        for work in self.works:
            work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        return all(w.is_completed() for w in self.works)
