"""`TracerBase`: how calls become nodes.

In: calls with proxies (and constants) among their arguments. Out: nodes of `self.graph`, wrapped in proxies. What always
holds: an argument that a graph cannot hold raises; where metadata is preserved, every node made carries it.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import traceback as tracebacks
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..core import device as devices
from ..core.dtype import dtype
from ..core.tensor import Tensor
from ..ops.system.operator import Operator
from . import traceback as fx_traceback
from .graph import Graph
from .immutable import immutable_dict, immutable_list
from .node import Argument, Node, Target, map_arg
from .stacks import is_own_file

if TYPE_CHECKING:
    from .proxy import Proxy

base_types = (
    str, int, float, bool, complex, dtype, Tensor, devices.device, devices.memory_format, devices.layout, Operator,
)  # fmt: skip


class TraceError(ValueError):
    """The program does something with a traced value that cannot be recorded."""


class Scope:
    """Which module the code being traced belongs to."""

    def __init__(self, module_path: str, module_type: Any):
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Changes a scope while a module's forward is traced."""

    def __init__(self, scope: Scope, current_scope: Scope):
        self._scope = scope
        self._before = scope.module_path, scope.module_type
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *exc: Any) -> None:
        self._scope.module_path, self._scope.module_type = self._before


class Recorded:
    """A value that stands for a node: a `Proxy`."""

    is_recorded = True
    node: Node
    tracer: TracerBase


class TracerBase:
    """Makes nodes of calls. Subclasses decide what is traced, and may override each step."""

    proxy_class: Callable[..., Proxy]  # what stands for a node; `proxy` sets it
    graph: Graph
    record_stack_traces: bool = False
    _record_forward_stack_traces_only: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"

    def __init__(self) -> None:
        self.scope = Scope("", None)
        self.module_stack: OrderedDict[str, tuple[str, Any]] = OrderedDict()
        self.node_name_to_scope: dict[str, tuple[str, type]] = {}

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Make a node, with the metadata of the moment."""
        if self.check_mutable_operations and kind == "call_function":
            from .operator_schemas import check_for_mutable_operation

            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = self.scope
        self.node_name_to_scope[node._name] = (scope.module_path, scope.module_type)
        if fx_traceback.should_preserve_node_meta:
            fx_traceback.give_meta(node)
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            stack = self._filter_traceback_frames(tracebacks.extract_stack())
            if stack:
                node.stack_trace = "".join(stack.format()).strip()
        return node

    def _filter_traceback_frames(self, user_stack_summary: tracebacks.StackSummary) -> tracebacks.StackSummary:
        """The frames of the user's program: from its forward on, without those of this package."""
        frames = list(user_stack_summary)
        if self._record_forward_stack_traces_only:
            frames = [f for f in frames if f.name == "forward"]
        else:
            first = next((i for i, f in enumerate(frames) if f.name == "forward"), len(frames))
            frames = frames[first:]
        return tracebacks.StackSummary.from_list([f for f in frames if not is_own_file(f.filename)])

    def proxy(self, node: Node) -> Proxy:
        """A proxy for a node."""
        return self.proxy_class(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Make a node of a call on proxies, and a proxy for it."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Argument:
        """An argument as a graph holds it: nodes for proxies, containers of the same, constants."""
        handler = _by_type.get(a.__class__)
        if handler is not None:
            return handler(self, a)
        return _rare_argument(self, a)

    def to_bool(self, obj: Proxy) -> bool:
        """Called where the truth of a proxy is asked for."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator:
        """Called where a proxy is iterated."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called for `**proxy`."""
        return obj.__getattr__("keys")()


class GraphAppendingTracer(TracerBase):
    """Adds to a given graph: what proxies made around raw nodes use."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph


# ---- arguments, by type
def _dict_argument(tracer: TracerBase, a: dict) -> dict:
    result = {}
    for k, v in a.items():
        if not isinstance(k, str):
            k = tracer.create_arg(k)
            map_arg(k, _refuse_key)
        result[k] = tracer.create_arg(v)
    return result


def _refuse_key(node: Node) -> None:
    raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")


_as_is = lambda tracer, a: a
_by_type: dict[type, Callable[[TracerBase, Any], Argument]] = {
    **dict.fromkeys((*base_types, type(None), type(...), Node), _as_is),
    tuple: lambda tracer, a: tuple([tracer.create_arg(x) for x in a]),
    list: lambda tracer, a: [tracer.create_arg(x) for x in a],
    immutable_list: lambda tracer, a: [tracer.create_arg(x) for x in a],
    dict: _dict_argument,
    immutable_dict: _dict_argument,
    slice: lambda tracer, a: slice(*(tracer.create_arg(x) for x in (a.start, a.stop, a.step))),
}


def _rare_argument(tracer: TracerBase, a: Any) -> Argument:
    if isinstance(a, Recorded):
        return a.node
    if hasattr(a, "__fx_create_arg__"):
        return a.__fx_create_arg__(tracer)
    if isinstance(a, tuple):
        result = [tracer.create_arg(x) for x in a]
        return type(a)(*result) if hasattr(a, "_fields") else type(a)(result)
    if isinstance(a, list):
        return [tracer.create_arg(x) for x in a]
    if isinstance(a, dict):
        return _dict_argument(tracer, a)
    if isinstance(a, range):
        return range(*(tracer.create_arg(x) for x in (a.start, a.stop, a.step)))
    if getattr(a, "namespace", None) == "higher_order" or getattr(a, "is_symbolic", False):
        return a
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        fields = {f.name: tracer.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
        return tracer.create_node("call_function", type(a), (), fields)
    if isinstance(a, (*base_types, enum.Enum)):
        return a
    raise NotImplementedError(f"argument of type: {type(a)}")
