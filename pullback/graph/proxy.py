"""`Proxy`: a value that records what is done with it.

In: operators, attribute reads, method calls and `torch` functions on proxies. Out: a node each, made by the proxy's
tracer. What always holds: a proxy has no value, so questions that need one (its truth, its length, its items) raise.
"""

from __future__ import annotations

import copy
import dis
import inspect
import operator
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from ..ops.system.operator import registry
from ..ops.system.overrides import without_defaults
from .arguments import map_aggregate
from .assertions import assert_fn
from .codegen import magic_methods, reflectable_magic_methods
from .function_calls import recorded_form
from .names import is_tensor_method, name_hint
from .naming import snake_case
from .node import Node
from .recording import GraphAppendingTracer, Recorded, Scope, ScopeContextManager, TraceError, TracerBase  # noqa: F401


class Proxy(Recorded):
    """Stands for the value of a node while a program is traced."""

    is_symbolic = False  # no symbolic number, though it has any attribute one asks for

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        self.tracer = tracer if tracer is not None else GraphAppendingTracer(node.graph)
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        if k in ("node", "tracer", "root"):  # not set yet: an object being copied or unpickled
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict:
        return self.__dict__

    def __setstate__(self, state: dict) -> None:
        self.__dict__ = state

    def __deepcopy__(self, memo: dict) -> Proxy:
        result = object.__new__(type(self))
        result.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return result

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        """Unpacking into a known number of names works; any other loop is the tracer's to answer."""
        instruction, _ = _calling_instruction(inspect.currentframe())
        if instruction.opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(instruction.argval))
        return self.tracer.iter(self)

    def __getitem__(self, index: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, index), {})

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            instruction, following = _calling_instruction(inspect.currentframe())
            asserted = following is not None and following.opname == "LOAD_ASSERTION_ERROR"
            if asserted and instruction.opname.startswith(("POP_JUMP", "TO_BOOL", "COMPARE_OP")):
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self) -> Proxy:
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Proxy:
        """Record a call of a `torch` function."""
        args, kwargs = args or (), kwargs or {}
        tracer = _tracer_of(orig_method, args, kwargs)
        method = is_tensor_method(orig_method)
        if method is not None:
            return tracer.create_proxy("call_method", method, args, kwargs)
        op = getattr(orig_method, "operator", None) or registry.get(getattr(orig_method, "bypassed", ""))
        if op is not None and len(args) <= len(op.schema.arguments):
            args = without_defaults(op, args)
        args, kwargs = recorded_form(orig_method, args, kwargs)
        name = snake_case(name_hint(orig_method))
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


def _tracer_of(function: Any, args: tuple, kwargs: dict) -> TracerBase:
    """The one tracer of the proxies among the arguments."""
    tracers: dict[TracerBase, None] = {}

    def look(a: Any) -> None:
        if isinstance(a, Proxy):
            tracers[a.tracer] = None

    map_aggregate((args, kwargs), look)
    if len(tracers) > 1:
        raise RuntimeError(
            f"Found multiple different tracers {list(tracers)} while trying to trace operations {function}"
        )
    return next(iter(tracers))


def _calling_instruction(frame: Any) -> tuple[dis.Instruction, dis.Instruction | None]:
    """The bytecode instruction that called the method whose frame this is, and the one after it."""
    caller = frame.f_back
    instructions = list(dis.get_instructions(caller.f_code))
    at = bisect_left(instructions, caller.f_lasti, key=lambda i: i.offset)
    following = [i for i in instructions[at + 1 : at + 3] if not i.opname.startswith("POP_JUMP")]
    return instructions[at], following[0] if following else None


class Attribute(Proxy):
    """An attribute of a proxy: a method about to be called, or (a node is then made) its value."""

    def __init__(self, root: Proxy, attr: str):
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    @node.setter
    def node(self, value: Node) -> None:
        self._node = value

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A parameter whose shape is known while tracing."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any):
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    shape = property(lambda self: self.param.shape)
    ndim = property(lambda self: self.param.ndim)

    def size(self, *args: Any) -> Any:
        return self.param.size(*args)

    def dim(self) -> int:
        return self.param.dim()

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.nelement()


class MetaProxy(Proxy):
    """A proxy that also computes an example value (`meta["val"]`) for every node it records."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None):
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Proxy:
        mode = next((a.fake_mode for a in args if isinstance(a, MetaProxy)), None)
        if mode is None:
            raise AssertionError("No MetaProxy found in arguments, but one is expected.")
        result = super().__torch_function__(orig_method, types, args, kwargs)
        with mode:
            values = [a.node.meta["val"] if isinstance(a, Proxy) else a for a in args]
            result.node.meta["val"] = orig_method(*values, **(kwargs or {}))
        return MetaProxy(result.node, result.tracer, mode)


def _add_operators() -> None:
    """`x + y`, `1 + x`, `x[i]`, ... as nodes."""

    def forward(target: Any) -> Any:
        return lambda self, *args: self.tracer.create_proxy("call_function", target, (self, *args), {})

    def reflected(target: Any) -> Any:
        return lambda self, other: self.tracer.create_proxy("call_function", target, (other, self), {})

    for name in magic_methods:
        method = f"__{name.strip('_')}__"
        if hasattr(operator, name) and method not in vars(Proxy):
            setattr(Proxy, method, forward(getattr(operator, name)))
    for name in reflectable_magic_methods:
        if hasattr(operator, name):
            setattr(Proxy, f"__r{name.strip('_')}__", reflected(getattr(operator, name)))
    Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]


_add_operators()
TracerBase.proxy_class = Proxy

__all__ = [
    "TracerBase", "GraphAppendingTracer", "TraceError", "Proxy", "MetaProxy", "Attribute", "ParameterProxy", "Scope",
    "ScopeContextManager",
]  # fmt: skip
