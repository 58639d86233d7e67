"""Whether a Python function only computes: what a trace of one call may stand for in all later ones.

In: a function. Out: None, or in words what else it does. It is read, not run: its bytecode, that of the functions it
names, and the values it reaches. What is not plainly harmless counts as an effect: writing to names, attributes and
items from outside, calling what is not known, holding objects that a method call may change.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import math
import operator
import types
from collections.abc import Callable, Iterator

from ...core.dtype import dtype
from ...core.tensor import Tensor
from .guards import SIMPLE, of_package

HARMLESS = frozenset(
    getattr(builtins, name)
    for name in "abs all any bool complex dict divmod enumerate filter float frozenset getattr hasattr int isinstance "
    "issubclass len list map max min pow range repr reversed round set slice sorted str sum super tuple type zip".split()
)
MODULES = (math, operator, functools)
WRITES = {
    "STORE_GLOBAL": "assigns to the global", "DELETE_GLOBAL": "deletes the global", "STORE_ATTR": "assigns to the attribute",
    "DELETE_ATTR": "deletes the attribute", "STORE_SUBSCR": "assigns to an item", "DELETE_SUBSCR": "deletes an item",
    "IMPORT_NAME": "imports", "YIELD_VALUE": "yields", "SEND": "yields", "BEFORE_ASYNC_WITH": "awaits",
    "STORE_SLICE": "assigns to an item",
}  # fmt: skip
# Methods and functions, by name, of what lies outside a graph: other backwards, hooks, the engine, random state, I/O.
CHANGES = frozenset(
    "append appendleft extend insert remove pop popleft popitem clear update setdefault discard reverse sort".split()
)
CALLS = CHANGES | frozenset(
    "backward queue_callback register_hook register_prehook register_post_accumulate_grad_hook manual_seed seed "
    "set_rng_state tolist item numpy data_ptr requires_grad_ detach_ set_ resize_ storage untyped_storage "
    "current_thread sleep write print".split()
)


def is_output(effect: str) -> bool:
    """Whether an effect is one that the world sees, and at which any graph must end."""
    return effect.removeprefix("calls ") in ("print", "input", "open", "write", "sleep")


def effect_of(function: Callable) -> str | None:
    """What a function does besides computing; None where nothing is seen."""
    return next(_effects(function, set()), None)


def uses_libraries(function: Callable) -> bool:
    """Whether a function works with other libraries: of such Python little can be captured."""
    return any(effect.startswith("uses the module") for effect in _effects(function, set()))


def visible_effect_of(function: Callable) -> str | None:
    """The first effect of a function that is plainly seen outside: at it any graph must end. Unlike `effect_of`, what is
    not known for one is none."""
    return next(filter(is_output, _effects(function, set())), None) or next(_writes_outside(function), None)


def _writes_outside(function: Callable) -> Iterator[str]:
    """Assignments to names from outside, and calls that change what these names hold."""
    function = inspect.unwrap(function) if isinstance(function, types.FunctionType) else function
    waiting = [function.__code__] if isinstance(function, types.FunctionType) else []
    while waiting:
        code = waiting.pop()
        waiting += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        outside = None  # the name from outside that the step before has read
        for step in dis.get_instructions(code):
            if step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                yield f"assigns to the global {step.argval!r}"
            free = step.opname.endswith("_DEREF") and step.argval in function.__code__.co_freevars
            if free and step.opname.startswith("STORE"):
                yield f"assigns to {step.argval!r} of the function around it"
            if outside is not None and step.argval in CHANGES and step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                yield f"changes {outside!r}"
            outside = step.argval if free or step.opname == "LOAD_GLOBAL" else None


def effect_of_values(values: dict) -> str | None:
    """What calling methods of values, by name, may do besides computing."""
    return next((found for name, value in values.items() for found in _of_held(name, value)), None)


def _of_held(name: str, value) -> Iterator[str]:
    if isinstance(value, (list, tuple, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _of_held(name, inner)
    elif isinstance(value, types.FunctionType):  # what it reaches may be another thing at the next call
        yield f"holds the function {value.__name__}"
    else:
        yield from _of_value(name, value, set())


def _effects(function, seen: set[int]) -> Iterator[str]:
    """All that a function does besides computing, in the order of its code."""
    if isinstance(function, functools.partial):
        yield from _effects(function.func, seen)
        for given in (*function.args, *function.keywords.values()):
            yield from _of_value("an argument", given, seen)
        return
    function = inspect.unwrap(function) if isinstance(function, types.FunctionType) else function
    if id(function) in seen:
        return
    seen.add(id(function))
    if isinstance(function, types.FunctionType):
        yield from _of_code(function, function.__code__, seen)
        yield from _of_closure(function, seen)
    else:
        yield f"calls {getattr(function, '__qualname__', type(function).__name__)}"


def _of_closure(function: types.FunctionType, seen: set[int]) -> Iterator[str]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # not filled
            yield f"reaches {name!r}, which has no value"
        else:
            yield from _of_value(name, value, seen)


def _of_code(function: types.FunctionType, code: types.CodeType, seen: set[int]) -> Iterator[str]:
    """What the instructions show. Functions defined inside count as called."""
    for step in dis.get_instructions(code):
        yield from _of_step(function, code, step, seen)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _of_code(function, inner, seen)


def _of_step(
    function: types.FunctionType, code: types.CodeType, step: dis.Instruction, seen: set[int]
) -> Iterator[str]:
    name = step.opname
    if name == "YIELD_VALUE" and code.co_name == "<genexpr>":
        return
    if name in WRITES:
        yield f"{WRITES[name]} {step.argval!r}" if isinstance(step.argval, str) else WRITES[name]
    elif name in ("STORE_DEREF", "DELETE_DEREF") and step.argval in code.co_freevars:
        yield f"assigns to {step.argval!r} of the function around it"
    elif name in ("LOAD_ATTR", "LOAD_METHOD") and step.argval in CALLS:
        yield f"calls {step.argval}"
    elif name in ("LOAD_GLOBAL", "LOAD_NAME"):
        namespace = function.__globals__
        value = namespace[step.argval] if step.argval in namespace else getattr(builtins, step.argval, None)
        yield from _of_value(step.argval, value, seen)


def _of_value(name: str, value, seen: set[int]) -> Iterator[str]:
    """What reaching a value may do."""
    if isinstance(value, tuple) and not isinstance(value, SIMPLE):
        for inner in value:
            yield from _of_value(name, inner, seen)
    elif isinstance(value, (types.FunctionType, functools.partial)):
        if not of_package(getattr(value, "__module__", "")):
            yield from _effects(value, seen)
    else:
        found = _of_object(name, value)
        if found is not None:
            yield found


def _of_object(name: str, value) -> str | None:
    """What reaching a value that is no function of Python may do."""
    if isinstance(value, (*SIMPLE, Tensor, dtype, slice, range, types.EllipsisType)) or value is NotImplemented:
        return None
    if isinstance(value, types.ModuleType):
        return None if value in MODULES or of_package(value.__name__) else f"uses the module {value.__name__}"
    if isinstance(value, type):
        known = value in HARMLESS or of_package(value.__module__) or issubclass(value, BaseException)
        return None if known else f"uses the class {value.__name__}"
    if isinstance(value, types.BuiltinFunctionType):
        return None if value in HARMLESS or value.__module__ == "math" else f"calls {value.__name__}"
    if of_package(type(value).__module__) and not hasattr(value, "__dict__"):
        return None
    return None if _is_operator(value) else f"reaches {name!r}, a {type(value).__name__}"


def _is_operator(value) -> bool:
    return of_package(type(value).__module__) and type(value).__module__.split(".")[1] in ("ops", "library")
