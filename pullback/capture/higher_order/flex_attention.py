"""Attention with functions of one's own, as one operator.

In: query, key, value; `score_mod` and the mask function of a block mask, both of single elements (score, batch, head,
query, key) and of buffers they close over. Out: the result, the logarithm of the sum of exponentials of each row of
scores, and the largest score of each row. The computation is dense and exact: what the blocks of the mask say is not used.

The backward operator computes the scores again and differentiates them; it has gradients for the buffers too.
"""

from __future__ import annotations

from collections.abc import Callable

from ...autograd import grad
from ...batching.vmap import vmap
from ...core import dtype as dtypes
from ...core import modes, tree
from ...core.geometry import contiguous_strides
from ...core.modes import enable_grad
from ...core.tensor import Tensor
from ...graph import GraphModule
from ...nn.attention.flex_attention import attend
from ...ops.system.operator import public
from ...ops.system.overrides import TorchFunctionMode
from ...ops.system.packet import ops
from .autograd import recorded, wanted_of
from .backward import backward_graph
from .base import HigherOrderOperator, autograd_not_implemented, replaced
from .cond import check_operands
from .subgraph import Closed, Example, examples, fake_mode_for, is_closed, trace_subgraph, with_origins

QUERY, KEY, VALUE, SCORE_MOD, BLOCK_MASK, SCALE, OPTIONS, SCORE_BUFFERS, MASK_BUFFERS = range(9)
FORWARD, JOINT, MASK, SHARED = 6, 7, 8, 11  # places in the backward's arguments


class TransformGetItemToIndex(TorchFunctionMode):
    """`buffer[i, j]` with tensors of no dimension as indices: a lookup, not a conversion to Python numbers."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is Tensor.__getitem__:
            index = tree.tree_leaves(args[1])
            if any(isinstance(i, Tensor) for i in index) and all(isinstance(i, (Tensor, int)) for i in index):
                result = [i if isinstance(i, Tensor) else args[0].new_tensor(i, dtype=dtypes.int64) for i in index]
                return ops.aten.index.Tensor(args[0], result)
        return func(*args, **(kwargs or {}))


def looked_up(f: Callable) -> Callable:
    """A function of single elements, with lookups by index tensors."""

    def call(*args):
        with TransformGetItemToIndex():
            return f(*args)

    return call


def element_examples(query: Tensor, buffers, score: bool) -> list[Example]:
    """What the functions are traced with: one score, four indices, the buffers."""
    working = dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32
    empty = public("torch", "empty")
    with modes.masked(modes.DISPATCH):
        first = [empty((), dtype=working)] if score else []
        numbers = [empty((), dtype=dtypes.int32) for _ in range(4)]
    return [*examples([*first, *numbers]), *examples(buffers)]


def over_all(f: Callable, buffers, score: bool) -> Callable:
    """A function of single elements, on all of them at once.

    A graph was made of single elements and is mapped over them; a user's function takes tensors that broadcast.
    """
    if not isinstance(f, (GraphModule, Closed)):
        return lambda *args: f(*args, *buffers)
    none = (None,) * len(buffers)
    mapped = f
    for which in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
        mapped = vmap(mapped, ((0,) if score else ()) + which + none)
    return lambda *args: mapped(*args[:-4], *[i.reshape(-1) for i in args[-4:]], *buffers)


class FlexAttention(HigherOrderOperator):
    """`torch.ops.higher_order.flex_attention(query, key, value, score_mod, block_mask, scale, kernel_options, ...)`."""

    prefixes = ("sdpa_score", "sdpa_mask")

    def __init__(self) -> None:
        super().__init__("flex_attention", cacheable=True)

    def __call__(
        self, query, key, value, score_mod, block_mask, scale, kernel_options, score_mod_other_buffers=(),
        mask_mod_other_buffers=(),
    ):  # fmt: skip
        buffers = tuple(score_mod_other_buffers), tuple(mask_mod_other_buffers)
        check_operands(buffers[0] + buffers[1])
        return super().__call__(query, key, value, score_mod, tuple(block_mask), scale, kernel_options, *buffers)

    def closed(self, args: tuple, close: Callable) -> tuple:
        if all(is_closed(f) for f in (args[SCORE_MOD], args[BLOCK_MASK][-1])):
            return args
        query = args[QUERY]
        given = element_examples(query, args[SCORE_BUFFERS], True)
        (score,), more = close([(looked_up(args[SCORE_MOD]), given)])
        given = element_examples(query, args[MASK_BUFFERS], False)
        (mask,), rest = close([(looked_up(args[BLOCK_MASK][-1]), given)])
        result = list(args)
        result[SCORE_MOD], result[BLOCK_MASK] = score, (*args[BLOCK_MASK][:-1], mask)
        result[SCORE_BUFFERS], result[MASK_BUFFERS] = (*args[SCORE_BUFFERS], *more), (*args[MASK_BUFFERS], *rest)
        return tuple(result)

    def plain(self, query, key, value, score_mod, block_mask, scale, kernel_options, score_buffers=(), mask_buffers=()):
        score, mask = over_all(score_mod, score_buffers, True), over_all(block_mask[-1], mask_buffers, False)
        out, scores = attend(query, key, value, score, mask, scale)
        return out, scores.logsumexp(-1), scores.amax(-1)

    def fake_rule(
        self, mode, query, key, value, score_mod, block_mask, scale, options, score_buffers=(), mask_buffers=()
    ):
        shape = (*query._array.shape[:-1], value._array.shape[-1])
        row = tuple(query._array.shape[:-1])
        working = dtypes.float64 if query.dtype is dtypes.float64 else dtypes.float32
        rows = [mode.make(row, contiguous_strides(row), working, query.device) for _ in range(2)]
        return mode.make(shape, contiguous_strides(shape), query.dtype, query.device), *rows

    def traced_functions(self, trace, args: tuple) -> tuple:
        fake_mode = trace.fake_mode or fake_mode_for(args)
        score = trace_subgraph(
            args[SCORE_MOD], element_examples(args[QUERY], args[SCORE_BUFFERS], True), fake_mode, like=trace
        ).module()
        mask = trace_subgraph(
            args[BLOCK_MASK][-1], element_examples(args[QUERY], args[MASK_BUFFERS], False), fake_mode, like=trace
        ).module()
        return replaced(args, {SCORE_MOD: score, BLOCK_MASK: (*args[BLOCK_MASK][:-1], mask)})

    def functional_rule(self, mode, *args):
        result = [tree.tree_map_only(Tensor, mode.value, a) for a in args]
        result[SCORE_MOD] = mode.functional(with_origins(args[SCORE_MOD]), "score_mod", self.shown_name)
        mask = mode.functional(with_origins(args[BLOCK_MASK][-1]), "mask_mod", self.shown_name)
        result[BLOCK_MASK] = (*result[BLOCK_MASK][:-1], mask)
        return self(*result)

    def autograd(self, *args):
        operands = (*args[:3], *args[SCORE_BUFFERS])
        wanted = wanted_of(operands)
        given = element_examples(args[QUERY], args[SCORE_BUFFERS], True)
        inner = [True, *[False] * 4, *wanted[3:]]
        joint = backward_graph(args[SCORE_MOD], given, inner, fake_mode_for(args)).graph

        def forward(values):
            return self(*values[:3], *args[3:SCORE_BUFFERS], tuple(values[3:]), args[MASK_BUFFERS])

        def backward(values, gs):
            rest = args[BLOCK_MASK], args[SCALE], args[OPTIONS], tuple(values[3:]), args[MASK_BUFFERS]
            result = flex_attention_backward_op(*values[:3], *gs, args[SCORE_MOD], joint, *rest)
            return [g for g, want in zip((*result[:3], *result[3]), wanted, strict=True) if want]

        return recorded(forward, backward, operands)


class FlexAttentionBackward(HigherOrderOperator):
    """The gradients of query, key, value and of the score function's buffers; `joint_graph` is for other backends."""

    prefixes = ("fw_graph", "joint_graph", "mask_graph")

    def __init__(self) -> None:
        super().__init__("flex_attention_backward", cacheable=True)

    def __call__(
        self, query, key, value, grad_out, grad_logsumexp, grad_max_scores, fw_graph, joint_graph, block_mask, scale,
        kernel_options, score_mod_other_buffers=(), mask_mod_other_buffers=(),
    ):  # fmt: skip
        return super().__call__(
            query, key, value, grad_out, grad_logsumexp, grad_max_scores, fw_graph, joint_graph, tuple(block_mask),
            scale, kernel_options, tuple(score_mod_other_buffers), tuple(mask_mod_other_buffers),
        )  # fmt: skip

    def plain(
        self, query, key, value, g, g_lse, g_largest, fw_graph, joint_graph, block_mask, scale, options,
        score_buffers=(), mask_buffers=(),
    ):  # fmt: skip
        with enable_grad(), modes.masked(modes.BELOW_AUTOGRAD):
            leaves = [_leaf(t) for t in (query, key, value, *score_buffers)]
            forward = flex_attention_op.plain
            out, lse, largest = forward(
                *leaves[:3], fw_graph, block_mask, scale, options, tuple(leaves[3:]), mask_buffers
            )
            targets = [t for t in leaves if isinstance(t, Tensor) and t.requires_grad]
            hidden = lse.detach() == -float("inf")  # rows that see nothing have no gradient through their scores
            rows = [t.masked_fill(hidden, 0.0) for t in (lse, largest)]
            result = iter(grad([out, *rows], targets, [g, g_lse, g_largest], materialize_grads=True))
        grads = [next(result) if isinstance(t, Tensor) and t.requires_grad else None for t in leaves]
        return (*grads[:3], tuple(grads[3:]))

    def fake_rule(self, mode, query, key, value, *rest):
        def like(t):
            shape = tuple(t._array.shape)
            return mode.make(shape, contiguous_strides(shape), t.dtype, t.device)

        buffers = rest[SHARED - 3] if len(rest) > SHARED - 3 else ()
        floating = [like(t) if isinstance(t, Tensor) and t.dtype.is_floating_point else None for t in buffers]
        return (*[like(t) for t in (query, key, value)], tuple(floating))

    def traced_functions(self, trace, args: tuple) -> tuple:
        fake_mode, query = trace.fake_mode or fake_mode_for(args), args[QUERY]
        given = element_examples(query, args[SHARED], True)
        forward = trace_subgraph(args[FORWARD], given, fake_mode, like=trace).module()
        joint = trace_subgraph(args[JOINT], [*given, given[0]], fake_mode, like=trace).module()
        given = element_examples(query, args[SHARED + 1], False)
        mask = trace_subgraph(args[MASK][-1], given, fake_mode, like=trace).module()
        return replaced(args, {FORWARD: forward, JOINT: joint, MASK: (*args[MASK][:-1], mask)})

    def functional_rule(self, mode, *args):
        result = [tree.tree_map_only(Tensor, mode.value, a) for a in args]
        result[FORWARD] = mode.functional(with_origins(args[FORWARD]), "score_mod", self.shown_name)
        mask = mode.functional(with_origins(args[MASK][-1]), "mask_mod", self.shown_name)
        result[MASK] = (*result[MASK][:-1], mask)
        return self(*result)


def _leaf(t):
    if not isinstance(t, Tensor):
        return t
    t = t.detach()
    return t.requires_grad_() if t.dtype.is_floating_point else t


flex_attention_op = FlexAttention()
flex_attention_backward_op = FlexAttentionBackward()
flex_attention_backward_op.py_autograd_impl(autograd_not_implemented(flex_attention_backward_op, deferred_error=True))
