"""Checked calls: each call of a compiled function is also made by the function itself, on copies, and compared.

In: a function, its compiled form, and arguments. Out: what the compiled form gives; where that differs from what the
function gives (values, gradients, what is left in arguments, closures and globals, printed text, errors), a
`VerificationError` that says where. Copies are made of all that the function reaches by its arguments, its closure and
the globals it names; what lies beyond (attributes of classes, other modules, files) is touched by both.
"""

from __future__ import annotations

import contextlib
import copy
import io
import sys
import types
import warnings
from collections.abc import Callable, Iterator

from ...autograd.calls import grad
from ...core import random
from ...core.modes import ambient, masked
from ...core.node import Node, edge_of, requires_grad
from ...core.tensor import Tensor
from ...nn.module import Module
from .guards import SIMPLE, of_package

TOLERANCES = {"float16": 1e-2, "bfloat16": 3e-2, "float32": 1e-4, "complex64": 1e-4, "complex32": 1e-2}


class VerificationError(AssertionError):
    """A compiled function did something else than the function itself."""


class Uncheckable(Exception):
    """A call that cannot be made twice: why."""


# ---- copies
class Copies:
    """Copies of what a function reaches, each object once; `pairs` are those that must end up alike."""

    def __init__(self) -> None:
        self.memo: dict[int, object] = {}
        self.pairs: list[tuple[str, object, object]] = []
        self.tables: list[tuple[dict, dict]] = []  # globals, and their copies
        self.alive: list = []  # what the memo knows by identity

    def value(self, value):
        self._seed(value)
        try:
            return copy.deepcopy(value, self.memo)
        except Exception as error:  # whatever an object raises that does not want to be copied
            raise Uncheckable(f"a {type(value).__name__} cannot be copied: {error}") from error

    def _seed(self, value, depth: int = 8) -> None:
        """Copy first what `deepcopy` would refuse or share: functions, cells, tensors with a history."""
        if isinstance(value, (*SIMPLE, type)) or id(value) in self.memo or depth == 0:
            return
        if isinstance(value, types.ModuleType):
            self._keep(value, value)
        elif isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, types.FunctionType):
            self.function(value)
        elif isinstance(value, types.MethodType):
            self._keep(value, types.MethodType(self.function(value.__func__), self.value(value.__self__)))
        else:
            for inner in _one_step_inside(value):
                self._seed(inner, depth - 1)

    def _tensor(self, t: Tensor) -> None:
        if not t.is_leaf:
            self._keep(t, _with_history(t))
            return
        result = copy.deepcopy(t, self.memo)
        self._keep(t, result)
        if t.grad is not None:
            result.grad = copy.deepcopy(t.grad, self.memo)

    def _keep(self, value, result) -> None:
        self.memo[id(value)] = result
        self.alive.append(value)

    def function(self, function: types.FunctionType) -> types.FunctionType:
        """A function that reaches copies."""
        if id(function) in self.memo:
            return self.memo[id(function)]  # type: ignore[return-value]
        name = function.__globals__.get("__name__") or ""
        if of_package(name) or name.partition(".")[0] in sys.stdlib_module_names and name != "__main__":
            return function
        table = self._globals(function.__globals__)
        cells = [self.memo.get(id(c)) or types.CellType() for c in function.__closure__ or ()]
        result = types.FunctionType(function.__code__, table, function.__name__, None, tuple(cells) or None)
        self._keep(function, result)
        for name, cell, own in zip(function.__code__.co_freevars, function.__closure__ or (), cells, strict=True):
            self._cell(name, cell, own)
        result.__defaults__, result.__kwdefaults__ = (
            self.value(function.__defaults__),
            self.value(function.__kwdefaults__),
        )
        result.__dict__.update(function.__dict__)
        result.__qualname__ = function.__qualname__
        for name in _names(function.__code__):
            if name in function.__globals__ and table.get(name) is function.__globals__[name]:
                table[name] = self.value(table[name])
        return result

    def _cell(self, name: str, cell: types.CellType, own) -> None:
        if id(cell) in self.memo:
            return
        self._keep(cell, own)
        with contextlib.suppress(ValueError):  # not filled
            own.cell_contents = self.value(cell.cell_contents)
        self.pairs.append((f"the variable {name!r} around it", cell, own))

    def _globals(self, table: dict) -> dict:
        if id(table) not in self.memo:
            self._keep(table, dict(table))
            self.tables.append((table, self.memo[id(table)]))  # type: ignore[arg-type]
        return self.memo[id(table)]  # type: ignore[return-value]


def _with_history(t: Tensor) -> Tensor:
    """A copy of a result: no leaf either."""
    with masked(0):
        leaf = t.detach().clone()
        return leaf.requires_grad_().clone() if requires_grad(t) else leaf


def _one_step_inside(value) -> list:
    """What an object holds, one step deep."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    own = getattr(value, "__dict__", None)
    return list(own.values()) if isinstance(own, dict) and not of_package(type(value).__module__) or isinstance(
        value, Module
    ) else []  # fmt: skip


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


# ---- comparing
class Comparison:
    """Differences between what the function and what its compiled form left, in words."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, int]] = set()

    def difference(self, where: str, want, have) -> str | None:
        """The first difference; None where there is none."""
        if isinstance(want, (Tensor, *SIMPLE)) or type(want) is not type(have):
            return self._leaf(where, want, have)
        if (id(want), id(have)) in self.seen or want is have:
            return None
        self.seen.add((id(want), id(have)))
        if isinstance(want, types.CellType):
            return self.difference(where, _contents(want), _contents(have))
        if isinstance(want, types.FunctionType):
            return None if want.__code__ is have.__code__ else f"{where} is another function"
        if isinstance(want, dict):
            found = self._items(where, want, have)
        elif isinstance(want, (list, tuple)):
            found = self._sequence(where, want, have)
        else:
            found = (
                None if not isinstance(want, (set, frozenset)) or want == have else f"{where} is {have!r}, not {want!r}"
            )
        own = getattr(want, "__dict__", None)
        return found or (self._items(where, own, have.__dict__, ".") if isinstance(own, dict) else None)

    def _items(self, where: str, want: dict, have: dict, dot: str = "") -> str | None:
        if list(map(_key, want)) != list(map(_key, have)):
            return f"{where} has {[*have]}, not {[*want]}"
        pairs = zip(want.items(), have.values(), strict=True)
        found = (self.difference(f"{where}.{k}" if dot else f"{where}[{k!r}]", a, b) for (k, a), b in pairs)
        return next(filter(None, found), None)

    def _sequence(self, where: str, want, have) -> str | None:
        if len(want) != len(have):
            return f"{where} has {len(have)} items, not {len(want)}"
        pairs = enumerate(zip(want, have, strict=True))
        return next(filter(None, (self.difference(f"{where}[{i}]", a, b) for i, (a, b) in pairs)), None)

    def _leaf(self, where: str, want, have) -> str | None:
        if type(want) is not type(have):
            return f"{where} is a {type(have).__name__}, not a {type(want).__name__}"
        if not isinstance(want, Tensor):
            same = want == have or want != want and have != have
            return None if same else f"{where} is {have!r}, not {want!r}"
        facts = [(name, getattr(want, name), getattr(have, name)) for name in ("dtype", "shape", "requires_grad")]
        for name, a, b in facts:
            if a != b:
                return f"{where}.{name} is {b}, not {a}"
        if not close(want, have):
            return f"{where} is {have.detach()}, not {want.detach()}"
        return self.difference(f"{where}.grad", *_gradients(want, have)) if want.is_leaf else None


def _gradients(want: Tensor, have: Tensor) -> tuple:
    return (want.grad, have.grad) if have.is_leaf else (None, None)


def _contents(cell: types.CellType):
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _key(key):
    return key if isinstance(key, SIMPLE) else type(key)


def close(want: Tensor, have: Tensor) -> bool:
    """Whether two tensors hold the same, up to what another order of the same arithmetic may change."""
    tolerance = TOLERANCES.get(want.dtype.scalar_name.lower(), 1e-7)
    with masked(0):
        a, b = want.detach(), have.detach()
        if not a.is_floating_point() and not a.is_complex():
            return bool((a == b).all()) if a.numel() else True
        scale = a.abs().nan_to_num(0.0, 0.0, 0.0).max().item() if a.numel() else 0.0
        return a.allclose(b, rtol=tolerance, atol=tolerance * max(1.0, float(scale)), equal_nan=True)


# ---- a call
def checked(function: Callable, compiled: Callable[[], object], args: tuple, kwargs: dict, name: str, uncompiled):
    """What `compiled()` gives, compared with what the function gives for copies of the arguments inside `uncompiled`."""
    copies = Copies()
    try:
        given_args, given_kwargs = copies.value(args), copies.value(kwargs)
        own = copies.value(function) if isinstance(function, Module) else _own(copies, function)
    except Uncheckable as error:
        warnings.warn(f"compile: a call of {name} is not checked: {error}", RuntimeWarning, stacklevel=4)
        return compiled()
    state = random.states()
    with uncompiled:
        want = Outcome(own, given_args, given_kwargs)
    after = random.states()
    random.set_states(state)
    have = Outcome(compiled, (), {}, echo=True)
    pairs = [("an argument", (given_args, given_kwargs), (args, kwargs)), *((w, b, a) for w, a, b in copies.pairs)]
    pairs += [(f"the global {n!r}", b[n], a.get(n)) for a, b in copies.tables for n in b if b[n] is not a.get(n)]
    pairs += [("the function's module", own, function)] if isinstance(function, Module) else []
    found = difference(want, have, pairs) or _gradient_difference(
        want, have, (given_args, given_kwargs), (args, kwargs)
    )
    if found is None and any((after[k] != now).any() for k, now in random.states().items() if k in after):
        found = "the state of random numbers is another"
    if found is not None:
        raise VerificationError(
            f"the compiled {name} does not do what {name} does: {found}. (config.verify compares each call with an "
            "uncompiled one.) This is a defect of the compiler: please report it with the program"
        )
    return have.give()


def _own(copies: Copies, function: Callable) -> Callable:
    if isinstance(function, types.FunctionType):
        return copies.function(function)
    if isinstance(function, types.MethodType):
        return types.MethodType(copies.function(function.__func__), copies.value(function.__self__))
    return copies.value(function)


class Outcome:
    """What a call gave: a value or an error, and what it printed."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict, echo: bool = False):
        self.value, self.error = None, None
        text, before = io.StringIO(), ambient.mode
        try:
            with contextlib.redirect_stdout(text):
                self.value = function(*args, **kwargs)
        except Exception as error:
            self.error = error
        if not echo:
            ambient.restore(before)
        self.text = text.getvalue()
        if echo and self.text:
            sys.stdout.write(self.text)

    def give(self):
        if self.error is not None:
            raise self.error
        return self.value


def difference(want: Outcome, have: Outcome, pairs: list[tuple]) -> str | None:
    """How a compiled call differs from the other one."""
    if (want.error is None) != (have.error is None) or type(want.error) is not type(have.error):
        return f"it raises {have.error!r}, not {want.error!r}"
    if want.text != have.text:
        return f"it prints {have.text!r}, not {want.text!r}"
    compare = Comparison()
    found = compare.difference("its result", want.value, have.value)
    return found or next(filter(None, (compare.difference(*pair) for pair in pairs)), None)


def _gradient_difference(want: Outcome, have: Outcome, given, args) -> str | None:
    """How gradients differ, where asking for them runs no Python of the user's."""
    outs = [[t for t in _tensors(o.value) if requires_grad(t) and not t.is_leaf] for o in (want, have)]
    wrt = [[t for t in _tensors(v) if requires_grad(t)] for v in (given, args)]
    if not outs[0] or not wrt[0] or [len(o) for o in outs] != [len(outs[0])] * 2 or len(wrt[0]) != len(wrt[1]):
        return None
    if any(_runs_python(outs[i]) for i in (0, 1)):
        return None

    grads = []
    for result, leaves in zip(outs, wrt, strict=True):
        seeds = [t.detach().clone().fill_(1) for t in result]
        grads.append(grad(result, leaves, seeds, retain_graph=True, allow_unused=True))
    for i, (a, b) in enumerate(zip(*grads, strict=True)):
        zero = next((g for g in (a, b) if g is not None), None) if a is None or b is None else None
        if zero is not None and not close(zero.new_zeros(zero.shape), zero):
            return f"the gradient of tensor {i} of its arguments is {b}, not {a}"
        if a is not None and b is not None and not close(a, b):
            return f"the gradient of tensor {i} of its arguments is {b}, not {a}"
    return None


def _runs_python(outs: list[Tensor]) -> bool:
    """Whether a backward of these would call hooks or custom functions."""
    seen: set[int] = set()
    waiting: list[Node | None] = [edge_of(t)[0] for t in outs]
    while waiting:
        node = waiting.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if node.hooked or hasattr(node, "_forward_cls"):
            return True
        waiting += [edge[0] for edge in node.edges or () if edge is not None]
    return False


def _tensors(value, depth: int = 6) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if depth == 0 or not isinstance(value, (list, tuple, dict)):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [t for v in inner for t in _tensors(v, depth - 1)]
