"""What a function reaches besides its arguments, and whether it is still as it was.

In: a function. From its code are found: the values it closes over and the globals it names (also those of functions it
calls that way), the object it is a method of, and the modules among all these. `now()` is everything of them that a
capture may have depended on, as one comparable value: ambient state, simple values, containers and attributes (to a
depth), identities of objects, and of modules whether they train, their hooks and simple attributes. Tensors that a
capture took up as inputs are looked after by `Lifted`.
"""

from __future__ import annotations

import types
from collections.abc import Callable

from ..core import modes
from ..core.modes import ambient, process
from ..core.node import requires_grad
from ..core.tensor import Tensor, stride_of
from ..nn import module as modules
from ..nn.module import Module
from .guards import SIMPLE, describe

AMBIENT = modes.GRAD | modes.AUTOCAST | modes.INFERENCE | modes.DEFAULT_DEVICE | modes.SAVED_HOOKS
DEPTH, LEAVES = 3, 256  # how deep, and into how many values, containers and objects are looked into


class Surroundings:
    """See the module's docstring."""

    def __init__(self, fn: Callable):
        self.modules: list[Module] = []
        self.values: list[tuple[Callable[[], object], str]] = []  # (how to read it, its name)
        self._seen: set[int] = set()
        self._attributes: tuple = (-1, ())
        self._visit(fn)

    # ---- finding
    def _visit(self, value) -> None:
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, Module):
            self.modules += [m for m in value.modules() if not any(m is k for k in self.modules)]
            value = getattr(type(value), "forward", None)
        if isinstance(value, types.MethodType):
            owner = value.__self__
            if isinstance(owner, Module):
                self._visit(owner)
            else:
                self.values.append((lambda: owner, "self"))
            value = value.__func__
        value = getattr(value, "__wrapped__", value)
        if isinstance(value, types.FunctionType):
            self._visit_code(value)

    def _visit_code(self, fn: types.FunctionType) -> None:
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            self._reach(lambda c=cell: c.cell_contents, name)
        for name in _names(fn.__code__):
            if name in fn.__globals__:
                self._reach(lambda g=fn.__globals__, n=name: g[n], name)

    def _reach(self, read: Callable[[], object], name: str) -> None:
        try:
            value = read()
        except (ValueError, KeyError):  # a cell that is not filled yet
            return
        if isinstance(value, (types.ModuleType, type)) or _ours(value):
            return
        self.values.append((read, name))
        for inner in value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else (value,):
            if isinstance(inner, (Module, types.FunctionType, types.MethodType)):
                self._visit(inner)

    # ---- comparing
    def now(self) -> tuple:
        mode = ambient.mode & AMBIENT
        out: list = [mode, process.default_dtype, process.deterministic]
        if mode & modes.AUTOCAST:
            out.append(str(ambient.autocast))
        for read, _ in self.values:
            out.append(picture(_read(read), DEPTH))
        if self.modules:
            out.append(tuple([m.training for m in self.modules]))
            out.append(self._module_attributes())
        return tuple(out)

    def _module_attributes(self) -> tuple:
        """Hooks, children and simple attributes of the modules; read anew only when some module was assigned to."""
        count = modules.assignments[0]
        if self._attributes[0] != count:
            self._attributes = (count, tuple([_simple_attributes(m) for m in self.modules]))
        return self._attributes[1], tuple([len(m._forward_hooks) + len(m._forward_pre_hooks) for m in self.modules])

    def difference(self, before: tuple) -> str:
        """What changed since `now()` was `before`, in words."""
        after = self.now()
        names = ["grad mode, autocast, inference mode or the default device", "the default dtype", "deterministic mode"]
        names += ["autocast's settings"] if before[0] & modes.AUTOCAST else []
        names += [f"{name!r}, which the function reaches" for _, name in self.values] + ["whether a module trains", "an attribute or hook of a module"]
        for name, a, b in zip(names, before, after, strict=False):
            if a != b:
                return f"{name} changed"
        return "what the function reaches changed"

    # ---- undoing
    def attributes(self) -> list:
        """The attributes of the modules, to see whether a call changes them."""
        return [(m, dict(m.__dict__), dict(m._buffers), dict(m._parameters)) for m in self.modules]

    def restore(self, before: list) -> str | None:
        """Undo changes of module attributes; says which there were."""
        changed = None
        for module, attributes, buffers, parameters in before:
            for table, old in ((module.__dict__, attributes), (module._buffers, buffers), (module._parameters, parameters)):
                for name in [*table, *old]:
                    if table.get(name) is not old.get(name) and name not in ("_buffers", "_parameters"):
                        changed = changed or f"attribute {name!r} of {type(module).__name__}"
                        if name in old:
                            table[name] = old[name]
                        else:
                            table.pop(name, None)
        return changed


def _names(code: types.CodeType) -> list[str]:
    """The global names that code (also of functions defined inside) may read."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _names(constant)
    return list(dict.fromkeys(names))


def _ours(value) -> bool:
    """Whether an object belongs to this package: it does not change under a program."""
    module = getattr(value, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] in ("pullback", "torch") and not isinstance(value, (Module, Tensor))


def _read(read: Callable[[], object]):
    try:
        return read()
    except (ValueError, KeyError):
        return None


def picture(value, depth: int, budget: list | None = None):
    """A value as something to compare: simple values as they are, tensors by identity and metadata, containers and plain
    objects by what is in them, anything else by identity."""
    if isinstance(value, SIMPLE):
        return (type(value), value)
    if isinstance(value, Tensor):
        return (id(value), describe(value))
    budget = [LEAVES] if budget is None else budget
    budget[0] -= 1
    if depth == 0 or budget[0] < 0 or isinstance(value, Module):
        return id(value)
    if isinstance(value, (list, tuple)):
        return (type(value), tuple([picture(v, depth - 1, budget) for v in value[:LEAVES]]), len(value))
    if isinstance(value, dict):
        return tuple([(k if isinstance(k, SIMPLE) else id(k), picture(v, depth - 1, budget)) for k, v in list(value.items())[:LEAVES]])
    own = getattr(value, "__dict__", None)
    if type(own) is dict and not callable(value) and not _ours(value):
        return (id(value), picture(own, depth - 1, budget))
    return id(value)


def _simple_attributes(m: Module) -> tuple:
    return tuple([(k, v) for k, v in m.__dict__.items() if isinstance(v, SIMPLE)]), tuple(map(id, m._modules.values()))


class Lifted:
    """Tensors that a captured graph takes as further inputs: they must be where they were, and as they were."""

    def __init__(self, tensors: list[Tensor], reached: list[Module]):
        self.tensors = tensors
        homes = {id(t): (table, name) for m in reached for table in (m._parameters, m._buffers) for name, t in table.items()}
        self.homes = [(*homes[id(t)], t) for t in tensors if id(t) in homes]
        self.facts = [(t, t.dtype, tuple(t.array.shape), stride_of(t), requires_grad(t)) for t in tensors]

    def hold(self) -> bool:
        for table, name, t in self.homes:
            if table.get(name) is not t:
                return False
        for t, dtype, shape, stride, wants in self.facts:
            if t.dtype is not dtype or t.array.shape != shape or stride_of(t) != stride or requires_grad(t) is not wants:
                return False
        return True

    def why_not(self) -> str | None:
        """What does not fit, in words."""
        for table, name, t in self.homes:
            if table.get(name) is not t:
                return f"the parameter or buffer {name!r} of a module is another tensor"
        for i, (t, dtype, shape, stride, wants) in enumerate(self.facts):
            now = (t.dtype, tuple(t.array.shape), stride_of(t), requires_grad(t))
            if now != (dtype, shape, stride, wants):
                return f"tensor {i} that the function reaches is now {now}, it was {(dtype, shape, stride, wants)}"
        return None
