"""Scripted and traced modules: the module itself, seen as a `ScriptModule`.

In: an `nn.Module`. Out: another object with the same parameters, buffers, submodules and methods, whose class is made of
the script class and the module's own; `state_dict`, training mode and hooks work as ever. What always holds: parameters
are shared with the module that was given.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ...nn import Module
from .annotations import Attribute


def no_graph(owner: Any, *args: Any) -> NoReturn:
    """What a TorchScript compiler would have made is asked for."""
    raise NotImplementedError(
        f"{getattr(owner, 'original_name', None) or getattr(owner, 'name', owner)}: TorchScript compiles nothing here, so "
        "there is no graph, code or archive. torch.compile makes graphs; torch.save keeps a state_dict."
    )


class ScriptObject:
    """An object of a class that TorchScript compiled. It compiles nothing here, so that there are none: programs ask by
    `isinstance` whether they were given one.

    >>> isinstance(torch.ones(1), torch.ScriptObject)
    False
    """

    def __init__(self, *args: Any, **kwargs: Any):
        raise TypeError(f"{type(self).__name__}: No constructor defined!")


class ScriptModule(Module):
    """Base of scripted modules; a class may also inherit from it and mark methods with `script_method`.

    >>> isinstance(torch.jit.script(torch.nn.Linear(1, 1)), torch.ScriptModule)
    True
    """

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value.value if isinstance(value, Attribute) else value)

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return getattr(type(self), "_original_name", type(self).__name__)

    def _raise_no_graph(self) -> NoReturn:
        no_graph(self)

    graph = inlined_graph = code = code_with_constants = property(_raise_no_graph)

    def save(self, f: Any, **kwargs: Any) -> None:
        """Archives hold compiled code: there is none."""
        no_graph(self)

    save_to_buffer = get_debug_state = save
    _save_for_lite_interpreter = _save_to_buffer_for_lite_interpreter = save


class RecursiveScriptModule(ScriptModule):
    """What `script(module)` gives."""


class TracedModule(ScriptModule):
    """What tracing gives."""


class TopLevelTracedModule(TracedModule):
    """What `trace(module, example)` gives."""


_classes: dict[tuple[type, type], type] = {}


def _script_class(kind: type, original: type) -> type:
    key = kind, original
    if key not in _classes:
        names = {"_original_name": original.__name__, "__module__": kind.__module__}
        _classes[key] = type(kind.__name__, (kind, original), names)
    return _classes[key]


def as_script_module(module: Module, kind: type) -> Any:
    """A module's like of a script class, on the same parameters, buffers and submodules."""
    if isinstance(module, ScriptModule):
        return module
    result: Any = object.__new__(_script_class(kind, type(module)))
    result.__dict__.update(module.__dict__)
    return result
