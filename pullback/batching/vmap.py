"""`vmap`: a function of one example becomes a function of a batch.

A call takes its arguments apart (`process_inputs`), wraps them (`batch_inputs`), calls, and unwraps (`unwrap_outputs`). The
three are looked up when they are called: libraries whose containers are batched as a whole (tensordict) put their own there.
"""

from __future__ import annotations

import functools

from ..core import modes
from ..core.layers import above
from ..core.modes import ambient
from ..core.random import set_states, states
from ..core.tensor import Tensor
from ..core.tree import tree_flatten, tree_unflatten
from ..ops.shape.joining import cat
from .batched import BatchLevel, make_batched, outside, unwrap
from .made import remember


def vmap(func, in_dims=0, out_dims=0, randomness: str = "error", *, chunk_size: int | None = None):
    """Vectorise `func` over dimension `in_dims` of its arguments; results get the batch at `out_dims`.

    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.vmap(torch.dot)(x, x)
    tensor([ 5., 25.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def batched(*args, **kwargs):
        _check_out_dims(func, out_dims)
        size, dims, flat, spec = process_inputs(in_dims, args, func)
        if ambient.mode & modes.CAPTURE and getattr(func, "differentiates", False):
            options = {"in_dims": in_dims, "out_dims": out_dims, "randomness": randomness, "chunk_size": chunk_size}
            result = above.captured_transform("vmap", func, options | {"dims": dims}, args, kwargs)
            if result is not NotImplemented:
                return result
        if chunk_size is not None and chunk_size < size:
            return _in_chunks(func, flat, spec, dims, size, out_dims, randomness, chunk_size, kwargs)
        return _call(func, flat, spec, dims, size, out_dims, randomness, kwargs)

    remember(batched, vmap, in_dims=in_dims, out_dims=out_dims, randomness=randomness, chunk_size=chunk_size)
    return batched


def chunk_vmap(func, in_dims=0, out_dims=0, randomness: str = "error", chunks: int = 2):
    """vmap in a given number of chunks."""

    @functools.wraps(func)
    def batched(*args, **kwargs):
        size = process_inputs(in_dims, args, func)[0]
        return vmap(func, in_dims, out_dims, randomness, chunk_size=-(-size // chunks))(*args, **kwargs)

    remember(batched, chunk_vmap, in_dims=in_dims, out_dims=out_dims, randomness=randomness, chunks=chunks)
    return batched


def restore_vmap(func, in_dims, batch_size: int, randomness: str):
    """`vmap` of a known size that gives outputs with their batch wherever it is, and where that is: (outputs, dims)."""

    @functools.wraps(func)
    def batched(*args, **kwargs):
        flat, spec = tree_flatten(args)
        dims = _broadcast_dims(in_dims, args) or [None] * len(flat)
        with BatchLevel(batch_size, randomness) as level:
            leaves, out_spec = tree_flatten(func(*batch_inputs(dims, flat, level, spec), **kwargs))
            pairs = [unwrap(leaf, level) for leaf in leaves]
        return tree_unflatten([v for v, _ in pairs], out_spec), tree_unflatten([d for _, d in pairs], out_spec)

    return batched


def name_of(func) -> str:
    return getattr(func, "__name__", repr(func))


def process_inputs(in_dims, args: tuple, func):
    """The batch size, and of the arguments: batch dimensions, leaves and structure; checked as PyTorch does."""
    name = name_of(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
            f"inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    flat, spec = tree_flatten(args)
    dims = _broadcast_dims(in_dims, args)
    if dims is None or len(dims) != len(flat):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    for i, (x, d) in enumerate(zip(flat, dims, strict=True)):
        dims[i] = _check_input(name, in_dims, x, d)
    sizes = [x.shape[d] for x, d in zip(flat, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(s != sizes[0] for s in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        )
    return sizes[0], dims, flat, spec


def _check_input(name: str, in_dims, x, d):
    if d is None:
        return None
    lead = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(d, int):
        raise ValueError(f"{lead}Got in_dim={d} for an input but in_dim must be either an integer dimension or None.")
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{lead}Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor arguments, please use None as the "
            "respective in_dim"
        )
    if x.ndim == 0 or not -x.ndim <= d < x.ndim:
        raise ValueError(
            f"{lead}Got in_dim={d} for some input, but that input is a Tensor of dimensionality {x.ndim} so expected in_dim to satisfy "
            f"-{x.ndim} <= in_dim < {x.ndim}."
        )
    if d % x.ndim:
        refuse_nested(x, d)
    return d % x.ndim


def refuse_nested(x: Tensor, d: int) -> None:
    """Components of a nested tensor are batched along its first dimension, and no other."""
    if x.is_nested:
        raise RuntimeError(f"Nested tensors can only be vmapped over dim=0, but got dim={d}")


def _broadcast_dims(dims, tree) -> list | None:
    """`dims` spread over the leaves of `tree`: a single number serves a whole subtree."""
    if dims is None or isinstance(dims, int):
        return [dims] * len(tree_flatten(tree)[0])
    if isinstance(tree, dict) and isinstance(dims, dict) and tree.keys() == dims.keys():
        parts = [_broadcast_dims(dims[k], tree[k]) for k in tree]
    elif _same_sequences(tree, dims):
        parts = [_broadcast_dims(d, t) for d, t in zip(dims, tree, strict=True)]
    elif not isinstance(tree, (tuple, list, dict)):
        return [dims]
    else:
        return None
    return None if any(p is None for p in parts) else [d for p in parts for d in p]  # type: ignore[union-attr]


def _same_sequences(tree, dims) -> bool:
    """Whether both are lists, or both tuples, of as many elements."""
    kind = next((k for k in (tuple, list) if isinstance(tree, k)), None)
    return kind is not None and isinstance(dims, kind) and len(tree) == len(dims)


def _call(func, flat, spec, dims, size: int, out_dims, randomness: str, kwargs: dict):
    with BatchLevel(size, randomness) as level:
        out = func(*batch_inputs(dims, flat, level, spec), **kwargs)
        return unwrap_outputs(out, out_dims, level, size, func)


def batch_inputs(dims, flat, level: BatchLevel, spec):
    """The arguments as the function sees them inside the level."""
    wrapped = [make_batched(x, d, level) if d is not None else x for x, d in zip(flat, dims, strict=True)]
    return tree_unflatten(wrapped, spec)


def unwrap_outputs(out, out_dims, level: BatchLevel, size: int, func):
    """What the function returned, with the batch at `out_dims`."""
    flat, spec = tree_flatten(out)
    name = name_of(func)
    each = _output_dims(func, out, out_dims)
    return tree_unflatten([unwrap_output(name, o, level, size, d) for o, d in zip(flat, each, strict=True)], spec)


def _check_out_dims(func, out_dims) -> None:
    if any(not isinstance(d, int) and d is not None for d in tree_flatten(out_dims)[0]):
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )


def _output_dims(func, out, out_dims) -> list:
    """The batch dimension of each output; one tensor alone may have its dimension in a tuple."""
    if isinstance(out, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    leaves = tree_flatten(out)[0]
    each = _broadcast_dims(out_dims, out)
    fits = each is not None and len(each) == len(leaves) and all(d is None or isinstance(d, int) for d in each)
    if not fits:
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {tree_flatten(out)[1]}."
        )
    return each  # type: ignore[return-value]


def unwrap_output(name: str, out, level: BatchLevel, size: int, dim):
    """One output of the function called `name`, with the batch at `dim`; with None, it must not depend on the batch."""
    if dim is None:
        value, at = unwrap(out, level)
        if at is not None:
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return value
    if not isinstance(out, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(out)}. Did you mean to set out_dims= to None for output?"
        )
    return remove_batch_dim(out, level, size, dim)


def remove_batch_dim(out: Tensor, level: BatchLevel, size: int, dim: int) -> Tensor:
    """The value under a batched tensor with the batch at `dim`; a tensor that is not batched is repeated along it."""
    value, at = unwrap(out, level)
    with outside(level):
        rank = value.ndim if at is not None else value.ndim + 1
        if not -rank <= dim < rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
            )
        if at is None:
            return value.unsqueeze(dim).expand((*value.shape[: dim % rank], size, *value.shape[dim % rank :]))
        if at != dim % rank:
            refuse_nested(value, dim)
            return value.movedim(at, dim)
        return value


def _in_chunks(func, flat, spec, dims, size, out_dims, randomness, chunk_size, kwargs):
    parts = []
    before = states() if randomness == "same" else None
    for start in range(0, size, chunk_size):
        length = min(chunk_size, size - start)
        if before is not None:
            set_states(before)
        piece = [x.narrow(d, start, length) if d is not None else x for x, d in zip(flat, dims, strict=True)]
        parts.append(_call(func, piece, spec, dims, length, out_dims, randomness, kwargs))

    leaves = [tree_flatten(p)[0] for p in parts]
    each = _output_dims(func, parts[0], out_dims)
    joined = [
        column[0] if d is None else cat(list(column), d)
        for column, d in zip(zip(*leaves, strict=True), each, strict=True)
    ]
    return tree_unflatten(joined, tree_flatten(parts[0])[1])
