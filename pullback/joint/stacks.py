"""The user's lines: on the nodes of a backward graph, those of the forward call whose gradient they compute; on errors
of a graph that runs, those that made the node that failed."""

from __future__ import annotations

from collections.abc import Iterable

from ..autograd.methods import register_node_hook, register_node_prehook
from ..core.node import Node
from ..graph import traceback
from ..graph.lines import stack_behind


def setup_stacktrace_preservation_hooks(roots: Iterable[Node | None]) -> None:
    """Let each node of a backward graph, while it runs, say where its forward call was made (`graph.traceback.current_meta`)."""
    seen: set[Node] = set()
    left = [n for n in roots if n is not None]
    while left:
        node = left.pop()
        if node in seen or node is None:
            continue
        seen.add(node)
        left += [n for n, _ in node.next_functions if n is not None]
        stack = node.metadata.get("traceback_")
        register_node_prehook(node, _enter(node, stack))
        register_node_hook(node, _leave(node))


def _enter(node: Node, stack):
    def before(grads):
        if stack:
            traceback.set_stack_trace(stack)
        traceback.set_grad_fn_seq_nr(node._sequence_nr())

    return before


def _leave(node: Node):
    def after(grad_inputs, grad_outputs):
        traceback.reset_grad_fn_seq_nr()

    return after


def note_users_line(error: BaseException) -> None:
    """Add to an error that a graph's generated code raised the line of the user's program that the failing node is of."""
    at = error.__traceback__
    while at is not None:
        where = stack_behind(at.tb_frame, at.tb_lasti)
        if where and where not in "".join(getattr(error, "__notes__", ())):
            error.add_note(f"Original traceback:\n{where}")
        at = at.tb_next
