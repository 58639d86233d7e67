"""`associative_scan`: all prefixes of `x0 * x1 * x2 ...` for an operation that may be grouped at will.

In: `combine_fn(a, b)` on one element of `xs` (a tensor, or several in a pytree), which must be associative. Out: at each
place along `dim`, everything up to there combined. It is written in operators: pairs are combined, the prefixes of the
pairs found in the same way, and those in between filled in, so a scan of n elements takes 2 log n calls.
"""

from __future__ import annotations

from collections.abc import Callable

from ...batching.vmap import vmap
from ...core import tree
from ...core.geometry import wrap_dim
from ...core.tensor import Tensor
from ...ops.system.operator import public
from .base import HigherOrderOperator
from .subgraph import examples


class AssociativeScan(HigherOrderOperator):
    """`torch.ops.higher_order.associative_scan(combine_fn, xs, additional_inputs)`: the prefixes of flat `xs` along their
    first dimension. It is made of operators wherever it is called, also where something traces."""

    schema_names = ("combine_fn", "xs", "additional_input")

    def __init__(self) -> None:
        super().__init__("associative_scan")

    def __call__(self, combine_fn, xs, additional_inputs=()):
        dims = (0,) * (2 * len(xs)) + (None,) * len(additional_inputs)
        batched = vmap(combine_fn, dims)
        return tuple(_prefixes(lambda a, b: _combined(batched, a, b, additional_inputs), list(xs)))

    def schema_calls(self, combine_fn, xs, additional_inputs=()):
        steps = examples(xs, sliced=True)
        return [(combine_fn, [*steps, *steps, *examples(additional_inputs)])]


associative_scan_op = AssociativeScan()


def _combined(batched: Callable, a: list[Tensor], b: list[Tensor], additional: tuple) -> list[Tensor]:
    if not a[0].shape[0]:
        return a
    return tree.tree_leaves(batched(*a, *b, *additional))


def associative_scan(combine_fn: Callable, xs, dim: int, reverse: bool = False, combine_mode: str = "pointwise"):
    """An inclusive scan of `combine_fn` over the slices of `xs` along `dim`."""
    leaves, spec = tree.tree_flatten(xs)
    _check(combine_fn, leaves, dim, reverse, combine_mode)
    dim = wrap_dim(dim, leaves[0].ndim)
    if any(t.ndim <= dim or t.shape[dim] == 0 for t in leaves):
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    if any(t.shape[dim] != leaves[0].shape[dim] for t in leaves):
        raise ValueError("All xs leaves must have the same size along the scan dimension")
    moved = [t.movedim(dim, 0) for t in leaves]
    if reverse:
        moved = [t.flip([0]) for t in moved]
    zeros = tree.tree_unflatten([0] * len(leaves), spec)
    batched = vmap(combine_fn, (zeros, zeros))

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        if not a[0].shape[0]:
            return a
        out, out_spec = tree.tree_flatten(batched(tree.tree_unflatten(a, spec), tree.tree_unflatten(b, spec)))
        if out_spec != spec:
            raise RuntimeError(f"combine_fn must give what it takes: {spec}, but gave {out_spec}")
        return out

    out = _prefixes(combine, moved)
    if reverse:
        out = [t.flip([0]) for t in out]
    return tree.tree_unflatten([t.movedim(0, dim) for t in out], spec)


def _prefixes(combine: Callable, xs: list[Tensor]) -> list[Tensor]:
    count = xs[0].shape[0]
    if count < 2:
        return xs
    pairs = combine([t[:-1:2] for t in xs], [t[1::2] for t in xs])
    odd = _prefixes(combine, pairs)  # the prefixes that end at places 1, 3, 5, ...
    before = odd if count % 2 else [t[:-1] for t in odd]
    even = combine(before, [t[2::2] for t in xs])
    cat = public("torch", "cat")
    return [_interleaved(cat([x[:1], e]), o) for x, e, o in zip(xs, even, odd, strict=True)]


def _interleaved(even: Tensor, odd: Tensor) -> Tensor:
    """even[0], odd[0], even[1], ...; there may be one more of the even ones."""
    count = odd.shape[0]
    result = public("torch", "stack")([even[:count], odd], 1).reshape(2 * count, *odd.shape[1:])
    return public("torch", "cat")([result, even[count:]]) if even.shape[0] > count else result


def _check(combine_fn, leaves: list, dim, reverse, combine_mode) -> None:
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError("Dim must be an int, but got " + str(type(dim)))
    if not isinstance(reverse, bool):
        raise RuntimeError("Reverse must be a bool, but got " + str(type(reverse)))
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if not all(isinstance(t, Tensor) for t in leaves):
        raise ValueError("xs leaves must be a Tensor")
    if combine_mode == "pointwise" and not all(t.device.type in ("cuda", "xpu") for t in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    if any(t.is_sparse for t in leaves):
        raise ValueError("xs leaves must dense Tensors, consider using `to_dense()`")
