"""Batching of views: how a view of each element of a batch is one view of the whole.

In: the physical tensor, the dimension that is the batch, and the arguments as one element's caller wrote them. Out:
the batched view, its batch at dimension 0. `batch_view` is the rule of every view whose arguments name dimensions
(`dims=("dim0", "dim1")` in its declaration); the others state their own rule from the functions here. A rule that
returns None leaves the call to the loop over elements.
"""

from __future__ import annotations

from ...core.geometry import wrap_dim
from ...core.tensor import Tensor, stride_of


def batch_first(t: Tensor, dim: int | None, size: int | None = None) -> Tensor:
    """The batch moved to dimension 0; a tensor without one is repeated `size` times, if that is given."""
    if dim is None:
        return t if size is None else t.expand((size, *t.shape))
    return t if dim == 0 else t.movedim(dim, 0)


def batch_view(op, args: tuple, dims: tuple, size: int):
    """Dimensions among the arguments move up by one; with `added` declared, they count in the result's rank."""
    if dims[0] is None:
        return None
    t = batch_first(args[0], dims[0])
    rank = t.ndim - 1 + op.declared.added
    named = op.declared.dims
    shifted = [
        shift(v, max(rank, 1)) if a.name in named else v for a, v in zip(op.schema.arguments[1:], args[1:], strict=True)
    ]
    if named and not rank:
        return (t.view(t.shape), 0) if op.declared.scalar_same else None
    return op(t, *shifted), 0


def shift(dim, rank: int):
    """A dimension (or several) of one element as that of the batch."""
    if isinstance(dim, tuple):
        return tuple(wrap_dim(d, rank) + 1 for d in dim)
    return wrap_dim(dim, rank) + 1


def batch_sizes(method: str):
    """The rule of views by sizes (`view`, `reshape`): the batch's size goes in front of them."""

    def rule(args: tuple, dims: tuple, size: int):
        t = batch_first(args[0], dims[0])
        return getattr(t, method)((size, *args[1])), 0

    return rule


def batch_expand(args: tuple, dims: tuple, size: int):
    t, wanted = batch_first(args[0], dims[0]), args[1]
    missing = len(wanted) - (t.ndim - 1)
    if missing < 0 or any(isinstance(s, int) and s < 0 for s in wanted[:missing]):
        return None  # the loop raises the error
    for _ in range(missing):
        t = t.unsqueeze(1)
    return t.expand((size, *wanted)), 0


def batch_squeeze(args: tuple, dims: tuple, size: int):
    t = batch_first(args[0], dims[0])
    return t.squeeze(tuple(d for d in range(1, t.ndim) if t.shape[d] == 1)), 0


def batch_transposed(args: tuple, dims: tuple, size: int):
    t = batch_first(args[0], dims[0])
    return None if t.ndim > 3 else (t.transpose(1, 2) if t.ndim == 3 else t, 0)


def batch_permute(args: tuple, dims: tuple, size: int):
    t = batch_first(args[0], dims[0])
    return t.permute((0, *shift(tuple(args[1]), t.ndim - 1))), 0


def batch_as_strided(args: tuple, dims: tuple, size: int):
    t, shape, stride, offset = batch_first(args[0], dims[0]), *args[1:]
    start = t._offset if offset is None else offset
    _check_window(t, tuple(shape), tuple(stride), start)
    return t.as_strided((size, *shape), (stride_of(t)[0], *stride), start), 0


def _check_window(t: Tensor, shape: tuple, stride: tuple, start: int) -> None:
    """An example sees its own memory: a window that goes beyond it would show the next example's."""
    call = f"Tensor.as_strided(size={list(shape)}, stride={list(stride)}, storage_offset={start})"
    if len(shape) != len(stride):
        raise RuntimeError(f"{call}: size and stride must have the same length")
    if 0 in shape:
        return
    own, last = 0, start
    for n, s in zip(t.shape[1:], stride_of(t)[1:], strict=True):
        own += (n - 1) * s
    for n, s in zip(shape, stride, strict=True):
        last += (n - 1) * s
    if 0 in t.shape[1:] or start < t._offset or last > t._offset + own:
        raise RuntimeError(
            f"{call} reaches memory outside of an example of shape {list(t.shape[1:])}. This is not supported inside of "
            "vmap; please write it as a sequence of views"
        )


def batch_same(op, args: tuple, dims: tuple, size: int):
    """Operators that do not look at dimensions at all."""
    return op(*args), dims[0]
