"""Scripted and traced functions.

In: Python functions, classes and modules. Out: `ScriptFunction`s that call them, the classes themselves, and modules as
`modules` makes them. Tracing runs its example once, with `is_tracing()` true, so that what fails on it fails there.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from ...core.tensor import Tensor
from ...nn import Module
from .modules import RecursiveScriptModule, ScriptModule, TopLevelTracedModule, as_script_module, no_graph


class Error(RuntimeError):
    """What TorchScript's interpreter raises; here a Python error is itself."""


class _Tracing(threading.local):
    depth = 0


_state = _Tracing()


def is_scripting() -> bool:
    """Whether TorchScript compiles this code: it never does."""
    return False


def is_tracing() -> bool:
    """Whether an example of `trace` is running."""
    return _state.depth > 0


@contextmanager
def _tracing():
    _state.depth += 1
    try:
        yield
    finally:
        _state.depth -= 1


class ScriptFunction:
    """A function that was scripted or traced: it calls the Python function.

    >>> @torch.jit.script
    ... def double(x):
    ...     return x * 2
    >>> isinstance(double, torch.ScriptFunction)
    True
    """

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    qualified_name = name

    graph = inlined_graph = code = schema = property(no_graph)

    def save(self, *args: Any, **kwargs: Any) -> None:
        no_graph(self)

    save_to_buffer = graph_for = get_debug_state = save

    def __repr__(self) -> str:
        return f"<torch.jit.ScriptFunction {self.name}>"


class CompilationUnit:
    """Functions compiled from source text, which needs a compiler; without text, an empty one.

    >>> unit = torch.CompilationUnit()
    """

    def __init__(self, lang: str | None = None, _frames_up: int = 0):
        if lang is not None:
            raise NotImplementedError(
                "CompilationUnit: TorchScript source is not compiled here; write Python functions"
            )


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """A function or module behind TorchScript's interface; classes and what is scripted already are themselves."""
    if isinstance(obj, (ScriptFunction, ScriptModule)) or inspect.isclass(obj):
        return obj
    if isinstance(obj, Module):
        return as_script_module(obj, RecursiveScriptModule)
    if isinstance(obj, (dict, list)):
        return obj
    if not callable(obj):
        raise TypeError(f"script() expects a function, a class or a module, but got {type(obj).__name__}")
    return ScriptFunction(obj)


def script_method(fn: Callable) -> Callable:
    """A method of a `ScriptModule` class: itself."""
    return fn


def script_if_tracing(fn: Callable) -> Callable:
    """A function to be scripted when it is first met inside `trace`: it is called as it is."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wrapper.__script_if_tracing_wrapper = True  # type: ignore[attr-defined]
    return wrapper


def _run_example(function: Callable, example: Any, keywords: dict | None) -> None:
    args = (example,) if isinstance(example, (Tensor, dict)) else tuple(example if example is not None else ())
    with _tracing():
        function(*args, **(keywords or {}))


def trace(
    func: Any, example_inputs: Any = None, optimize: None = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_kwarg_inputs: dict | None = None, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """Run an example, then give the function or module behind TorchScript's interface."""
    if isinstance(func, (ScriptFunction, ScriptModule)):
        return func
    if example_inputs is None and example_kwarg_inputs is None:
        raise TypeError("trace(): example_inputs or example_kwarg_inputs must be given")
    _run_example(func, example_inputs, example_kwarg_inputs)
    if isinstance(func, Module):
        return as_script_module(func, TopLevelTracedModule)
    return ScriptFunction(func)


def trace_module(
    mod: Module, inputs: dict[str, Any], optimize: None = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_inputs_is_kwarg: bool = False, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """`trace` of several methods of a module: {method name: example}."""
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    for name, example in inputs.items():
        keywords = example if example_inputs_is_kwarg else None
        method = mod if name == "forward" else getattr(mod, name)
        _run_example(method, None if example_inputs_is_kwarg else example, keywords)
    return as_script_module(mod, TopLevelTracedModule)
