"""A module while it is exported: which submodule runs, and what its code assigns.

In: the module. Out: `nn_module_stack` on the nodes that are made, and the attributes that were changed. What always
holds: after `restored` every submodule has the attributes that it had.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import tree
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


class Names:
    """By which name a module is called, where modules may have several.

    The name lies within the module that calls, if one does. Among several, it is the one that was read last (`self.n`), or the
    next in their order (`for layer in self.layers`).
    """

    def __init__(self, mod: Module):
        self.known: dict[int, list[str]] = {}
        for name, m in mod.named_modules(remove_duplicate=False):
            self.known.setdefault(id(m), []).append(name)
        self.shared = {i for i, names in self.known.items() if len(names) > 1}
        self.read: dict[
            int, list[str]
        ] = {}  # how shared modules were read as attributes: the last read is called first
        self.next: dict[tuple[int, str], int] = {}

    def of(self, module: Module, caller: str) -> str | None:
        names = self.known.get(id(module))
        if names is None or len(names) == 1:
            return names[0] if names else None
        inside = [n for n in names if n.startswith(f"{caller}.")] if caller else names
        names = inside or names
        read = self.read.get(id(module))
        last = read.pop() if read else None
        for name in names:
            if last is not None and name.rpartition(".")[2] == last:
                return name
        at = self.next.get((id(module), caller), 0)
        self.next[id(module), caller] = at + 1
        return names[at % len(names)]

    def left(self, caller: str) -> None:
        """A call of a module has ended: the next one starts from its first submodule again."""
        for key in [k for k in self.next if k[1] == caller]:
            del self.next[key]


class reading:
    """Inside, reads of shared submodules as attributes are noted."""

    def __init__(self, names: Names):
        self.names = names

    def __enter__(self) -> None:
        self.before = Module.__getattr__
        if not self.names.shared:
            return
        before, shared, read = self.before, self.names.shared, self.names.read

        def noted(module: Module, name: str) -> Any:
            value = before(module, name)
            if id(value) in shared:
                read.setdefault(id(value), []).append(name)
            return value

        Module.__getattr__ = noted  # type: ignore[method-assign]

    def __exit__(self, *exc: Any) -> None:
        Module.__getattr__ = self.before  # type: ignore[method-assign]


class ModuleStack:
    """Inside, nodes that are made know in which submodules they were made (`nn_module_stack`).

    `signatures` gets, for each call of a submodule that is to be preserved, its arguments and results as the trace knows them.
    """

    def __init__(self, mod: Module, preserved: tuple[str, ...] = (), argument: Callable | None = None):
        self.names, self.preserved, self.argument = Names(mod), set(preserved), argument
        self.stack: list[tuple[str, tuple[str, str]]] = []
        self.calls: dict[str, int] = {}  # of each submodule so far
        self.signatures: dict[
            str, tuple
        ] = {}  # name@number -> (module, (leaves, spec) in, (leaves, spec) out, args, kwargs)

    def __enter__(self) -> None:
        from ..nn.module_hooks import register_module_forward_hook, register_module_forward_pre_hook

        self.handles = (
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, with_kwargs=True, always_call=True),
        )
        self.kept, self.reading = traceback.current_meta, reading(self.names)
        self.reading.__enter__()

    def _enter(self, module: Module, args: tuple) -> None:
        name = self.names.of(module, self.stack[-1][1][0] if self.stack else "")
        if name is None:
            return
        kind, count = type(module), self.calls.get(name, 0)
        self.calls[name] = count + 1
        key = (f"L__self___{name.replace('.', '_')}" if name else "L__self__") + (f"@{count}" if count else "")
        self.stack.append((key, (name, f"{kind.__module__}.{kind.__qualname__}")))
        traceback.current_meta = {**traceback.current_meta, "nn_module_stack": dict(self.stack)}

    def _leave(self, module: Module, args: tuple, kwargs: dict, out: Any) -> None:
        if id(module) not in self.names.known or not self.stack:
            return
        key, (name, _) = self.stack.pop()
        self.names.left(name)
        traceback.current_meta = {**traceback.current_meta, "nn_module_stack": dict(self.stack)}
        if name in self.preserved and self.argument is not None:
            self.signatures[call_name(name, key)] = (
                module, self._traced((args, kwargs)), self._traced(out), args, kwargs,
            )  # fmt: skip

    def _traced(self, value: Any) -> tuple[list, Any]:
        leaves, spec = tree.tree_flatten(value)
        return [self.argument(v) for v in leaves], spec  # type: ignore[misc]

    def __exit__(self, *exc: Any) -> None:
        self.reading.__exit__()
        traceback.current_meta = self.kept
        for handle in self.handles:
            handle.remove()


def call_name(fqn: str, key: str) -> str:
    """The name of one call of a submodule: the submodule's, numbered from the second call on."""
    _, at, count = key.partition("@")
    return f"{fqn}@{count}" if at else fqn


class CalledFunction(Module):
    """A function as a module, so that it can be exported."""

    def __init__(self, f: Any) -> None:
        super().__init__()
        self.f = f

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)
