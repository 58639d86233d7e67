"""`map`: a function of each slice of some tensors, by itself; the results stacked.

In: `f(x, *args)`, tensors whose slices along the first dimension are the x's, and what all calls share. Out: the outputs
of all calls, stacked along the first dimension.
"""

from __future__ import annotations

from collections.abc import Callable

from ...batching.batched import make_batched, outside, unwrap
from ...batching.vmap import vmap
from ...core import tree
from ...core.tensor import Tensor
from ...ops.system.operator import public
from .autograd import recorded, wanted_of
from .backward import backward_graph
from .base import HigherOrderOperator, Part
from .cond import flattened, is_traced
from .consistency import refusal
from .scan import stacked_fake
from .subgraph import Example, examples, fake_mode_for


class Map(HigherOrderOperator):
    """`torch.ops.higher_order.map_impl(f, xs, pos_args)`, on flat lists."""

    runs_once = False
    prefixes = ("body_graph_",)

    def __init__(self) -> None:
        super().__init__("map_impl")

    def __call__(self, f, xs, pos_args):
        return super().__call__(f, list(xs), list(pos_args))

    def parts(self, f, xs, pos_args) -> list[Part]:
        return [Part(0, "map", [*examples(xs, sliced=True), *examples(pos_args)])]

    def extended(self, args: tuple, free: list[Tensor]) -> tuple:
        return args[0], args[1], [*args[2], *free]

    def plain(self, f, xs, pos_args):
        stack = public("torch", "stack")
        outs = [tree.tree_flatten(f(*x, *pos_args)) for x in zip(*[t.unbind(0) for t in xs], strict=True)]
        for leaves, _ in outs:
            self.check_outputs(leaves)
        columns = zip(*[leaves for leaves, _ in outs], strict=True)
        return tree.tree_unflatten([None if c[0] is None else stack(list(c)) for c in columns], outs[0][1])

    def fake_rule(self, mode, f, xs, pos_args):
        with mode:
            out = f(*[Example(t, sliced=True).fake(mode) for t in xs], *pos_args)
        self.check_outputs(tree.tree_leaves(out))
        return tree.tree_map_only(Tensor, lambda t: stacked_fake(mode, t, xs[0]._array.shape[0]), out)

    def check_outputs(self, leaves: list) -> None:
        for v in leaves:
            if v is not None and not isinstance(v, Tensor):
                raise refusal(self.shown_name, f"Expected all leaves to be of torch.Tensor type, but got {type(v)}.")

    def autograd(self, f, xs, pos_args):
        operands, count = (*xs, *pos_args), len(xs)
        wanted = wanted_of(operands)
        given = [*examples(xs, sliced=True), *examples(pos_args)]
        result = backward_graph(f, given, wanted, fake_mode_for(operands))
        slices = sum(wanted[:count])

        def step(*values):
            n_gs = len(values) - len(operands)
            x, gs, shared = values[:count], values[count : count + n_gs], values[count + n_gs :]
            return list(result.graph(*x, *shared, *gs))

        def backward(values, gs):
            grads = self(step, [*values[:count], *gs], list(values[count:]))
            return [g if i < slices else g.sum(0) for i, g in enumerate(grads)]

        return recorded(lambda values: self(f, list(values[:count]), list(values[count:])), backward, operands)

    def vmap_rule(self, level, f, xs, pos_args):
        slices, shared = ([unwrap(t, level) for t in group] for group in (xs, pos_args))
        dims = [None if d is None else 0 for _, d in slices] + [d for _, d in shared]
        batched = f if all(d is None for d in dims) else vmap(f, tuple(dims), randomness=level.randomness)
        with outside(level):
            moved = [t if d is None else t.movedim(d, 1) for t, d in slices]
            out = self(batched, moved, [t for t, _ in shared])
        if batched is f:
            return out
        return tree.tree_map_only(Tensor, lambda t: make_batched(t, 1, level), out)


map_impl = Map()


def map(f: Callable, xs, *args):
    """`f(x, *args)` for each slice x of the tensors in `xs`, the outputs stacked; in a graph, one node."""
    slices, xs_spec = tree.tree_flatten(xs)
    shared, args_spec = tree.tree_flatten(args)
    if not all(isinstance(t, Tensor) for t in slices):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {slices}.")
    shapes = [t.shape for t in slices]
    if shapes[0][0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if any(s[0] != shapes[0][0] for s in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    kept: list = []

    def nested(*values):
        values = list(values)
        x = tree.tree_unflatten(values[: len(slices)], xs_spec)
        return f(x, *tree.tree_unflatten(values[len(slices) :], args_spec))

    flat = flattened(nested, tree.tree_flatten((*slices, *shared))[1], kept)
    run = map_impl if is_traced([*slices, *shared]) else map_impl.plain
    return tree.tree_unflatten(list(run(flat, slices, shared)), kept[0])
