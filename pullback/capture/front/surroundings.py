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

from ...core import modes
from ...core.modes import ambient, process
from ...core.node import requires_grad
from ...core.tensor import Tensor, stride_of
from ...nn import module as modules
from ...nn.module import Module
from .guards import DEPTH, LEAVES, SIMPLE, is_ours, picture

AMBIENT = modes.GRAD | modes.AUTOCAST | modes.INFERENCE | modes.DEFAULT_DEVICE | modes.SAVED_HOOKS


class Surroundings:
    """See the module's docstring."""

    def __init__(self, fn: Callable):
        self.modules: list[Module] = []
        self.values: list[tuple[Callable[[], object], str]] = []  # (how to read it, its name)
        self.writers: dict[str, Callable[[object], None]] = {}  # how to put back what a name meant
        self._seen: set[int] = set()
        self._attributes: tuple = (-1, ())
        self.visit(fn)

    # ---- finding
    def visit(self, value) -> None:
        """Look for what a function or module reaches."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, Module):
            self.modules += [m for m in value.modules() if not any(m is k for k in self.modules)]
            value = getattr(type(value), "forward", None)
        if isinstance(value, types.MethodType):
            owner = value.__self__
            if isinstance(owner, Module):
                self.visit(owner)
            else:
                self.values.append((lambda: owner, "self"))
            value = value.__func__
        value = getattr(value, "__wrapped__", value)
        if isinstance(value, types.FunctionType):
            self._visit_code(value)

    def _visit_code(self, fn: types.FunctionType) -> None:
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            self._reach(lambda c=cell: c.cell_contents, name, lambda v, c=cell: setattr(c, "cell_contents", v))
        for name in _names(fn.__code__):
            if name in fn.__globals__:
                self._reach(
                    lambda g=fn.__globals__, n=name: g[n], name, lambda v, g=fn.__globals__, n=name: g.__setitem__(n, v)
                )

    def _reach(self, read: Callable[[], object], name: str, write: Callable[[object], None]) -> None:
        try:
            value = read()
        except (ValueError, KeyError):  # a cell that is not filled yet
            return
        if isinstance(value, (types.ModuleType, type)) or is_ours(value):
            return
        self.values.append((read, name))
        self.writers[name] = write
        for inner in (
            value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else (value,)
        ):
            if isinstance(inner, (Module, types.FunctionType, types.MethodType)):
                self.visit(inner)

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
        names += [f"{name!r}, which the function reaches" for _, name in self.values] + [
            "whether a module trains",
            "an attribute or hook of a module",
        ]
        for name, a, b in zip(names, before, after, strict=False):
            if a != b:
                return f"{name} changed"
        return "what the function reaches changed"

    # ---- undoing
    def attributes(self) -> list:
        """What a call might change: names, attributes of modules and objects, contents of containers, with what they are."""
        names = [(name, _read(read)) for read, name in self.values]
        tables: list = [(m.__dict__, f"of {type(m).__name__}") for m in self.modules]
        tables += [(t, f"of {type(m).__name__}") for m in self.modules for t in (m._buffers, m._parameters)]
        for name, value in names:
            tables += [(t, f"in {name!r}") for t in containers(value, DEPTH)]
        return [names, [(table, table.copy(), where) for table, where in tables]]

    def restore(self, before: list) -> str | None:
        """Undo what a call changed; says in words what that was."""
        names, tables = before
        changed = None
        for (read, name), (_, old) in zip(self.values, names, strict=True):
            if _read(read) is not old:
                changed = changed or f"the variable {name!r}"
                if name in self.writers:
                    self.writers[name](old)
        for table, old, where in tables:
            changed = _put_back(table, old, where) or changed
        return changed


def containers(value, depth: int) -> list:
    """The lists, dicts, sets and objects' attributes that a value is made of."""
    if depth == 0 or isinstance(value, (*SIMPLE, Tensor, Module)) or callable(value) or is_ours(value):
        return []
    if isinstance(value, (list, dict, set)):
        inner = [
            c
            for v in list(value.values() if isinstance(value, dict) else value)[:LEAVES]
            for c in containers(v, depth - 1)
        ]
        return [value, *inner]
    own = getattr(value, "__dict__", None)
    return containers(own, depth) if type(own) is dict else []


def _put_back(table, old, where: str) -> str | None:
    """Make a container what it was; the words for what was changed in it."""
    if isinstance(table, dict):
        names = [
            n
            for n in [*table, *old]
            if table.get(n, table) is not old.get(n, old) and n not in ("_buffers", "_parameters")
        ]
        for name in names:
            if name in old:
                table[name] = old[name]
            else:
                table.pop(name, None)
        return f"attribute {names[0]!r} {where}" if names else None
    if len(table) == len(old) and all(a is b for a, b in zip(table, old, strict=True)):
        return None
    table.clear()
    table.extend(old) if isinstance(table, list) else table.update(old)
    return f"a {type(table).__name__} {where}"


def _names(code: types.CodeType) -> list[str]:
    """The global names that code (also of functions defined inside) may read."""
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _names(constant)
    return list(dict.fromkeys(names))


def _read(read: Callable[[], object]):
    try:
        return read()
    except (ValueError, KeyError):
        return None


def _simple_attributes(m: Module) -> tuple:
    return tuple([(k, v) for k, v in m.__dict__.items() if isinstance(v, SIMPLE)]), tuple(map(id, m._modules.values()))


class Lifted:
    """Tensors that a captured graph takes as further inputs: they must be where they were, and as they were."""

    def __init__(self, tensors: list[Tensor], reached: list[Module]):
        self.tensors = tensors
        homes = {
            id(t): (table, name) for m in reached for table in (m._parameters, m._buffers) for name, t in table.items()
        }
        self.homes = [(*homes[id(t)], t) for t in tensors if id(t) in homes]
        self.facts = [(t, t.dtype, tuple(t.array.shape), stride_of(t), requires_grad(t)) for t in tensors]

    def hold(self) -> bool:
        for table, name, t in self.homes:
            if table.get(name) is not t:
                return False
        for t, dtype, shape, stride, wants in self.facts:
            if (
                t.dtype is not dtype
                or t.array.shape != shape
                or stride_of(t) != stride
                or requires_grad(t) is not wants
            ):
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
