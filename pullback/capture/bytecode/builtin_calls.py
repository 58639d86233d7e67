"""Built-in functions and types in captured programs: which only compute, which change a container, which need care."""

from __future__ import annotations

import abc
import bisect
import builtins
import collections
import copy
import functools
import inspect
import itertools
import math
import operator
import os
import re
import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.symbolic import sym_max, sym_min
from ...core.tensor import Tensor
from . import warned
from .arrays.traced import TracedArray
from .arrays.world import HANDLED as NUMPY
from .attributes import class_of
from .copying import copied, deep_copied
from .lookups import ABSENT, class_attribute, may_change
from .number_calls import NUMBERS
from .outside import CONTAINERS, is_symbol
from .polyfills import POLYFILLS
from .signals import Break
from .world import BINARY, COMPARE, INPLACE

if TYPE_CHECKING:
    from .tracing import Tracing

PURE = frozenset(
    getattr(builtins, name)
    for name in "abs all any ascii bin callable chr divmod format hash hex issubclass max min oct ord pow repr round sorted sum".split()
) | {functools.reduce, collections.namedtuple, bisect.bisect_left, bisect.bisect_right}
PURE_MODULES = frozenset(("math", "_operator", "cmath", "_functools", "itertools", "_string"))
PURE_TYPES = (
    bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, range, slice, zip, enumerate, map,
    filter, reversed, object, property, staticmethod, classmethod, collections.OrderedDict, collections.defaultdict,
    collections.deque, collections.Counter, functools.partial, types.MethodType, types.SimpleNamespace, type(iter([])),
    type(iter(())), type(iter({})), type({}.keys()), type({}.values()), type({}.items()), type(iter(range(0))),
    types.MappingProxyType, operator.itemgetter, operator.attrgetter, operator.methodcaller, re.Pattern, re.Match, np.generic,
    *(v for v in vars(itertools).values() if isinstance(v, type)),
)  # fmt: skip

MUTATING: dict[type, frozenset[str]] = {
    list: frozenset("append extend insert remove pop clear sort reverse __setitem__ __delitem__ __iadd__ __imul__".split()),
    dict: frozenset("update pop popitem clear setdefault __setitem__ __delitem__ __ior__ move_to_end".split()),
    set: frozenset("add discard remove pop clear update difference_update intersection_update symmetric_difference_update "
                   "__ior__ __iand__ __isub__ __ixor__".split()),
    collections.deque: frozenset("append appendleft extend extendleft insert remove pop popleft clear rotate reverse "
                                 "__setitem__ __delitem__ __iadd__".split()),
    bytearray: frozenset("append extend insert remove pop clear reverse __setitem__ __delitem__".split()),
}  # fmt: skip


def _appended(container, *args) -> range:
    added = len(args[0]) if args and isinstance(args[0], (list, tuple)) else 1
    return range(len(container), len(container) + added)


# Methods that add to a container, whatever it holds: (container, *arguments) -> the items they touch.
GROWING: dict[str, Any] = {
    "append": _appended,
    "extend": lambda container, items: _appended(container, items),
    "__iadd__": lambda container, items: _appended(container, items),
    "add": lambda container, item: (item,),
    "discard": lambda container, item: (item,),
    "update": lambda container, *given, **named: [k for other in given for k in other] + list(named),
    "__ior__": lambda container, other: list(other),
    "__setitem__": lambda container, key, value: (key,),
}


def _isinstance(world: Tracing, obj, kinds) -> bool:
    kinds = world.inside(kinds)
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if isinstance(kind, tuple):
            found = _isinstance(world, obj, kind)
        else:
            found = _says_instance(world, obj, kind)
            if found is None:
                _stays_instance(world, obj, kind)
                found = (
                    isinstance(_marked(world, obj, kind), kind)
                    or is_in_place_of(obj)
                    and issubclass(class_of(obj), kind)
                )
        if found:
            return True
    return False


def _marked(world: Tracing, obj, kind):
    """What a class is asked about that says itself what its instances are: of a tensor from outside the real one, which may be marked
    as such (`_is_buffer`)."""
    real = world.outside.real(obj) if isinstance(obj, Tensor) else obj
    if real is obj or type(kind) is type or kind in type(obj).__mro__:
        return obj
    if not world.journal.touched.get(id(real)):
        conditions, source = world.outside.conditions, world.outside.source_of(obj)
        words = f"isinstance({source.name}, {kind.__name__}) is {isinstance(real, kind)}"
        code = f"isinstance({conditions.variable(source)}, {conditions.constant(kind)}) is {isinstance(real, kind)}"
        conditions.test(code, words)
    return real


def is_in_place_of(obj) -> bool:
    """Whether a value stands for one of another class: a symbol for a number, a traced array for an array."""
    return is_symbol(obj) or type(obj) is TracedArray


def _says_instance(world: Tracing, obj, kind) -> bool | None:
    """What a class itself says of an instance, by code of its metaclass; None where it does not."""
    if not isinstance(kind, type) or type(obj) is kind or not may_change(type(kind)):
        return None
    says = class_attribute(type(kind), "__instancecheck__")
    if not isinstance(says, types.FunctionType) or not world.enters(says):
        return None
    return world.truth(world.call_now(says, (kind, obj), {}))


def _stays_instance(world: Tracing, obj, kind) -> None:
    """A class may say itself what its instances are, and an abstract one may be told of more."""
    if type(kind) is type or not isinstance(kind, type) or kind in type(obj).__mro__ or not may_change(kind):
        return
    if not isinstance(kind, abc.ABCMeta):
        return
    conditions, found = world.outside.conditions, issubclass(type(obj), kind)
    code = f"issubclass({conditions.constant(type(obj))}, {conditions.constant(kind)}) is {found}"
    conditions.test(code, f"issubclass({type(obj).__name__}, {kind.__name__}) is {found}")


def _hash(world: Tracing, obj):
    method = class_attribute(type(obj), "__hash__")
    if isinstance(method, types.FunctionType) and world.enters(method):
        return world.call_now(method, (obj,), {})
    if isinstance(obj, Tensor) or method is object.__hash__:
        _id(world, obj)
        return hash(world.outside.real(obj))
    if type(obj) is types.MethodType:
        _id(world, obj.__self__)
        return hash(types.MethodType(obj.__func__, world.outside.real(obj.__self__)))
    if type(obj) is tuple:
        return hash(tuple([Hashed(_hash(world, v)) for v in world.inside(obj)]))
    world.refuse_instances((obj,))
    return world._pure(hash, (obj,), {})


class Hashed:
    """Stands for a value in a tuple of which the hash is asked."""

    def __init__(self, value: int):
        self.value = value

    def __hash__(self) -> int:
        return self.value


def _len(world: Tracing, obj) -> int:
    return world.length(obj)


def _getattr(world: Tracing, obj, name: str, *default):
    try:
        return world.load_attribute(obj, name)
    except AttributeError:
        if not default:
            raise
        return default[0]


def _hasattr(world: Tracing, obj, name: str) -> bool:
    try:
        world.load_attribute(obj, name)
    except AttributeError:
        return False
    return True


def _setattr(world: Tracing, obj, name: str, value) -> None:
    world.store_attribute(obj, name, value)


def _delattr(world: Tracing, obj, name: str) -> None:
    world.delete_attribute(obj, name)


def _type(world: Tracing, *args):
    if len(args) == 1:
        return world.outside.constant(class_of(args[0]))
    raise Break("it makes a class")


def _super(world: Tracing, *args):
    if args:
        return super(*args)
    frame = world.machine.frames[-1]
    first = frame.code.co_varnames[0]
    owner = world.load_cell(frame, first) if first in frame.cells else world.load_local(frame, first)
    return super(world.load_cell(frame, "__class__"), owner)


def _iter(world: Tracing, *args):
    return (
        world.iterate(args[0]) if len(args) == 1 else world.refusing(iter, tuple(world.for_native(a) for a in args), {})
    )


def _next(world: Tracing, iterator, *default):
    try:
        return world.advance_now(iterator)
    except StopIteration:
        if not default:
            raise
        return default[0]


def _vars(world: Tracing, *args):
    if not args:
        raise Break("it asks for its local variables")
    try:
        return world.load_attribute(args[0], "__dict__")
    except AttributeError:
        raise TypeError("vars() argument must have __dict__ attribute") from None


def _print(world: Tracing, *args, **kwargs):
    raise Break("it prints")


def _id(world: Tracing, obj):
    """The identity of an object from outside, which must then be that very object; others are made anew at each run."""
    if obj is None or obj is True or obj is False:
        return id(obj)
    source, real = world.outside.source_of(obj), world.outside.real(obj)
    if source is None or is_symbol(obj):
        raise Break("it asks for the identity of an object")
    if source.kind != "constant":
        world.outside.conditions.is_object(source, real)
    return id(real)


def _bool(world: Tracing, *args):
    if len(args) == 1 and is_symbol(args[0]) and not args[0].node.has_hint():  # known when the graph runs
        return args[0] if args[0].symbolic_type is bool else world.refusing(operator.ne, (args[0], 0), {})
    return world.truth(args[0]) if args else False


def _iterable_type(kind: type):
    """`list(x)`, `tuple(x)`, ...: of what the world's iteration gives."""

    def make(world: Tracing, *args, **kwargs):
        if not args:
            return kind(**kwargs)
        value = args[0]
        if isinstance(value, CONTAINERS) and not isinstance(
            class_attribute(type(value), "__iter__"), types.FunctionType
        ):
            result = kind(world.inside(value), **kwargs)
        else:
            result = kind(world.all_of(value), **kwargs)
        if kind in (set, frozenset):
            for item in result:
                world.outside.key(item)
        return result

    return make


def _dict(world: Tracing, *args, **kwargs):
    args = tuple(map(world.outside.proxied, args))
    if args and not isinstance(args[0], dict) and _hasattr(world, args[0], "keys"):
        keys = world.all_of(world.call_now(world.load_attribute(args[0], "keys"), (), {}))
        return {**{key: world.load_item(args[0], key) for key in keys}, **kwargs}
    if args and not isinstance(args[0], dict):
        given = [tuple(world.all_of(pair)) for pair in world.all_of(args[0])]
        return dict(given, **kwargs)
    return dict(*(world.inside(a) for a in args), **kwargs)


def _lazy_type(kind: type):
    """`zip`, `enumerate`, `map`, ...: over what the world iterates."""
    functions = 1 if kind in (map, filter) else 0

    def make(world: Tracing, *args, **kwargs):
        iterators = [world.as_iterator(a) for a in args[functions : 1 if kind is enumerate else None]]
        rest = args[1:] if kind is enumerate else ()
        return kind(*(world.called_back(a) for a in args[:functions]), *iterators, *rest, **kwargs)

    return make


def _reversed(world: Tracing, value):
    if isinstance(value, CONTAINERS):
        return reversed(world.inside(value))
    method = class_attribute(type(value), "__reversed__")
    if isinstance(method, types.FunctionType):
        return world.call_now(method, (value,), {})
    if isinstance(value, range) or method is not ABSENT:
        return reversed(value)
    return iter([world.load_item(value, i) for i in range(world.length(value) - 1, -1, -1)])


def _over_items(function):
    """`sum(xs)`, `any(xs)`, `sorted(xs, key=f)`: of what the world's iteration gives."""

    def call(world: Tracing, *args, **kwargs):
        args = (world.all_of(args[0]), *args[1:])
        world.refuse_instances(args)
        return world.native_call(function, args, kwargs)

    return call


def _ordering(function):
    """`sorted(xs, key=f)`, `min(xs)`, `max(a, b)`: they give what they were given, so that is not copied."""

    def call(world: Tracing, *args, **kwargs):
        if len(args) == 1:
            args = (world.all_of(args[0]),)
        key = kwargs.get("key")
        if key is not None:
            kwargs["key"] = world.called_back(key)
        else:
            world.refuse_instances(args)
            values = args[0] if len(args) == 1 else args
            if any(isinstance(v, CONTAINERS) for v in values):
                kwargs["key"] = world.deep
            elif function in (min, max) and not kwargs and _is_unknown(values):
                larger = sym_max if function is max else sym_min
                return world.refusing(functools.reduce, (larger, values), {})
        return world.refusing(function, args, kwargs)

    return call


def _is_unknown(values) -> bool:
    """Whether the least or greatest of several ints is itself a number that is not known yet."""
    symbols = [v for v in values if is_symbol(v)]
    if not any(not v.node.has_hint() for v in symbols):
        return False
    return all(v.symbolic_type is int if is_symbol(v) else type(v) is int for v in values)


def _operators() -> dict[Any, Any]:
    """The functions of `operator` are the operators."""
    table: dict[Any, Any] = {
        operator.getitem: lambda world, a, b: world.load_item(a, b), operator.setitem: lambda world, a, b, c: world.store_item(a, b, c),
        operator.delitem: lambda world, a, b: world.delete_item(a, b), operator.contains: lambda world, a, b: world.contains(a, b, False),
        operator.truth: lambda world, a: world.truth(a), operator.not_: lambda world, a: not world.truth(a),
        operator.is_: lambda world, a, b: world.is_same(a, b, False), operator.is_not: lambda world, a, b: world.is_same(a, b, True),
    }  # fmt: skip
    for name, function in BINARY.items():
        table[function] = lambda world, a, b, name=name: world.binary(name, a, b, False)
    for name, function in INPLACE.items():
        table[function] = lambda world, a, b, name=name: world.binary(name, a, b, True)
    for name, function in COMPARE.items():
        table[function] = lambda world, a, b, name=name: world.compare(name, a, b)
    return table


def _any_all(wanted: bool):
    def call(world: Tracing, values):
        iterator = world.as_iterator(values)
        for value in iterator:
            if world.truth(value) is wanted:
                return wanted
        return not wanted

    return call


def _callable(world: Tracing, value) -> bool:
    return class_attribute(type(value), "__call__") is not ABSENT


def _fspath(world: Tracing, path):
    if not isinstance(path, (str, bytes)):
        raise Break("it asks for the path of an object")
    return path


def _repr(function):
    def call(world: Tracing, *args):
        if args and isinstance(args[0], Tensor) or args and world.holds_tensors(args[0]):
            raise Break("it makes text of a tensor")
        value = args[0] if args else ""
        method = class_attribute(type(value), "__str__" if function is str else "__repr__")
        if isinstance(method, types.FunctionType) and world.enters(method):
            return world.call_now(method, (value,), {})
        world.refuse_instances(args)
        return function(*(world.concrete(a) for a in args))

    return call


def _namedtuple(world: Tracing, *args, **kwargs):
    """A class of tuples: it is the same one at each run."""
    kwargs.setdefault("module", world.machine.frames[-1].globals.get("__name__"))
    return world.outside.constant(world.refusing(collections.namedtuple, tuple(map(world.deep, args)), kwargs))


def _signature(world: Tracing, function, **named):
    """`inspect.signature(f)`: of a function that must be the same one, with the same defaults."""
    if named or not isinstance(function, (types.FunctionType, types.MethodType)):
        raise Break("it calls inspect.signature")
    plain = function.__func__ if isinstance(function, types.MethodType) else function
    source = world.outside.source_of(plain)
    if source is not None and source.kind != "constant":
        world.outside.conditions.is_object(source, plain)
    if not world.is_made_inside(plain):
        world._enter_defaults(plain, source or world.outside.sources.constant(plain, plain.__qualname__))
    return world.outside.constant(inspect.signature(function))


def _asked(function):
    """A function that tells a setting: it is asked again."""

    def call(world: Tracing, *args, **kwargs):
        out = function(*args, **kwargs)
        world._still_gives(function, args, kwargs, out)
        return out

    return call


def _environment(world: Tracing, table, name):
    """`os.environ[name]`, which is read again at each call."""
    if table is not os.environ or not isinstance(name, str):
        raise Break("it reads an environment")
    value, conditions = table.get(name), world.outside.conditions
    conditions.test(f"{conditions.constant(table)}.get({name!r}) == {value!r}", f"the environment has {name}={value}")
    if value is None:
        raise KeyError(name)
    return value


def _getenv(world: Tracing, key, default=None):
    try:
        return _environment(world, os.environ, key)
    except KeyError:
        return default


def _polyfilled(function: types.FunctionType):
    return lambda world, *args, **kwargs: world.entered(function, args, kwargs)


HANDLED: dict[Any, Any] = {
    isinstance: _isinstance, len: _len, getattr: _getattr, hasattr: _hasattr, setattr: _setattr, delattr: _delattr, type: _type,
    super: _super, hash: _hash, iter: _iter, next: _next, vars: _vars, print: _print, id: _id, bool: _bool, list: _iterable_type(list),
    tuple: _iterable_type(tuple), set: _iterable_type(set), frozenset: _iterable_type(frozenset), dict: _dict,
    zip: _lazy_type(zip), enumerate: _lazy_type(enumerate), map: _lazy_type(map), filter: _lazy_type(filter),
    reversed: _reversed, sum: _over_items(sum), sorted: _ordering(sorted),
    min: _ordering(min), max: _ordering(max), any: _any_all(True), all: _any_all(False), repr: _repr(repr), str: _repr(str),
    copy.copy: copied, copy.deepcopy: deep_copied, math.prod: _over_items(math.prod), collections.namedtuple: _namedtuple,
    sys.getrecursionlimit: _asked(sys.getrecursionlimit), sys.getdefaultencoding: _asked(sys.getdefaultencoding),
    callable: _callable, os.fspath: _fspath, inspect.signature: _signature, os.getcwd: _asked(os.getcwd), type(os.environ).__getitem__: _environment, os.getenv: _getenv, os.getpid: _asked(os.getpid),
}  # fmt: skip
HANDLED.update(_operators())
HANDLED.update(NUMBERS)
HANDLED.update(NUMPY)
HANDLED.update(warned.CALLS)
HANDLED.update({function: _polyfilled(python) for function, python in POLYFILLS.items()})
