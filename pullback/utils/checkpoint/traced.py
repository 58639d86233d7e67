"""Checkpoints inside traces: there, a partitioner decides what is computed again, and the region only says what may be.

In a program that is being captured a checkpointed call becomes one call of `tag_activation_checkpoint`; in an
ahead-of-time trace the region's nodes are tagged. Outside of both, and in other traces, nothing is done here.
"""

from __future__ import annotations

from collections.abc import Callable

from ...capture.higher_order import checkpoint as regions
from ...capture.trace.tagging import Tagged, recording_trace
from ...core import modes
from ...core.layers import above
from ...core.modes import ambient
from ...core.tensor import Tensor
from ...core.tree import tree_flatten, tree_unflatten
from .calls import checkpoint, noop_context_fn

_NO_POLICY = (
    "checkpoint: inside a compiled function, context_fn must be one that create_selective_checkpoint_contexts makes: other "
    "contexts are not implemented there"
)


def call_traced(function: Callable, args: tuple, kwargs: dict, context_fn: Callable | None, preserve: bool):
    """A checkpointed call inside a trace that knows what to do with it; NotImplemented elsewhere."""
    if ambient.mode & modes.CAPTURE:
        return _captured(function, args, kwargs, context_fn, preserve)
    trace = recording_trace()
    if trace is None or not trace.partitioned:
        return NotImplemented
    with Tagged(trace, _policy(context_fn)):
        return function(*args, **kwargs)


def _policy(context_fn: Callable | None) -> Callable | None:
    if context_fn is None:
        return None
    policy = getattr(context_fn()[0], "policy", None)
    if policy is None:
        raise NotImplementedError(_NO_POLICY)
    return policy


def _captured(function: Callable, args: tuple, kwargs: dict, context_fn: Callable | None, preserve: bool):
    """One call in the captured graph. The graph's function takes and gives flat tensors; other values stay as they were."""
    trace = ambient.captures[-1]
    if context_fn is not None and getattr(context_fn()[0], "policy", None) is None:
        trace.refuse(_NO_POLICY)
    leaves, spec = tree_flatten((args, kwargs))
    places = [i for i, v in enumerate(leaves) if isinstance(v, Tensor)]
    found: dict = {}

    def region(*given):
        values = list(leaves)
        for i, t in zip(places, given[: len(places)], strict=True):
            values[i] = t
        inner, named = tree_unflatten(values, spec)
        found["leaves"], found["spec"] = tree_flatten(function(*inner, **named))
        return tuple(v for v in found["leaves"] if isinstance(v, Tensor))

    options = {"use_reentrant": False, "preserve_rng_state": preserve}
    result = regions.tag_activation_checkpoint.capture_rule(
        trace, region, *[leaves[i] for i in places], context_fn=context_fn, **options
    )
    tensors = iter(result)
    return tree_unflatten([next(tensors) if isinstance(v, Tensor) else v for v in found["leaves"]], found["spec"])


def run_region(graph, args: tuple, options: dict):
    """A captured region where nothing traces: a checkpointed call of its graph."""
    context_fn = graph.meta.get(regions.CONTEXT) or noop_context_fn
    preserve = options.get("preserve_rng_state", True)
    return checkpoint(graph, *args, use_reentrant=False, context_fn=context_fn, preserve_rng_state=preserve)


above.run_region = run_region
