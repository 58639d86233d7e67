"""Whether a program may hook a tensor after its graph has ended, in its own code or in functions that this calls.

In: a frame, where it stands. Out: a yes or no. Code is read, not run: names that it loads are looked up where they are now,
and what they give is read in its turn (functions, methods of those names, calls of objects). A yes may be wrong, and costs
a graph that ends earlier.
"""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Iterator

from ...core.tensor import Tensor
from .frame import NULL, Frame
from .lookups import ABSENT
from .native import contents
from .outside import is_ours, module_of
from .tracing import Unseen

HOOKING = frozenset({"register_hook", "retain_grad", "register_multi_grad_hook", "register_prehook"})
CALLED = ("__call__", "forward", "__init__")
DEPTH = 8  # functions that call functions
CONTAINERS = (list, tuple, dict, set, frozenset)
MOST = 64  # values of a container that are looked at


def hooks_later(frame: Frame) -> bool:
    """Whether the code that a frame has yet to execute may hook a tensor."""
    code = frame.steps.code
    loops = [arg for name, arg in code[frame.index :] if "JUMP" in name and isinstance(arg, int) and arg < frame.index]
    loaded = [arg for _, arg in code[min([frame.index, *loops]) :]]
    names = {arg for arg in loaded if isinstance(arg, str)}
    names = names.union(
        *[names_of(arg) for arg in loaded if isinstance(arg, types.CodeType)]
    )  # of functions defined there
    local = [v.value if type(v) is Unseen else v for v in frame.locals.values()]
    around = [*local, *frame.stack, *map(contents, frame.cells.values())]
    return Reachable().hooks(names, frame.globals, around, DEPTH)


class Reachable:
    """Follows names through the functions and objects that they stand for, each once."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def hooks(self, names: set[str], globals: dict, around: list, depth: int) -> bool:
        """Whether code that loads these names, with these values at hand, may hook a tensor."""
        if not names.isdisjoint(HOOKING):
            return True
        values = [v for v in around if not isinstance(v, Tensor)] + [globals[n] for n in names if n in globals]
        return depth > 0 and any(self._may_hook(value, names, depth - 1) for value in values)

    def _may_hook(self, value, names: set[str], depth: int) -> bool:
        return any(self._function_hooks(function, depth) for function in functions_of(value, names))

    def _function_hooks(self, function: types.FunctionType, depth: int) -> bool:
        if id(function) in self.seen or is_ours(module_of(function)):
            return False
        self.seen.add(id(function))
        defaults = (function.__defaults__ or ()), (function.__kwdefaults__ or {}).values()
        around = [*[contents(cell) for cell in function.__closure__ or ()], *itertools.chain(*defaults)]
        return self.hooks(names_of(function.__code__), function.__globals__, around, depth)


def functions_of(value, names: set[str], depth: int = 3) -> Iterator[types.FunctionType]:
    """The Python functions that code may call when it has a value, or takes one out of it (to a depth), and uses these names on it."""
    if value is NULL or isinstance(value, Tensor):
        return
    if type(value) in CONTAINERS:
        inside = itertools.islice(value.values() if type(value) is dict else value, MOST)
        for inner in inside if depth else ():
            yield from functions_of(inner, names, depth - 1)
        return
    if isinstance(value, types.FunctionType):
        yield value
    elif isinstance(value, types.MethodType):
        yield from functions_of(value.__func__, names)
        yield from functions_of(value.__self__, names)
    elif isinstance(value, functools.partial):
        yield from functions_of(value.func, names)
    elif isinstance(value, types.ModuleType):
        if not is_ours(value.__name__):
            yield from (v for n in names if isinstance(v := value.__dict__.get(n), types.FunctionType))
    elif isinstance(value, functools._lru_cache_wrapper):
        yield from functions_of(value.__wrapped__, names)
    else:
        yield from _methods(value, names)


def _methods(value, names: set[str]) -> Iterator[types.FunctionType]:
    cls = value if isinstance(value, type) else type(value)
    for base in cls.__mro__:
        if base.__module__ != "builtins" and not is_ours(base.__module__):
            for name in (*CALLED, *names):
                found = base.__dict__.get(name)
                found = getattr(found, "__func__", getattr(found, "fget", found))
                if isinstance(found, types.FunctionType):
                    yield found
    own = getattr(value, "__dict__", None)
    if type(own) is dict:
        for name in names:
            inner = own.get(name, ABSENT)
            inner = own.get("_modules", {}).get(name, ABSENT) if inner is ABSENT else inner
            if inner is not ABSENT and inner is not value:
                yield from functions_of(inner, names)


def names_of(code: types.CodeType) -> set[str]:
    """Names that code, and code defined in it, loads."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    words = [c for c in code.co_consts if c.__class__ is str and c in HOOKING]  # as `getattr` is given them
    return set(code.co_names).union(words, *map(names_of, inner))
