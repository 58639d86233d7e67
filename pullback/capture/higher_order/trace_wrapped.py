"""`trace_wrapped(*args, fn=f)`: f(*args), which tracing does not look into.

A trace records one call of `self_invoke`, and takes the result to be like the first argument: `f` is run when the graph
is, not before. So a hook with side effects can stand in a backward graph. Requirement: `f` gives a tensor with the
metadata of its argument.
"""

from __future__ import annotations

from ...core import tree
from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...ops.system.operator import public
from ..front.effects import effect_of, is_output
from .base import HigherOrderOperator, autograd_not_implemented


class TraceWrapped(HigherOrderOperator):
    """The operator behind `trace_wrapped`."""

    def __init__(self) -> None:
        super().__init__("trace_wrapped")

    def plain(self, *args, fn, **kwargs):
        return fn(*args, **kwargs)

    def trace_rule(self, trace, *args, bw_state=None, **kwargs):
        node = trace.create_node(_invoking(kwargs), trace.argument(args), _state_argument(bw_state), "trace_wrapped")
        like = args[1] if args[0] is None else args[0]  # module hooks have no input gradient first
        out = tree.tree_map_only(Tensor, public("torch", "empty_like"), like)
        trace.track(out, node)
        return out

    def capture_rule(self, trace, *args, fn, **kwargs):
        """A program that is captured above autograd contains what the function does, if it only computes."""
        effect = effect_of(fn)
        if effect is None:
            return fn(*args, **kwargs)
        if is_output(effect):
            trace.refuse(f"a function given to trace_wrapped {effect}")
        return self.trace_rule(trace, *args, fn=fn, **kwargs)

    def fake_rule(self, mode, *args, **kwargs):
        raise RuntimeError("This op should never be invoked here")


def _state_argument(bw_state) -> dict:
    if bw_state is None:
        return {}
    if bw_state.proxy is None:
        raise AssertionError("bw_state.proxy must not be None")
    return {"bw_state": getattr(bw_state.proxy, "node", bw_state.proxy)}


def _invoking(kwargs: dict):
    """What stands in the graph: the same call, with what was known when it was traced."""

    def self_invoke(*args, **more):
        with no_grad():
            return _trace_wrapped_op(*args, **more, **kwargs)

    self_invoke.__module__ = "torch._dynamo._trace_wrapped_higher_order_op"  # the name that printed graphs show
    self_invoke.__qualname__ = "self_invoke"
    self_invoke.has_effects = True  # a graph keeps the call though nothing may use its result
    return self_invoke


_trace_wrapped_op = TraceWrapped()
_trace_wrapped_op.py_autograd_impl(autograd_not_implemented(_trace_wrapped_op, deferred_error=True))


def trace_wrapped(*args, **kwargs):
    """`fn(*args)`, given as `fn=`; a trace records the call without looking into it."""
    with no_grad():
        return _trace_wrapped_op(*args, **kwargs)
