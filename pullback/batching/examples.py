"""Examples one after the other: the rule that always works, and random numbers, which belong to examples.

`randomness` of a vmap says what a draw inside it means: an error, one draw that all examples see (`same`: each is drawn
from the state that the generator had before), or a draw of its own for each (`different`).
"""

from __future__ import annotations

from ..core.random import Generator, set_states, states
from ..core.tensor import Tensor, stride_of
from ..ops.shape.joining import stack
from ..ops.system.dispatch import dispatch
from ..ops.system.operator import Operator

_SEEDED = "nondeterministic_seeded"


class loops:
    """Whether a loop over examples, where a batched rule would be quicker, says so in a warning."""

    warn = False


def are_loop_warnings_enabled() -> bool:
    return loops.warn


def display_loop_warnings(enabled: bool) -> None:
    loops.warn = bool(enabled)


def loop_rule(op: Operator, values: tuple, dims: tuple, size: int, before_each=None):
    """The rule that always works: each example on its own, results stacked."""
    if loops.warn:
        _warn(op)
    refuse_shared_writes(op, dims)
    results = []
    for i in range(size):
        if before_each is not None:
            before_each()
        results.append(dispatch(op, tuple(_example(v, d, i) for v, d in zip(values, dims, strict=True))))
    if not results:
        return _no_example(op, values, dims)
    if isinstance(results[0], Tensor):
        return _stacked(op, results), 0
    if results[0] is None:  # an assertion
        return None, None
    columns = [None if c[0] is None else _stacked(op, list(c)) for c in zip(*results, strict=True)]
    return type(results[0])(columns), [0] * len(columns)


def _stacked(op: Operator, results: list) -> Tensor:
    if any(r.shape != results[0].shape for r in results):
        raise dynamic_shape(op)
    return stack(results)


def dynamic_shape(op: Operator) -> RuntimeError:
    """Examples whose results have shapes of their own do not make one batch."""
    return RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. "
        f"Attempted to vmap over aten::{op.name}: the size of a result depends on the values of each example"
    )


def _warn(op: Operator) -> None:
    import warnings

    warnings.warn(
        f"There is a performance drop because we have not yet implemented the batching rule for aten::{op.name}. "
        "Please file us an issue on GitHub so that we can prioritize its implementation.",
        stacklevel=2,
    )


def _no_example(op: Operator, values: tuple, dims: tuple):
    """An empty batch: what one example of zeros would give says the shape."""
    zeros = tuple(_example_of_zeros(v, d) for v, d in zip(values, dims, strict=True))
    out = dispatch(op, zeros)
    if isinstance(out, Tensor):
        return out.unsqueeze(0)[:0], 0
    return type(out)([None if o is None else o.unsqueeze(0)[:0] for o in out]), [0] * len(out)


def _example_of_zeros(value, dim):
    if dim is None:
        return value
    if isinstance(dim, tuple):
        return tuple(_example_of_zeros(v, d) for v, d in zip(value, dim, strict=True))
    return value.new_zeros(value.shape[:dim] + value.shape[dim + 1 :])


def _example(value, dim, i: int):
    if dim is None:
        return value
    if isinstance(dim, tuple):
        return tuple(_example(v, d, i) for v, d in zip(value, dim, strict=True))
    return value.select(dim, i)


def unbatched_write(op: Operator) -> RuntimeError:
    """A tensor that is the same for all examples was to be written with one that is not. The error is marked as such, since
    a transform that does not need to batch can do without."""
    written = f"{op.name.removesuffix('_')}_"
    called = written if written == "fill_" else "inplace arithmetic"
    error = RuntimeError(
        f"vmap: {called}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements "
        "than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please try to use "
        f"out-of-place operators instead of {written}. If said operator is being called inside the PyTorch framework, please file a bug "
        "report instead."
    )
    error.unbatched_write = True
    return error


def refuse_shared_writes(op: Operator, dims: tuple) -> None:
    """Each example would write what the others read, and leave in it what the last one wrote."""
    for argument, dim in zip(op.schema.arguments, dims, strict=True):
        if argument.writes and dim is None and any(d is not None for d in dims):
            error = RuntimeError(
                f"vmap: aten::{op.name} is not possible because it writes `{argument.name}`, which is not being vmapped over, and another "
                "of its arguments is. Give each example its own by vmapping over it too, or call an operator that gives a new tensor."
            )
            error.unbatched_write = True
            raise error


# ---- random numbers
def draws(op: Operator) -> bool:
    """Whether an operator draws random numbers."""
    return _SEEDED in op.tags or op.inplace_of is not None and _SEEDED in op.inplace_of.tags


def draw_examples(op: Operator, values: tuple, dims: tuple, size: int, randomness: str):
    """A draw under a vmap: (result, batch dimension), as `randomness` says."""
    if randomness == "error":
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
            "randomness flags on vmap or perform the randomness operation out of vmap"
        )
    if randomness == "same" and op.inplace_of is None and op.declared.samples:
        values, dims = _without_repeats(values, dims)
    batched = [i for i, d in enumerate(dims) if d is not None]
    if randomness == "same":
        if batched and (op.inplace_of or op).declared.samples and not (op.inplace_of and batched == [0]):
            raise RuntimeError(
                "Vmap does not currently support same randomness with a batched tensor input. "
                "Please rerun with randomness=different"
            )
        if batched == [0] and op.inplace_of is not None:  # one draw, copied to all
            target = values[0].movedim(dims[0], 0)
            target.copy_(dispatch(op, (target.new_empty(target.shape[1:]), *values[1:])))
            return None
        return loop_rule(op, values, dims, size, _from_one_state(values)) if batched else (dispatch(op, values), None)
    if op.inplace_of is not None and dims[0] is None:
        if batched:
            raise unbatched_write(op)
        raise RuntimeError(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
            "If this is necessary for your usage, please file an issue with functorch."
        )
    if op.name == "randperm" or op.name == "multinomial" and values[0].ndim - (dims[0] is not None) > 1:
        return loop_rule(op, values, dims, size)
    return dispatch(op, _whole_batch(op, values, dims, size)), 0


def _without_repeats(values: tuple, dims: tuple) -> tuple[tuple, tuple]:
    """Arguments that show one example to all (those of forward mode, whose tangents alone differ), as that one."""
    once = [isinstance(d, int) and stride_of(v)[d] == 0 for v, d in zip(values, dims, strict=True)]
    return (
        tuple(v.select(d, 0) if o else v for v, d, o in zip(values, dims, once, strict=True)),
        tuple(None if o else d for d, o in zip(dims, once, strict=True)),
    )


def _whole_batch(op: Operator, values: tuple, dims: tuple, size: int) -> tuple:
    """Arguments for one draw of all examples, the batch in front: the numbers are those of a batched call."""
    tensors = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    if not tensors:
        at = op.schema.index["size"]
        return (*values[:at], (size, *values[at]), *values[at + 1 :])
    result = list(values)
    rank = max(values[i].ndim - (dims[i] is not None) for i in tensors)
    for i in tensors:
        if dims[i] is not None:
            t = values[i].movedim(dims[i], 0)
            result[i] = t.reshape((size, *(1,) * (rank - t.ndim + 1), *t.shape[1:])) if t.ndim <= rank else t
    if all(dims[i] is None for i in tensors):
        result[tensors[0]] = values[tensors[0]].expand((size, *values[tensors[0]].shape)).contiguous()
    return tuple(result)


def _from_one_state(values: tuple):
    """A function that puts every generator back to where it is now."""
    before = states()
    given = [(g, g.state_bytes()) for g in values if isinstance(g, Generator)]

    def restore() -> None:
        set_states(before)
        for generator, state in given:
            generator.set_state_bytes(state)

    return restore
