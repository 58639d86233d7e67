"""`Module`: parameters, buffers and submodules under attribute names, and a call that runs hooks around `forward`.

Assigning a `Parameter`, a `Buffer` or a `Module` to an attribute registers it; reading the attribute finds it in its
table. What a module can do is said in parts: `module_tree` (walking), `module_state` (saving and loading),
`module_conversion` (dtype and device), `module_hooks` (hooks).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from ..core.layers import above
from ..core.tensor import Tensor
from .module_conversion import ModuleConversion
from .module_hooks import Hooks, ModuleHooks, everywhere
from .module_state import ModuleState
from .module_tree import ModuleTree
from .parameter import Buffer, Parameter

_HOOK_TABLES = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip


def type_name(value) -> str:
    """The name of a value's type as PyTorch's messages give it (`torch.FloatTensor`)."""
    if isinstance(value, Tensor):
        return value.type().replace("pullback", "torch")
    kind = type(value)
    return (
        kind.__name__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__name__}".replace("pullback", "torch")
    )


def _forward_unimplemented(self, *input: Any) -> None:
    """What the module computes; every subclass defines it."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


assignments = [0]  # how many attributes of modules were ever assigned: who remembers attributes looks whether any was


def _is_tensor_like(value) -> bool:
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


class Module(ModuleHooks, ModuleState, ModuleConversion, ModuleTree):
    """Base class of all neural network modules.

    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale()(torch.tensor([3.0])).detach()
    tensor([6.])
    >>> [name for name, _ in Scale().named_parameters()]
    ['factor']
    """

    dump_patches: ClassVar[bool] = False
    _version: ClassVar[int] = 1
    call_super_init: ClassVar[bool] = False
    training: bool
    _compiled_call_impl: Callable | None = None

    def __init__(self, *args, **kwargs) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_is_full_backward_hook"] = None
        for name in _HOOK_TABLES:
            own[name] = Hooks()
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # Typed as anything that can be called: a subclass's own signature is then no conflict to a type checker.
    forward: Callable[..., Any] = _forward_unimplemented

    # ---- registration
    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but no parameter; a persistent one is part of the state dict."""
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not _is_tensor_like(tensor):
            raise TypeError(
                f"cannot assign '{type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        for hook in everywhere.buffer.values():
            result = hook(self, name, tensor)
            tensor = tensor if result is None else result
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not is_parameter(param):
            raise TypeError(
                f"cannot assign '{type_name(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        for hook in everywhere.parameter.values():
            result = hook(self, name, param)
            param = param if result is None else result
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type_name(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        for hook in everywhere.module.values():
            result = hook(self, name, module)
            module = module if result is None else result
        self._modules[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of `add_module`."""
        self.add_module(name, module)

    def _check_name(self, kind: str, name: str, table: dict) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type_name(name)}")
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    # ---- attributes
    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        # Unrolled: every read of a weight in a forward comes through here.
        if "_parameters" in own:
            found = own["_parameters"]
            if name in found:
                return found[name]
            found = own["_buffers"]
            if name in found:
                return found[name]
        if "_modules" in own:
            found = own["_modules"]
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        assignments[0] += 1
        own = self.__dict__
        params = own.get("_parameters")
        if is_parameter(value):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules", "_non_persistent_buffers_set")
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type_name(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module) or name in own.get("_modules", ()):
            self._set_module(name, value)
        elif isinstance(value, Buffer) or name in own.get("_buffers", ()):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _set_module(self, name: str, value) -> None:
        modules = self.__dict__.get("_modules")
        if modules is None:
            raise AttributeError("cannot assign module before Module.__init__() call")
        if value is not None and not isinstance(value, Module):
            raise TypeError(
                f"cannot assign '{type_name(value)}' as child module '{name}' (torch.nn.Module or None expected)"
            )
        if name not in modules:
            self._forget(name, "_parameters", "_buffers", "_non_persistent_buffers_set")
        for hook in everywhere.module.values():
            result = hook(self, name, value)
            value = value if result is None else result
        modules[name] = value

    def _set_buffer(self, name: str, value) -> None:
        buffers = self.__dict__.get("_buffers")
        if buffers is None:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        if value is not None and not _is_tensor_like(value):
            raise TypeError(
                f"cannot assign '{type_name(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None "
                "expected)"
            )
        if isinstance(value, Buffer):
            if name in self.__dict__:
                raise KeyError(f"attribute '{name}' already exists")
            self._forget(name, "_parameters", "_modules", "_non_persistent_buffers_set")
            if "persistent" in inspect.signature(self.register_buffer).parameters:
                self.register_buffer(name, value, value.persistent)
            else:  # a subclass of before buffers could be left out of the state
                self.register_buffer(name, value)
            return
        for hook in everywhere.buffer.values():
            result = hook(self, name, value)
            value = value if result is None else result
        buffers[name] = value

    def _forget(self, name: str, *tables: str) -> None:
        """Drop a name from the instance and from some of the tables, before it gets another meaning."""
        self.__dict__.pop(name, None)
        for table in tables:
            state = self.__dict__[table]
            if name in state:
                state.discard(name) if isinstance(state, set) else state.pop(name)

    def __delattr__(self, name: str) -> None:
        assignments[0] += 1
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(n for n in names if not n[:1].isdigit())

    # ---- calls
    def _call_impl(self, *args, **kwargs):
        if self._is_hooked():
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _is_hooked(self) -> bool:
        own = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        return bool(own) or everywhere.around_call()

    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        hooked = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        if hooked or everywhere.forward or everywhere.forward_pre or everywhere.backward or everywhere.backward_pre:
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    __call__: Callable[..., Any] = _wrapped_call_impl

    def compile(self, *args, **kwargs) -> None:
        """Compile this module's call in place."""
        self._compiled_call_impl = above.compile_function(self._call_impl, *args, **kwargs)
        self._compile_arguments = args, kwargs

    # ---- copies
    def __getstate__(self) -> dict:
        state = self.__dict__.copy()
        for name in ("_compiled_call_impl", "_compile_arguments"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        for name in _HOOK_TABLES:
            self.__dict__.setdefault(name, Hooks())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica

    # ---- printing
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands in the parentheses of the printed module."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        lines = [f"({name}): " + indented(repr(module)) for name, module in self._modules.items()]
        if not lines and len(extra_lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra_lines + lines) + "\n)"


def indented(text: str, width: int = 2) -> str:
    """All lines but the first, moved to the right."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * width + line for line in rest)])


def is_parameter(value) -> bool:
    """Whether a value is a parameter; tensor subclasses may be marked as such."""
    return isinstance(value, Parameter) or isinstance(value, Tensor) and value._is_param
