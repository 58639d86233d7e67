"""`torch.overrides`: tools for objects that act like tensors."""

from __future__ import annotations

import functools
import sys

from ..core.modes import BELOW_AUTOGRAD, masked
from ..core.tensor import Tensor
from ..ops.system.offers import overridable
from ..ops.system.operator import exports
from ..ops.system.overrides import (
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    TorchFunctionMode,
    call_overridden,
    current_function_mode,
    enable_torch_function,
    function_mode_stack,
    handle_torch_function,
    has_torch_function,
    redispatch_function,
)  # fmt: skip
from ..ops.system.overrides import has_torch_function_unary as has_torch_function_unary
from ..ops.system.overrides import has_torch_function_variadic as has_torch_function_variadic
from . import settings
from .never_overridden import NAMES

BaseTorchFunctionMode = TorchFunctionMode
_DisableTorchFunction = DisableTorchFunction
_enable_torch_function = enable_torch_function
_get_current_function_mode, _get_current_function_mode_stack = current_function_mode, function_mode_stack


def is_tensor_like(inp) -> bool:
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")


def _package():
    """The package as users see it."""
    return sys.modules[__package__.partition(".")[0]]


@functools.cache
def get_overridable_functions() -> dict:
    """Public functions that overrides may take, by the module or class they live in."""
    root = _package()
    package = __package__.partition(".")[0]
    homes = {"torch": root, "Tensor": Tensor}
    found: dict = {}
    ignored = get_ignored_functions()
    for name, table in exports.items():
        home = homes.get(name) or sys.modules.get(f"{package}.{name}", name)
        found[home] = [f for f in table.values() if callable(f) and f not in ignored]
    found[Tensor] += [f for f in overridable().values() if f not in ignored and f not in found[Tensor]]
    return found


@functools.cache
def get_ignored_functions() -> set:
    """Public functions that are never handed to overrides."""
    root = _package()
    spaces = {"torch": root, "torch.Tensor": Tensor, "torch.nn.init": root.nn.init}
    named = [getattr(spaces[space], name, None) for space, names in NAMES.items() for name in names]
    return {f for f in (*settings.public.values(), *named) if callable(f)}


def get_testing_overrides() -> dict:
    """For each overridable function, a function of the same name that answers -1."""
    return {
        f: functools.wraps(f)(lambda *args, **kwargs: -1)
        for functions in get_overridable_functions().values()
        for f in functions
    }


def is_tensor_method_or_property(func) -> bool:
    return func in _tensor_methods() or getattr(func, "__name__", "") == "__get__"


@functools.cache
def _tensor_methods() -> frozenset:
    return frozenset(v for v in vars(Tensor).values() if callable(v))


def resolve_name(f) -> str | None:
    """The dotted public name of a function."""
    for space, table in exports.items():
        for name, function in table.items():
            if function is f:
                home = (
                    "torch" if space == "torch" else f"torch._C.{space}" if space.startswith("_") else f"torch.{space}"
                )
                return f"{home}.{name}"
    return next((f"torch.Tensor.{name}" for name, function in overridable().items() if function == f), None)


def wrap_torch_function(dispatcher):
    """A decorator: calls go to the overrides of the arguments that `dispatcher` names."""

    def inner(func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            if has_torch_function(dispatcher(*args, **kwargs)):
                return call_overridden(wrapped, args, kwargs)
            return func(*args, **kwargs)

        return wrapped

    return inner


def enable_reentrant_dispatch() -> masked:
    """Inside `__torch_dispatch__`: let calls be recorded for gradients again, which they are not below autograd."""
    return masked(BELOW_AUTOGRAD)


__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunctionSubclass", "TorchFunctionMode", "get_ignored_functions", "get_overridable_functions",
    "get_testing_overrides", "handle_torch_function", "has_torch_function", "is_tensor_like", "is_tensor_method_or_property", "redispatch_function",
    "resolve_name", "wrap_torch_function",
]  # fmt: skip
