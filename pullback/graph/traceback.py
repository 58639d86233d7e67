"""Where nodes come from: metadata that is handed from the code being traced, or a graph being run, to new nodes.

In: stacks and annotations set around a piece of tracing. Out: `current_meta`, which tracers copy onto the nodes they
make. What always holds: nothing is kept unless `preserve_node_meta` is on, and every context restores what it found.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from .source import NodeSource, NodeSourceAction

current_meta: dict[str, Any] = {}
current_replay_node: Any = None
should_preserve_node_meta = False
GRADIENT_ACC_SPECIAL_STACK = "Gradient addition node due to multiple use of tensor around:"

# What a tracer copies from `current_meta` to the nodes it makes.
COPIED_FIELDS = (
    "nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id", "has_backward_hook",
    "from_node", "quantization_tag", "_numeric_debug_handle", "partitioner_tag", "arg_kwarg_vals", "custom",
)  # fmt: skip


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """While active, metadata goes from running nodes and from the user's stack to the nodes being made."""
    global should_preserve_node_meta, current_meta
    saved = should_preserve_node_meta, current_meta
    should_preserve_node_meta, current_meta = enable, dict(current_meta)
    try:
        yield
    finally:
        should_preserve_node_meta, current_meta = saved


def has_preserved_node_meta() -> bool:
    return should_preserve_node_meta


def get_current_meta() -> dict[str, Any]:
    return current_meta


def set_stack_trace(stack: list[str]) -> None:
    """Give the nodes made from now on this stack, where metadata is preserved."""
    if should_preserve_node_meta and stack:
        current_meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """The stack that new nodes get, or else the Python stack."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextlib.contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """While active, new nodes get the metadata of `node`: what a graph being run does around each of its nodes."""
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    saved = current_meta
    current_meta = dict(node.meta)
    current_meta["from_node"] = [NodeSource(node, pass_name, NodeSourceAction.CREATE)]
    try:
        yield
    finally:
        current_meta = saved


@contextlib.contextmanager
def set_current_replay_node(node: Any) -> Iterator[None]:
    """While active, new nodes are known to make `node` again."""
    global current_replay_node
    saved, current_replay_node = current_replay_node, node
    try:
        yield
    finally:
        current_replay_node = saved


def get_current_replay_node() -> Any:
    return current_replay_node


@contextlib.contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """While active, new nodes carry these entries in `meta["custom"]`; inner annotations win."""
    global current_meta
    had = "custom" in current_meta
    before = current_meta.get("custom", {})
    current_meta["custom"] = {**before, **annotation_dict}
    try:
        yield
    finally:
        if had:
            current_meta["custom"] = before
        else:
            current_meta.pop("custom", None)


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable], Callable]:
    """`annotate` around every call of a function."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated

    return decorate


# ---- the backward pass
def set_grad_fn_seq_nr(seq_nr: int) -> None:
    """From here on, nodes are recorded for the backward of the forward call with this number."""
    if should_preserve_node_meta:
        current_meta["grad_fn_seq_nr"] = [*current_meta.get("grad_fn_seq_nr", ()), seq_nr]
        current_meta["in_grad_fn"] = current_meta.get("in_grad_fn", 0) + 1


def reset_grad_fn_seq_nr() -> None:
    """Back to before the last `set_grad_fn_seq_nr`."""
    if not should_preserve_node_meta:
        return
    level = current_meta.get("in_grad_fn", 0)
    if level <= 0:
        raise AssertionError(f"Expected current_level > 0, got {level}")
    if level == 1:
        del current_meta["in_grad_fn"], current_meta["grad_fn_seq_nr"]
    else:
        current_meta["in_grad_fn"] = level - 1
        current_meta["grad_fn_seq_nr"] = current_meta["grad_fn_seq_nr"][:-1]


def give_meta(node: Any) -> None:
    """Put the current metadata on a node just made."""
    trace = current_meta.get("stack_trace")
    meta = node.meta
    if trace:
        meta["stack_trace"] = trace
        if GRADIENT_ACC_SPECIAL_STACK in trace:
            meta["is_gradient_acc"] = meta["autograd_backward"] = True
    for field in COPIED_FIELDS:
        if field in current_meta:
            meta[field] = copy.copy(current_meta[field])
    numbers = current_meta.get("grad_fn_seq_nr")
    if numbers:
        meta["seq_nr"] = numbers[-1]
    elif "seq_nr" in current_meta:
        meta["seq_nr"] = current_meta["seq_nr"]
    if current_meta.get("autograd_backward", False):
        meta["autograd_backward"] = True
    _give_replay(meta)


def _give_replay(meta: dict[str, Any]) -> None:
    if current_replay_node is None:
        return
    meta["is_functional_regenerated"] = True
    for field in ("custom", "stack_trace"):
        if field in current_replay_node.meta:
            meta[field] = current_replay_node.meta[field]


def get_graph_provenance_json(graph: Any) -> dict[str, Any]:
    """For each node that knows, the nodes it was made from, as plain dicts."""
    return {
        node.name: [source.to_dict() for source in node.meta["from_node"]]
        for node in graph.nodes
        if "from_node" in node.meta
    }


__all__ = [
    "annotate", "annotate_fn", "preserve_node_meta", "has_preserved_node_meta", "set_stack_trace", "set_grad_fn_seq_nr",
    "reset_grad_fn_seq_nr", "format_stack", "set_current_meta", "get_current_meta", "NodeSource", "NodeSourceAction",
    "get_graph_provenance_json", "set_current_replay_node", "get_current_replay_node",
]  # fmt: skip
