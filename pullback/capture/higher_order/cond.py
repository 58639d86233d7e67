"""`cond`: one of two functions, chosen by a value.

In: a boolean (a number, or a tensor with one element), two functions, their operands. Out: what the chosen function gives.
In a graph both functions are there, and their outputs must agree in everything but sizes; those may differ where the
fake mode has symbols for them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ...batching.batched import make_batched, outside, unwrap
from ...batching.vmap import vmap
from ...core import modes, tree
from ...core.modes import ambient
from ...core.tensor import FAKE, TRANSFORMED, Tensor, stride_of
from ...graph import Node
from ...ops.system.operator import public
from .autograd import recorded, wanted_of
from .backward import backward_graph
from .base import HigherOrderOperator, Part, naming_errors
from .consistency import refusal
from .subgraph import examples, fake_mode_for
from .unknowns import fresh_number, fresh_size


def check_operands(operands) -> None:
    """Operands of functions are tensors and integers."""
    if not all(isinstance(v, (Tensor, int)) or getattr(v, "is_symbolic", False) for v in operands):
        raise AssertionError(f"{operands} can only be tensors and integers but got {tuple(type(v) for v in operands)}")


class Cond(HigherOrderOperator):
    """`torch.ops.higher_order.cond(pred, true_fn, false_fn, operands)`."""

    schema_names = ("pred", "true_fn", "false_fn", "operand")
    runs_once = False
    prefixes = ("true_graph_", "false_graph_")

    def __init__(self) -> None:
        super().__init__("cond")

    def __call__(self, pred, true_fn, false_fn, operands):
        check_operands(operands)
        return super().__call__(pred, true_fn, false_fn, operands)

    def parts(self, pred, true_fn, false_fn, operands) -> list[Part]:
        given = examples(operands)
        return [Part(1, "cond_true", given), Part(2, "cond_false", given)]

    def extended(self, args: tuple, free: list[Tensor]) -> tuple:
        return (*args[:3], (*args[3], *free))

    def plain(self, pred, true_fn, false_fn, operands):
        if isinstance(pred, Tensor) and pred._keys & TRANSFORMED:
            return chosen(pred, true_fn(*operands), false_fn(*operands))
        return true_fn(*operands) if pred else false_fn(*operands)

    def autograd(self, pred, true_fn, false_fn, operands):
        fake_mode, wanted = fake_mode_for((pred, operands)), wanted_of(operands)
        graphs = [backward_graph(f, examples(operands), wanted, fake_mode).graph for f in (true_fn, false_fn)]
        return recorded(
            lambda values: self(pred, true_fn, false_fn, tuple(values)),
            lambda values, gs: self(pred, *graphs, (*values, *gs)),
            operands,
        )

    def trace_rule(self, trace, pred, true_fn, false_fn, operands):
        if not isinstance(pred, Tensor) and not getattr(pred, "is_symbolic", False):
            with trace:
                return true_fn(*operands) if pred else false_fn(*operands)
        return super().trace_rule(trace, pred, true_fn, false_fn, tuple(operands))

    def traced_functions(self, trace, args: tuple) -> tuple:
        result = super().traced_functions(trace, args)
        true, false = (tree.tree_leaves(next(reversed(graph.graph.nodes)).args[0]) for graph in result[1:3])
        if len(true) != len(false):
            raise refusal(
                self.shown_name,
                "Expected to return same number of outputs but got:"
                f"\n  true branch returns {len(true)} item(s)\n  false branch returns {len(false)} item(s)",
            )
        for a, b in zip(true, false, strict=True):
            values = [n.meta.get("val") if isinstance(n, Node) else n for n in (a, b)]
            if all(isinstance(v, Tensor) for v in values):
                check_alike(*values)
        return result

    def fake_rule(self, mode, pred, true_fn, false_fn, operands):
        with mode:
            (true, true_spec), (false, false_spec) = (tree.tree_flatten(f(*operands)) for f in (true_fn, false_fn))
        if true_spec != false_spec:
            raise unmatched(true_spec, false_spec)
        return tree.tree_unflatten([merged(mode, a, b) for a, b in zip(true, false, strict=True)], true_spec)

    def vmap_rule(self, level, pred, true_fn, false_fn, operands):
        value, dim = unwrap(pred, level)
        if dim is not None:
            return chosen(pred, true_fn(*operands), false_fn(*operands))
        pairs = [unwrap(t, level) for t in operands]
        values, dims = tuple(v for v, _ in pairs), tuple(d for _, d in pairs)
        if all(d is None for d in dims):
            with outside(level):
                return self(pred, true_fn, false_fn, values)
        batched = [vmap(f, dims, randomness=level.randomness) for f in (true_fn, false_fn)]
        with outside(level):
            out = self(value, *batched, values)
        return tree.tree_map_only(Tensor, lambda t: make_batched(t, 0, level), out)


def unmatched(true_spec, false_spec) -> Exception:
    """The error for branches whose outputs are nested differently."""
    return refusal(
        cond_op.shown_name,
        f"Unmatched output spec from torch.cond branches: true branch tree_spec {true_spec} vs false branch tree_spec {false_spec}.",
    )


def chosen(pred: Tensor, true, false):
    """Element by element, where every example of a batch has a choice of its own."""
    where = public("torch", "where")
    pred = pred.reshape(())
    return tree.tree_map(lambda a, b: where(pred, a, b) if isinstance(a, Tensor) else a, true, false)


def merge_output(a, b, mode):
    """`merged`, with its arguments as PyTorch orders them."""
    return merged(mode, a, b)


def merged(mode, a, b):
    """One fake for what either of two functions may give."""
    if a is None and b is None:
        return None
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _merged_tensor(mode, a, b)
    if isinstance(a, Tensor) or isinstance(b, Tensor) or a is None or b is None:
        raise RuntimeError(f"the branches of torch.cond give {type(a).__name__} and {type(b).__name__} for one output")
    return a if type(a) is type(b) and a == b else _unbacked(mode, a, b)


def _unbacked(mode, a, b):
    return fresh_number(mode, _only_symbolic(a, b))


def _unbacked_size(mode, a, b):
    return fresh_size(mode, _only_symbolic(a, b))


def _only_symbolic(a, b) -> RuntimeError:
    return RuntimeError(f"the branches of torch.cond give {a} and {b}: without symbolic sizes they must be the same")


def check_alike(a: Tensor, b: Tensor) -> None:
    """Refuse outputs of two branches that differ in more than sizes."""
    for name in ("dtype", "device", "layout", "dim"):
        left, right = (v() if callable(v := getattr(t, name)) else v for t in (a, b))
        if left != right:
            raise RuntimeError(
                f"When merging two branches' output in torch.cond,  expected same {name} but got {left} and {right}."
            )


def _merged_tensor(mode, a: Tensor, b: Tensor) -> Tensor:
    check_alike(a, b)
    shapes, strides = ([tuple(t._array.shape) for t in (a, b)], [tuple(stride_of(t)) for t in (a, b)])
    if shapes[0] == shapes[1] and strides[0] == strides[1]:
        return mode.make(shapes[0], strides[0], a.dtype, a.device)
    shape = tuple(m if m == n else _unbacked_size(mode, m, n) for m, n in zip(*shapes, strict=True))
    return mode.make(shape, _merged_strides(shapes, strides, shape), a.dtype, a.device)


def _merged_strides(shapes: list[tuple], strides: list[tuple], shape: tuple) -> tuple:
    """The strides that both branches have, in terms of the sizes of what either gives: dimensions lie in the same order in both, and
    each stride is 0 or 1 in both, or what the dimensions inside of it take."""
    counted = [d for d, sizes in enumerate(zip(*shapes, strict=True)) if sizes != (1, 1)]  # others say nothing
    orders = [sorted(counted, key=lambda d, own=own: (own[d], -d)) for own in strides]
    if orders[0] != orders[1]:
        raise _differently_laid(strides)
    taken: list[dict] = [{}, {}]  # of each branch: what the dimensions so far take -> the same of the result
    result: dict[int, Any] = {}
    for d in orders[0]:
        found = [own[d] for own in strides]
        known = [own.get(step) for own, step in zip(taken, found, strict=True)]
        if found[0] == found[1] and found[0] in (0, 1):
            stride = found[0]
        elif known[0] is not None and known[0] is known[1]:
            stride = known[0]
        else:
            raise _differently_laid(strides)
        result[d] = stride
        span = stride * shape[d]
        for own, sizes, step in zip(taken, shapes, found, strict=True):
            own[step * (sizes[d] if sizes[d] != 0 else 1)] = span  # strides are those of at least one element
    for d, (m, n) in enumerate(zip(*strides, strict=True)):
        if d not in result:
            if (m == 0) != (n == 0):
                raise _differently_laid(strides)
            result[d] = m if m == n else taken[0].get(m, 1)
    return tuple(result[d] for d in range(len(shape)))


def _differently_laid(strides: list[tuple]) -> RuntimeError:
    return RuntimeError(
        "The sorted order of strides of the two branches' output doesn't match."
        "this indicates the contiguousness of the two branches are different. "
        f"True branch has stride {strides[0]} but false branch has stride {strides[1]}."
        "Consider using contiguous() to make the two branches have the same contiguousness."
    )


cond_op = Cond()


def flattened(f: Callable, spec, kept: list) -> Callable:
    """`f` on the leaves of its operands, giving the leaves of its output as a tuple; the structure goes to `kept`."""

    def flat(*leaves):
        out, out_spec = tree.tree_flatten(f(*tree.tree_unflatten(list(leaves), spec)))
        kept.append(out_spec)
        return tuple(out)

    return flat


def is_traced(leaves) -> bool:
    """Whether something records what happens: a dispatch mode, or fake tensors."""
    return bool(ambient.mode & modes.DISPATCH) or any(isinstance(t, Tensor) and t._keys & FAKE for t in leaves)


def cond(pred, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """`true_fn(*operands)` if `pred` else `false_fn(*operands)`; in a graph, one node that holds both.

    >>> torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x - 1, (torch.tensor([1.0]),))
    tensor([2.])
    """
    if isinstance(pred, (bool, int, float)):
        if ambient.captures:
            warnings.warn(
                "Pred is a Python constant. When used with torch.cond, it specializes on one of the branches: to keep both, make it a "
                "boolean tensor or a SymBool.", stacklevel=2,
            )  # fmt: skip
        return true_fn(*operands) if pred else false_fn(*operands)
    with naming_errors(cond_op.shown_name):
        _check(pred, true_fn, false_fn, operands)
    leaves, spec = tree.tree_flatten(operands)
    if not is_traced([pred, *leaves]):
        return cond_op.plain(pred, true_fn, false_fn, operands)
    kept: list = []
    out = cond_op(pred, flattened(true_fn, spec, kept), flattened(false_fn, spec, kept), tuple(leaves))
    if not isinstance(out, (tuple, list)):  # a mode has answered for the operator
        return out
    if any(s != kept[0] for s in kept):
        raise unmatched(kept[0], next(s for s in kept if s != kept[0]))
    return tree.tree_unflatten(list(out), kept[0])


def _check(pred, true_fn, false_fn, operands) -> None:
    if not isinstance(pred, Tensor) and not getattr(pred, "is_symbolic", False):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not all(isinstance(t, Tensor) for t in tree.tree_leaves(operands)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only "
            f"consists of tensor leaves, but got {operands}."
        )
