"""Symbolic tracing: a program run on proxies.

In: a module or a function. Out: the graph of everything it did with its arguments. What always holds: leaf modules
appear as one `call_module` each, parameters as `get_attr`; whatever was patched to see calls is put back.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

from ..core.tensor import Tensor
from ..nn.containers import Sequential
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..ops.system.operator import Operator
from .arguments import map_aggregate
from .graph import Graph
from .lazy_module import _make_graph_module
from .module import GraphModule
from .node import Argument
from .patching import Patcher, find_proxy, recorded_operator
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from .root_arguments import PH, PHBase, root_arguments  # noqa: F401 - part of the API
from .wrapping import wrap

_LEAVES = (__package__.partition(".")[0] + ".nn", "torch.nn")
_proxyable: dict[type, None] = {}
_depth = 0  # of traces being made
plain_call, plain_read = (
    Module.__call__,
    Module.__getattr__,
)  # outside traces: tracers that patch modules themselves ask


def is_fx_symbolic_tracing() -> bool:
    """Whether a symbolic trace is being made."""
    return _depth > 0


is_fx_tracing = is_fx_symbolic_tracing


class Tracer(TracerBase):
    """Traces modules and functions. Override its methods to change what is traced through."""

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ):
        super().__init__()
        self._autowrap_search = list(autowrap_modules)
        self._autowrap_function_ids = {id(f) for f in autowrap_functions} | {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        }
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.num_calls: dict[str, int] = {}

    # ---- the trace
    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module's forward, or of a function."""
        global _depth
        is_module = isinstance(root, Module)
        function = self._take_root(root)
        self.graph = Graph(tracer_cls=type(self))
        code = getattr(function, "__code__", None)
        if code is not None:
            names = ("co_name", "co_filename", "co_firstlineno")
            self.graph._co_fields = {name: getattr(code, name) for name in names}
        if not isinstance(function, FunctionType):
            raise AssertionError(f"Expected FunctionType, got {type(function)}")
        _depth += 1
        try:
            self._run(function, is_module, concrete_args)
        finally:
            _depth -= 1
            self.submodule_paths = None
        return self.graph

    def _take_root(self, root: Any) -> Any:
        """Remember what is traced and the tensors it holds; the function to run."""
        self.tensor_attrs: dict[Any, str] = {}
        if not isinstance(root, Module):
            self.root: Any = Module()
            return root
        self.root = root
        if not hasattr(type(root), self.traced_func_name):
            raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
        self.root_module_name = root._get_name()
        self.submodule_paths = {module: name for name, module in root.named_modules()}
        for path, module in root.named_modules():
            for name, value in module.__dict__.items():
                if isinstance(value, Tensor):
                    self.tensor_attrs[value] = f"{path}.{name}" if path else name
        return getattr(type(root), self.traced_func_name)

    def _run(self, function: Any, is_module: bool, concrete_args: Any) -> None:
        names = function.__globals__
        run, args = self.create_args_for_root(function, is_module, concrete_args)
        cache: dict[str, Proxy] = {}
        read, call = Module.__getattr__, Module.__call__

        @functools.wraps(read)
        def traced_read(module: Module, attr: str) -> Any:
            return self.getattr(attr, read(module, attr), cache)

        @functools.wraps(call)
        def traced_call(module: Module, *args: Any, **kwargs: Any) -> Any:
            forward = getattr(module, "forward", module)
            patcher.patch_known(getattr(forward, "__globals__", {}), self._autowrap_function_ids)
            return self.call_module(module, functools.partial(call, module), args, kwargs)

        with Patcher() as patcher:
            patcher.patch_method(Operator, "__call__", recorded_operator(Operator.__call__))
            patcher.patch_method(Module, "__getattr__", traced_read)
            patcher.patch_method(Module, "__call__", traced_call)
            patcher.patch_wrapped()
            patcher.patch_known(names, self._autowrap_function_ids)
            for module in self._autowrap_search:
                patcher.patch_known(vars(module), self._autowrap_function_ids)
            kind = inspect.get_annotations(inspect.unwrap(function)).get("return")
            self.create_node("output", "output", (self.create_arg(run(*args)),), {}, type_expr=kind)

    def create_args_for_root(self, root_fn: Any, is_module: bool, concrete_args: Any = None) -> tuple[Any, list]:
        """Placeholders by the function's signature; the function to run on them."""
        return root_arguments(self, root_fn, is_module, concrete_args)

    # ---- what is met on the way
    def create_arg(self, a: Any) -> Argument:
        """Parameters, buffers and modules become `get_attr`; other tensors become constants of the root."""
        if isinstance(a, (Tensor, Module)):
            return self._tensor_or_module(a)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(x) for x in a), {})
        if type(a) in _proxyable:
            return self._constant(a, f"_{type(a).__name__}_constant_")
        return super().create_arg(a)

    def _tensor_or_module(self, a: Any) -> Argument:
        kind = "parameters" if isinstance(a, Parameter) else "buffers" if isinstance(a, Tensor) else "modules"
        for name, value in getattr(self.root, f"named_{kind}")():
            if a is value:
                return self.create_node("get_attr", name, (), {})
        if isinstance(a, Parameter):
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Module):
            return super().create_arg(a)
        name = self.tensor_attrs.get(a)
        return self.create_node("get_attr", name, (), {}) if name else self._constant(a, "_tensor_constant")

    def _constant(self, value: Any, prefix: str) -> Argument:
        """Keep a value on the root under a name of its own."""
        name = self.get_fresh_qualname(prefix)
        if isinstance(value, Tensor):
            self.tensor_attrs[value] = name
        setattr(self.root, name, value)
        return self.create_node("get_attr", name, (), {})

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name with this prefix that the root does not have."""
        i = 0
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        return f"{prefix}{i}"

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is recorded as one call. Those of `torch.nn` are, but for Sequential."""
        home = m.__module__
        return any(home == p or home.startswith(p + ".") for p in _LEAVES) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The dotted path of a module in the root."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = next((name for name, module in self.root.named_modules() if module is mod), None)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        """A module called while tracing: one node if it is a leaf, else whatever its forward does."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            calls = self.num_calls.get(path, 0)
            self.num_calls[path] = calls + 1
            key = f"{path}@{calls}" if calls else path
            self.module_stack[key] = (path, type(m))
            if self.is_leaf_module(m, path):
                out = self.create_proxy("call_module", path, args, kwargs)
            else:
                out = forward(*args, **kwargs)
            self.module_stack.popitem(last=True)
        return out

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """An attribute of a module read while tracing: parameters become proxies, the rest stays."""
        if isinstance(attr_val, Parameter):
            found = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            found = self.root.named_buffers()
        else:
            return attr_val
        for name, value in found:
            if value is attr_val:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self._parameter(name, value)
                return parameter_proxy_cache[name]
        return attr_val

    def _parameter(self, name: str, value: Any) -> Proxy:
        result = self.create_proxy("get_attr", name, (), {})
        return ParameterProxy(self, result.node, name, value) if self.param_shapes_constant else result

    def __deepcopy__(self, memo: dict) -> Tracer:
        result = type(self).__new__(type(self))
        for k, v in self.__dict__.items():
            result.__dict__[k] = copy.copy(v) if k == "_autowrap_search" else copy.deepcopy(v, memo)
        return result


class ProxyableClassMeta(type):
    """A metaclass: constructing one of its classes from proxies is recorded as a call."""

    def __init__(cls, name: str, bases: tuple, attrs: dict):
        _proxyable.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs) if _depth else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Trace a module or a function into a GraphModule."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return _make_graph_module(tracer.root, graph, name)


__all__ = ["PH", "ProxyableClassMeta", "Tracer", "map_aggregate", "symbolic_trace", "wrap"]
