"""Functions with a plain case in them: where they are made, and where all of them are registered.

A plain case does the work of an operator without asking the dispatcher. So each function says past which operators it
goes (`keys`: "mm.default"), and while one of those is overridden (`override`, called by `library`) the function runs
without its plain case. That holds for functions whose source is generated (`generate`) and for those written by hand
(`bypassing`) alike. Modes, transforms and subclasses need no entry here: every plain case asks for plain tensors and
an ambient mode in which nothing listens.

A generated function is a stub until its first call, which writes the source, compiles it and swaps the code in: the
function object stays the same for everybody who holds it, and importing hundreds of them is cheap.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Union

from ...core.errors import no_memory
from ...core.source import run_source
from ...core.tensor import PLAIN

__all__ = [
    "all_plain",
    "ANY",
    "bypassing",
    "choose",
    "functions_past",
    "generate",
    "is_overridden",
    "overridden_operators",
    "override",
    "past",
]

Write = Callable[[bool], tuple[str, dict]]  # with or without the plain case: the source of `wrapper`, and what it names

Entry = Union["Generated", "Written", "Choice"]
ANY = "*"  # the key of functions that go past whatever a body is written in
_entries: list[Entry] = []  # those that `_past` does not have yet
_past: dict[str, list[Entry]] = {}  # key of an operator -> functions that go past it
overridden_operators: set[str] = set()


def past() -> dict[str, list[Entry]]:
    """What goes past an operator, by the operator's key. Entries are sorted in here, not at import: few programs override."""
    for entry in _entries:
        for key in entry.keys:
            _past.setdefault(key, []).append(entry)
    _entries.clear()
    return _past


def functions_past(key: str) -> list[Callable]:
    """The functions that do the work of an operator without asking it."""
    return [entry.function for entry in past().get(key, ())]


def is_overridden(*keys: str) -> bool:
    """Whether something else is registered for one of these operators; without a name, for any at all."""
    return bool(overridden_operators) if not keys or ANY in keys else not overridden_operators.isdisjoint(keys)


def override(key: str, active: bool) -> None:
    """Something else is (or is no longer) registered for an operator: bring the functions that go past it in line."""
    if active:
        overridden_operators.add(key)
    else:
        overridden_operators.discard(key)
    for entry in (*past().get(key, ()), *past().get(ANY, ())):
        entry.refresh()


# ---- generated
def _stub(*args, **kwargs):
    materialize()  # noqa: F821 - each stub's globals hold its own
    return materialized(*args, **kwargs)  # noqa: F821 - and itself, under a name that no source uses


_STUB = _stub.__code__
COMMON: dict = {"no_memory": no_memory}  # what any generated function may name; filled by those who write them


def _saying_what_lacks(source: str) -> str:
    """The source of a function that says, as PyTorch does, for what there was no memory; it costs nothing until then."""
    head, _, body = source.partition("\n")
    inner = "\n".join([f"    {line}" for line in body.split("\n")])
    return f"{head}\n    try:\n{inner}\n    except MemoryError as error:\n        raise no_memory(error) from None"


class Generated:
    """A function whose source is written when it is first called, and again when it must change."""

    __slots__ = ("bypasses", "function", "label", "write")

    def __init__(self, name: str, label: str, bypasses: Callable[[], tuple[str, ...]], write: Write):
        self.bypasses, self.label, self.write = bypasses, label, write
        namespace = {"__builtins__": __builtins__, "__name__": "pullback", "materialize": self.materialize}
        self.function = function = types.FunctionType(_STUB, namespace, name)
        namespace["function"] = namespace["materialized"] = function

    @property
    def keys(self) -> tuple[str, ...]:
        return self.bypasses()

    def materialize(self) -> None:
        source, names = self.write(not is_overridden(*self.keys))
        function = self.function
        namespace = function.__globals__
        namespace.update(COMMON | names)
        result: dict = {}
        run_source(_saying_what_lacks(source), self.label, namespace, result)
        real = result["wrapper"]
        function.__defaults__, function.__kwdefaults__ = real.__defaults__, real.__kwdefaults__
        name = function.__name__
        function.__code__ = real.__code__.replace(co_name=name, co_qualname=name)

    def refresh(self) -> None:
        if self.function.__code__ is not _STUB:
            self.materialize()


def generate(name: str, label: str, bypasses: Callable[[], tuple[str, ...]], write: Write) -> types.FunctionType:
    """A function whose code is made at its first call; `label` is its full name ("torch.mul"), `bypasses()` what it goes past."""
    entry = Generated(name, label, bypasses, write)
    _entries.append(entry)
    return entry.function


# ---- written by hand
class Written:
    """A function with its plain case in its own code, and the code that stands there while it must not be taken."""

    __slots__ = ("function", "keys", "quick", "general")

    def __init__(self, function: types.FunctionType, keys: tuple[str, ...], general: types.FunctionType):
        if general.__globals__ is not function.__globals__ and general is not _nothing or function.__closure__:
            raise TypeError(f"{function.__qualname__}: both codes must be functions of one module, without a closure")
        self.function, self.keys = function, keys
        self.quick, self.general = _code_of(function), _code_of(general)

    def refresh(self) -> None:
        code, defaults, keywords = self.general if is_overridden(*self.keys) else self.quick
        function = self.function
        function.__code__, function.__defaults__, function.__kwdefaults__ = code, defaults, keywords


def _code_of(function: types.FunctionType) -> tuple:
    return function.__code__, function.__defaults__, function.__kwdefaults__


def _nothing(*args, **kwargs) -> None:
    """A plain case that is never met."""


class Choice:
    """Something else than a function that goes past operators: it is told whether it may."""

    __slots__ = ("function", "keys")

    def __init__(self, function: Callable[[bool], None], keys: tuple[str, ...]):
        self.function, self.keys = function, keys

    def refresh(self) -> None:
        self.function(not is_overridden(*self.keys))


def choose(function: Callable[[bool], None], *keys: str) -> None:
    """Call `function(allowed)` now, and whenever it changes whether these operators may be gone past."""
    entry = Choice(function, keys)
    _entries.append(entry)
    entry.refresh()


def all_plain(*tensors) -> bool:
    """Whether nothing is special about tensors, and they are of one dtype; None among them does not count, but for the first."""
    dtype = tensors[0].dtype if tensors[0].__class__ in PLAIN else None
    for t in tensors:
        if t is not None and (t.__class__ not in PLAIN or t._keys or t.dtype is not dtype):
            return False
    return True


def bypassing(*keys: str, otherwise: Callable = _nothing):
    """Mark a hand-written function that goes past operators; `otherwise` is what it does while one is overridden.

    Without `otherwise` it answers None: the function is a plain case alone, and its caller knows the rest.
    """

    def decorate(function):
        _entries.append(Written(function, keys, otherwise))  # type: ignore[arg-type]
        function.bypassed = keys[0]
        return function

    return decorate
