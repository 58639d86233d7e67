"""What a Python function reaches and does, read off its code and the values it names.

In: a function. Out: a `Reading`: `effects`, in words, all that is more than computing, and `key`, all that the function
reaches besides its arguments. What always holds: every value that is reached is either part of the key or an effect. So two
readings without effects and with equal keys compute the same of the same arguments, and a trace of one may stand for both.
Objects that can change without their key changing (lists, instances, modules of other libraries, a tensor's `.grad`) are
effects; numbers, strings and tuples of them go into the key as they are, tensors by identity and metadata, functions by
their code and everything they reach in turn.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import inspect
import math
import operator
import types
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...core.dtype import dtype
from ...core.size import Size
from ...core.tensor import Tensor
from .guards import SIMPLE, describe, of_package

HARMLESS = frozenset(
    getattr(builtins, name)
    for name in "abs all any bool complex dict divmod enumerate filter float frozenset getattr hasattr int isinstance "
    "issubclass len list map max min pow range repr reversed round set slice sorted str sum super tuple type zip".split()
)
MODULES = (math, operator, functools)
CONSTANTS = (dtype, Size, slice, range, types.EllipsisType, types.NotImplementedType)
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
    "set_rng_state tolist item numpy data_ptr requires_grad_ retain_grad detach_ set_ resize_ storage untyped_storage "
    "current_thread sleep write print".split()
)
# Attributes, by name, of tensors and of this package that change while everything else stays as it is.
STATE = frozenset(
    "grad _grad grad_fn _version _base _backward_hooks storage_offset default_generator initial_seed get_rng_state "
    "get_num_threads get_num_interop_threads get_float32_matmul_precision is_anomaly_enabled is_warn_always_enabled "
    "backends config _forward_cls __dict__ __globals__ __closure__ __self__ __defaults__".split()
)
READS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


class Read(NamedTuple):
    """A name from outside that code reads, and the attributes it reads of it at once."""

    name: str
    attributes: tuple[str, ...]
    free: bool  # a variable of the function around it; else a global


class Reading:
    """See the module's docstring."""

    def __init__(self, function: Callable):
        self.effects: list[str] = []
        self.writes_in_place = False  # whether there is a `+=` or the like, which changes what it is given
        self._seen: dict[int, int] = {}  # functions on the way, by identity
        self.key = self._function(function)

    # ---- functions
    def _function(self, function) -> tuple:
        kind = type(function)
        if kind is functools.partial:
            given = (*function.args, *function.keywords.values())
            names = tuple(function.keywords)
            return (
                "partial", self._function(function.func), names, *[self._value("an argument", v) for v in given],
            )  # fmt: skip
        if kind is not types.FunctionType:
            return self._effect(f"calls {getattr(function, '__qualname__', kind.__name__)}")
        if id(function) in self._seen:
            return ("again", self._seen[id(function)])
        self._seen[id(function)] = len(self._seen)
        if is_package_code(function):
            return self._own_function(function)
        self.writes_in_place |= writes_in_place(function.__code__)
        parts = [self._step(function, step) for step in steps(function.__code__)]
        parts += [self._value(name, v) for name, v in carried(function)]
        return function.__code__, *parts

    def _own_function(self, function: types.FunctionType) -> tuple:
        """A function of this package only computes; what it was made around may be the user's."""
        inner = getattr(function, "__wrapped__", None)
        users = [inner] if isinstance(inner, types.FunctionType) else []
        users += [v for _, v in closure(function) if isinstance(v, types.FunctionType) and v is not inner]
        parts = [self._function(f) for f in users if not is_package_code(f) or f.__closure__]
        return (function.__code__, *parts) if parts else ("own", function)

    def _step(self, function: types.FunctionType, step: Read | str) -> object:
        """The key of one step of the code: a name it reads, or what else it does."""
        if isinstance(step, str):
            return self._effect(step)
        if step.free:
            found = [v for name, v in closure(function) if name == step.name]
        else:
            namespace = function.__globals__
            found = [namespace[step.name]] if step.name in namespace else []
            found = found or [getattr(builtins, n) for n in (step.name,) if hasattr(builtins, n)]
        if not found:
            return self._effect(f"reaches {step.name!r}, which has no value")
        in_module = isinstance(found[0], types.ModuleType)
        key = self._module(*step[:2], found[0]) if in_module else self._value(step.name, found[0])
        for words in [effect_of_attribute(a) for a in step.attributes if not (in_module and a == "grad")]:
            key = key if words is None else self._effect(words)
        return key

    # ---- values
    def _effect(self, words: str) -> tuple:
        self.effects.append(words)
        return ("effect", words)

    def _module(self, name: str, attributes: tuple[str, ...], value: object) -> object:
        """What is read of a module. A module that is handed on could be asked for anything."""
        if isinstance(value, types.ModuleType) and value not in MODULES and not of_package(value.__name__):
            return self._effect(f"uses the module {value.__name__}")
        for i, attribute in enumerate(attributes):
            if not hasattr(value, attribute):
                return self._effect(f"reaches {name}.{attribute}, which does not exist")
            value = getattr(value, attribute)
            if not isinstance(value, types.ModuleType):
                return self._value(".".join((name, *attributes[: i + 1])), value)
        return self._effect(f"hands on the module {name!r}")

    def _value(self, name: str, value: object) -> object:
        """The key of a value that is reached."""
        kind = type(value)
        if kind in SIMPLE:
            return kind, repr(value) if kind is float or kind is complex else value
        if kind is tuple or kind is frozenset:
            return kind, *[self._value(name, v) for v in value]
        if isinstance(value, (types.FunctionType, functools.partial)):
            return self._function(value)
        if isinstance(value, Tensor):
            return self._tensor(name, value)
        effect = effect_of_object(name, value)
        if effect is not None:
            return self._effect(effect)
        try:
            hash(value)
        except TypeError:
            return kind, repr(value)  # a slice
        return kind, value

    def _tensor(self, name: str, value: Tensor) -> tuple:
        """A tensor by identity: a graph that reads it keeps it; one that reads its metadata alone has them in the key."""
        if getattr(value, "__dict__", None):
            return self._effect(f"reaches {name!r}, a tensor with attributes")
        return Tensor, id(value), describe(value)


def effect_of_object(name: str, value: object) -> str | None:
    """What reaching a value that is neither a function of Python nor a tensor may do."""
    if isinstance(value, (*SIMPLE, *CONSTANTS)):
        return None if type(value) in (*SIMPLE, *CONSTANTS) else f"reaches {name!r}, a {type(value).__name__}"
    if isinstance(value, enum.Enum):
        return None
    if isinstance(value, types.ModuleType):
        return None if value in MODULES or of_package(value.__name__) else f"uses the module {value.__name__}"
    if isinstance(value, type):
        known = value in HARMLESS or of_package(value.__module__) or is_builtin_exception(value)
        known = known or issubclass(value, enum.Enum)  # whose members stay what they are
        return None if known else f"uses the class {value.__name__}"
    if isinstance(value, types.BuiltinFunctionType):
        known = value in HARMLESS or value.__module__ in ("math", "_operator", "_functools")
        return None if known else f"calls {value.__name__}"
    if of_package(type(value).__module__) and not hasattr(value, "__dict__"):
        return None
    return None if is_operator(value) else f"reaches {name!r}, a {type(value).__name__}"


def is_builtin_exception(value: type) -> bool:
    return issubclass(value, BaseException) and value.__module__ == "builtins"


def is_operator(value: object) -> bool:
    return of_package(type(value).__module__) and type(value).__module__.partition(".")[2].partition(".")[0] in (
        "ops",
        "library",
    )


def is_package_code(function: types.FunctionType) -> bool:
    """Whether the code of a function is this package's, whatever name it goes by (`functools.wraps` gives it another)."""
    return of_package(function.__globals__.get("__name__"))


def closure(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """(name, value) of the variables of the functions around it; those without a value are left out."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not filled
            continue


def carried(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    """(name, value) of a function's defaults and attributes."""
    for i, value in enumerate(function.__defaults__ or ()):
        yield f"default {i}", value
    yield from (function.__kwdefaults__ or {}).items()
    yield from (
        (k, v) for k, v in function.__dict__.items() if not isinstance(v, inspect.Signature)
    )  # which is for readers


# ---- code
@functools.lru_cache(maxsize=2048)
def steps(code: types.CodeType) -> tuple[Read | str, ...]:
    """What code does that matters outside, in its order: the names it reads, and in words what it does besides computing.
    Functions defined inside count as called."""
    found: list[Read | str] = []
    if any(isinstance(c, tuple) and "out" in c for c in code.co_consts):  # names of keyword arguments are such a tuple
        found.append("writes into what is given as 'out'")
    instructions = list(dis.get_instructions(code))
    told = 0  # instructions before this one are told of already
    for i, step in enumerate(instructions):
        result = list(_of_step(code, step, instructions[i + 1 :])) if i >= told else []
        told = max([told, *[i + 1 + len(r.attributes) for r in result if isinstance(r, Read)]])
        found += result
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            outside = [s for s in steps(inner) if isinstance(s, str) or not s.free or s.name in code.co_freevars]
            found += [s for s in outside if isinstance(s, Read) or not is_own_variable(s, inner, code)]
    return tuple(dict.fromkeys(found))


def is_own_variable(effect: str, inner: types.CodeType, code: types.CodeType) -> bool:
    """Whether an effect of a function inside is an assignment to a variable of the function around it."""
    return any(effect == assigns_to(n) for n in inner.co_freevars if n in code.co_cellvars)


def assigns_to(name: str) -> str:
    return f"assigns to {name!r} of the function around it"


def effect_of_attribute(name: str) -> str | None:
    """What reading an attribute of this name of any object may do."""
    return f"calls {name}" if name in CALLS else f"reads {name!r}" if name in STATE else None


@functools.lru_cache(maxsize=2048)
def writes_in_place(code: types.CodeType) -> bool:
    """Whether there is a `+=` or the like in code, or in functions defined inside."""
    own = any(s.opname == "BINARY_OP" and s.argrepr.endswith("=") for s in dis.get_instructions(code))
    return own or any(writes_in_place(c) for c in code.co_consts if isinstance(c, types.CodeType))


def _of_step(code: types.CodeType, step: dis.Instruction, rest: list[dis.Instruction]) -> Iterator[Read | str]:
    name, value = step.opname, step.argval
    if name == "YIELD_VALUE" and code.co_name == "<genexpr>":
        return
    if name in WRITES:
        yield f"{WRITES[name]} {value!r}" if isinstance(value, str) else WRITES[name]
    elif name in ("STORE_DEREF", "DELETE_DEREF") and value in code.co_freevars:
        yield assigns_to(value)
    elif name in ATTRIBUTES:
        yield from filter(None, [effect_of_attribute(value)])
    elif name in READS and (name in ("LOAD_GLOBAL", "LOAD_NAME") or value in code.co_freevars):
        yield Read(value, _attributes_next(rest), value in code.co_freevars)


def _attributes_next(rest: list[dis.Instruction]) -> tuple[str, ...]:
    """The attributes that are read of what was loaded last."""
    out: list[str] = []
    for step in rest:
        if step.opname not in ATTRIBUTES:
            break
        out.append(step.argval)
    return tuple(out)
