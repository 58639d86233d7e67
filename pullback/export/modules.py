"""A module while it is exported: which submodule runs, and what its code assigns.

In: the module. Out: `nn_module_stack` on the nodes that are made, and the attributes that were changed. What always
holds: after `restored` every submodule has the attributes that it had.
"""

from __future__ import annotations

from typing import Any

from ..graph import traceback
from ..nn.module import Module

OWN = ("_parameters", "_buffers", "_modules")


def snapshot(mod: Module) -> dict[str, tuple[Module, dict, dict]]:
    """Every submodule with its attributes and buffers."""
    return {name: (m, dict(vars(m)), dict(m._buffers)) for name, m in mod.named_modules()}


def changed_attributes(mod: Module, before: dict) -> list[tuple[str, Any]]:
    """(name, new value) of attributes that were assigned since."""
    found = []
    for prefix, (module, attributes, buffers) in before.items():
        for name, value in vars(module).items():
            if name not in OWN and (name not in attributes or attributes[name] is not value):
                found.append((f"{prefix}.{name}" if prefix else name, value))
        found += [(f"{prefix}.{n}" if prefix else n, b) for n, b in module._buffers.items() if n not in buffers]
    return found


def attribute(before: dict, name: str) -> Any:
    """What an attribute was, by its full name; None where there was none."""
    path, _, leaf = name.rpartition(".")
    return before[path][1].get(leaf)


def restored(mod: Module, before: dict) -> None:
    """Give every submodule its attributes and buffers back."""
    for module, attributes, buffers in before.values():
        vars(module).clear()
        vars(module).update(attributes)
        module._buffers.clear()
        module._buffers.update(buffers)


class ModuleStack:
    """Inside, nodes that are made know in which submodules they were made (`nn_module_stack`)."""

    def __init__(self, mod: Module):
        self.names = {id(m): name for name, m in mod.named_modules()}
        self.stack: list[tuple[str, tuple[str, str]]] = []
        self.calls: dict[str, int] = {}  # of each submodule so far

    def __enter__(self) -> None:
        from ..nn.module_hooks import register_module_forward_hook, register_module_forward_pre_hook

        self.handles = (
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        )
        self.kept = traceback.current_meta

    def _enter(self, module: Module, args: tuple) -> None:
        name = self.names.get(id(module))
        if name is not None:
            kind, count = type(module), self.calls.get(name, 0)
            self.calls[name] = count + 1
            key = (f"L__self___{name.replace('.', '_')}" if name else "L__self__") + (f"@{count}" if count else "")
            self.stack.append((key, (name, f"{kind.__module__}.{kind.__qualname__}")))
            traceback.current_meta = {**traceback.current_meta, "nn_module_stack": dict(self.stack)}

    def _leave(self, module: Module, args: tuple, out: Any) -> None:
        if id(module) in self.names and self.stack:
            self.stack.pop()
            traceback.current_meta = {**traceback.current_meta, "nn_module_stack": dict(self.stack)}

    def __exit__(self, *exc: Any) -> None:
        traceback.current_meta = self.kept
        for handle in self.handles:
            handle.remove()
