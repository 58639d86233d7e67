"""Calls, in a captured program: which functions are entered, which run as they are, and which end a graph.

Python functions are entered: the machine interprets them. Functions of this package compute on tensors, so they run as
they are, on fakes, and what they call goes into the graph; functions that they are given are interpreted when called.
Built-in functions that only compute run as they are on what was read; those that change a container from outside go
through the journal. Anything else ends the graph.
"""

from __future__ import annotations

import collections
import functools
import inspect
import operator
import re
import types
import warnings
import weakref
from typing import Any

from ...amp.autocast import autocast
from ...batching.made import is_made
from ...core import modes, tree
from ...core.tensor import Tensor
from ...graph import GraphModule
from ...nn.lazy import LazyModuleMixin
from ...nn.module import Module
from ...nn.parameter import Parameter
from ..ahead import AHEAD
from ..front.config import config
from ..front.effects import effect_of
from . import comptime, custom_functions, modules
from .begun import work_ahead
from .builtin_calls import GROWING, HANDLED, MUTATING, PURE, PURE_MODULES, PURE_TYPES
from .journal import ALL, Effect
from .lookups import ABSENT, class_attribute
from .native import DEEP, Callback, Native
from .outside import CONSTANTS, CONTAINERS, is_compiled, is_ours, module_of
from .picturing import Images, is_frozen
from .signals import Break, Enter
from .world import NOT_ENTERED as COROUTINES
from .world import looks_at_frames

ENTERED = (
    "pullback.nn.",
    "pullback.cli.demo",
    "pullback.distributed.data_parallel.module",
    "pullback.optim.",
    "pullback.func.stateless",
    "pullback.utils.ordered_set",
    "pullback.capture.front.optimized_module",
)  # our own code that a program could have written itself
NOT_ENTERED = ("pullback.nn.functional", "pullback.nn.init")
UNTOUCHABLE = (
    "pullback.serialization",
    "pullback.utils.data",
    "pullback.profiler",
    "pullback.surface.hub",
    "pullback.cli",
    "pullback.testing",
)
DECORATORS = (
    "pullback.core.modes",
    "pullback.amp.decorators",
    "pullback.surface.compiler_decorators",
    "pullback.surface.jit.functions",
)
OUTSIDE_WORLD = frozenset(
    "threading logging warnings traceback inspect os io random time unittest pytest tempfile subprocess importlib "
    "numpy multiprocessing pickle copy sys gc socket asyncio concurrent _pytest weakref".split()
)
SIGNATURES = ("Signature.", "BoundArguments.", "Parameter.")  # classes of `inspect` that are plain Python
BUILTINS = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)  # fmt: skip
HOLDING = frozenset(
    "append appendleft insert add setdefault get pop __setitem__ __getitem__ __contains__ discard remove index count".split()
)
COMPARING = frozenset(
    "remove index count sort __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ join format __mod__".split()
)
SPREADING = frozenset(
    "extend extendleft update __iadd__ __ior__ difference_update intersection_update symmetric_difference_update".split()
)
ONE_BY_ONE = {"extend": "append", "extendleft": "appendleft", "__iadd__": "append"}  # what they do for each value
KEYED = frozenset("add discard remove pop setdefault __setitem__ __delitem__ move_to_end".split())
GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)
# Context managers that only note what was before and switch what a capture follows: one from before the graph may be left.
MANAGERS = frozenset(
    method for cls in (modes._GradMode, modes.set_grad_enabled, autocast) for method in (cls.__enter__, cls.__exit__)
)
KEEPING_TYPES = (
    types.MappingProxyType,
    weakref.ref,
    functools.partial,
    types.MethodType,
    types.SimpleNamespace,
    property,
    staticmethod,
    classmethod,
    object,
)
HANDLED.update(comptime.CALLS)
HANDLED[LazyModuleMixin._infer_parameters] = modules.initialize
substitutes: dict[Any, Any] = {}  # functions to capture in the place of others
whole_functions: set[Any] = set()  # functions that graphs call as they are
nonstrict_functions: set[Any] = set()  # functions that run as they are, on fakes


def kept_result(function, given: tuple):
    """What a function that remembers gives for arguments."""
    return function(*given[0], **dict(given[1]))


DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType)


class Gives:
    """What a call of a class gives when its `__init__` has returned."""

    def __init__(self, value):
        self.value = value

    def __call__(self, returned):
        if returned is not None:
            raise TypeError(f"__init__() should return None, not '{type(returned).__name__}'")
        return self.value


class Calls(Native):
    """The part of the tracing world that calls."""

    is_ours = staticmethod(is_ours)

    def enters(self, function) -> bool:
        """Whether the machine interprets a function."""
        module = module_of(function)
        if not self.is_ours(module):
            root = module.partition(".")[0]
            if root == "inspect":
                return function.__qualname__.startswith(SIGNATURES)
            return root not in OUTSIDE_WORLD or root == "unittest" and config.enable_trace_unittest
        if (
            module.startswith(ENTERED)
            and not module.startswith(NOT_ENTERED)
            or custom_functions.is_of_context(function)
            or function in MANAGERS
        ):
            return True
        return module in DECORATORS and self.decorates(function)

    def decorates(self, function) -> bool:
        """Whether a function of ours is a decorator's, around a function of the user's."""
        inner = getattr(function, "__wrapped__", None)
        while hasattr(inner, "__wrapped__") and not isinstance(inner, Callback):  # which comes back to the machine
            inner = inner.__wrapped__
        if not isinstance(inner, types.FunctionType):
            return False
        module = module_of(inner)
        return not self.is_ours(module) or module.startswith(ENTERED) and not module.startswith(NOT_ENTERED)

    def call(self, function, args: tuple, kwargs: dict):
        if isinstance(function, types.MethodType):
            return self._method(function, args, kwargs)
        try:
            other, is_whole, handler = substitutes.get(function), function in whole_functions, HANDLED.get(function)
        except TypeError:  # not hashable
            other, is_whole, handler = None, False, None
        if other is not None:
            return self.call(other, args, kwargs)
        if config.reorderable_logging_functions or config.ignore_logging_functions:
            if function in config.ignore_logging_functions:
                return None
            if function in config.reorderable_logging_functions:
                return self.call_later(function, args, kwargs)
        if is_whole:
            images = Images(self, is_frozen)
            given = (tuple(map(images.of, args)), {k: images.of(v) for k, v in kwargs.items()})
            return self.refusing(self.trace.call, (function, *given), {})
        if handler is not None:
            return handler(self, *args, **kwargs)
        if isinstance(function, types.FunctionType) and function in nonstrict_functions:
            return self._nonstrict(function, args, kwargs)
        if isinstance(function, types.FunctionType):
            return self._function(function, args, kwargs)
        if isinstance(function, type):
            return self._class(function, args, kwargs)
        if isinstance(function, BUILTINS):
            return self._builtin(function, args, kwargs)
        if isinstance(function, functools.partial):
            inner = [self.load_attribute(function, n) for n in ("func", "args", "keywords")]
            keywords = self.outside.copy(inner[2]) if self.outside.is_outside(inner[2]) else inner[2]
            given = self.outside.copy(inner[1]) if self.outside.is_outside(inner[1]) else inner[1]
            return self.call(inner[0], (*given, *args), {**keywords, **kwargs})
        return self._callable(function, args, kwargs)

    def _method(self, method: types.MethodType, args: tuple, kwargs: dict):
        function, owner = method.__func__, method.__self__
        source = self.outside.source_of(method)
        if source is not None:
            function = self.outside.enter(function, self.outside.sources.get("attribute", source, "__func__"))
            owner = self.outside.enter(owner, self.outside.sources.get("attribute", source, "__self__"))
        return self.call(function, (owner, *args), kwargs)

    def _callable(self, function, args: tuple, kwargs: dict):
        """An object with `__call__`."""
        called = class_attribute(type(function), "__call__")
        if isinstance(function, Callback):
            return self.call(function.function, args, kwargs)
        if self.is_ours(type(function).__module__) and not isinstance(function, Module):
            return self.native_call(function, args, kwargs)
        if isinstance(function, weakref.ref):
            return self._referent(function)
        forward = modules.plain_forward(self, function) if isinstance(function, Module) else None
        if isinstance(forward, staticmethod) and isinstance(forward.__func__, types.FunctionType):
            self.outside.constant(forward.__func__)
            return self.call(forward.__func__, args, kwargs)
        called = called if forward is None else forward
        if isinstance(called, types.FunctionType):
            self.outside.constant(called)
            return self.call(called, (function, *args), kwargs)
        wrapped = getattr(function, "__wrapped__", None)
        if type(function).__name__ == "_lru_cache_wrapper" and wrapped is not None:
            return self._cached(function, args, kwargs)
        if isinstance(function, GETTERS) and len(args) == 1 and not kwargs:
            return self._get(function, args[0])
        raise Break(f"it calls a {type(function).__name__}")

    def _cached(self, function, args: tuple, kwargs: dict):
        """A function that remembers what it gave: it gives that again, whatever has changed since."""
        plain = all(isinstance(v, (*CONSTANTS, type)) for v in (*args, *kwargs.values()))
        if module_of(function.__wrapped__) == "typing" and not self.holds_tensors([*args, *kwargs.values()]):
            return function(*args, **kwargs)
        if effect_of(function.__wrapped__) is not None:
            raise Break(f"it calls {function.__name__}, which keeps what it gave")
        if not plain:
            return self._computed_anew(function, args, kwargs)
        with modes.masked(modes.CAPTURE | modes.DISPATCH):  # what it gives is for all later calls, and no fake
            result = function(*args, **kwargs)
        if isinstance(result, CONSTANTS):
            self._still_gives(function, args, kwargs, result)
            return result
        source = self.outside.sources.constant(function, function.__name__)
        key = (args, tuple(kwargs.items()))
        return self.outside.enter(result, self.outside.sources.item(source, key, kept_result))

    def _computed_anew(self, function, args: tuple, kwargs: dict):
        """What a function that remembers gives for tensors and objects: computed in the graph, once for the same ones."""
        key = (id(function), tuple(map(id, args)), tuple((k, id(v)) for k, v in kwargs.items()))
        if key not in self.remembered:
            warnings.warn(
                f"Dynamo detected a call to a `functools.lru_cache`-wrapped function, {function.__name__}: its cache is passed by, "
                "and the result is computed at each run. Where the cache would give an older result, that is another one.",
                stacklevel=2,
            )
            result = self.call_now(function.__wrapped__, args, kwargs)
            self.remembered[key] = (result, function, args, kwargs)
        return self.remembered[key][0]

    def _get(self, getter, obj):
        """`operator.itemgetter` and `operator.attrgetter`."""
        wanted = getter.__reduce__()[1]
        if isinstance(getter, operator.methodcaller):
            return self._method_called(getter, obj)
        if isinstance(getter, operator.itemgetter):
            found = [self.load_item(obj, key) for key in wanted]
        else:
            found = [functools.reduce(self.load_attribute, name.split("."), obj) for name in wanted]
        return found[0] if len(wanted) == 1 else tuple(found)

    def _method_called(self, getter: operator.methodcaller, obj):
        """`operator.methodcaller(name, *args, **kwargs)(obj)`."""
        parts: Any = getter.__reduce__()
        whole: Any = functools.partial(parts[0], *parts[1])  # with keywords, the maker is a partial function itself
        name, *args = whole.args
        return self.call_now(self.load_attribute(obj, name), tuple(args), dict(whole.keywords))

    def _referent(self, reference: weakref.ref):
        """What a weak reference from outside refers to."""
        source, value = self.outside.source_of(reference), reference()
        if source is None:
            return self.outside.settled(value)
        return self.outside.enter(value, self.outside.sources.get("referent", source))

    # ---- Python functions
    def _function(self, function: types.FunctionType, args: tuple, kwargs: dict):
        own = function.__dict__
        if own:
            if AHEAD in own:
                work_ahead(self, own[AHEAD], args)
            if own.get("_torchdynamo_disable"):
                why = own.get("_torchdynamo_disable_msg")
                raise Break(
                    f"it calls {function.__name__}, for which compilation is disabled{f': {why}' if why else ''}"
                )
            if own.get("_torchdynamo_captured"):
                return self.entered(function, args, kwargs)
            if is_compiled(function):
                return self.call(own["_torchdynamo_orig_callable"], args, kwargs)
            if "_torchdynamo_calls" in own:
                inner = self.call(
                    operator.getitem, (self.load_attribute(args[0], "_modules"), own["_torchdynamo_calls"]), {}
                )
                return self.call(inner, args[1:], kwargs)
            if is_made(function) and self.outside.source_of(function) is not None:
                return self.call(self._made_again(function), args, kwargs)
            if own.get("_dynamo_marked_constant"):
                result = self.concretely(function, args, kwargs)
                return self.outside.constant(tree.tree_map_only(Tensor, self._apart, result))
        if looks_at_frames(function.__code__):
            raise Break(f"it calls {function.__name__}, which looks at frames")
        if function.__code__.co_flags & COROUTINES:
            raise Break(f"it calls {function.__name__}, a coroutine function")
        if module_of(function) == "re" and all(
            isinstance(v, (*CONSTANTS, re.Pattern)) for v in (*args, *kwargs.values())
        ):
            return function(*args, **kwargs)
        if not self.enters(function):
            module = module_of(function)
            if not self.is_ours(module) or module.startswith(UNTOUCHABLE) or self.decorates(function):
                raise Break(f"it calls {module}.{function.__qualname__}")
            return self.native_call(function, args, kwargs)
        return self.entered(function, args, kwargs)

    def _made_again(self, function: types.FunctionType):
        """What a function transform made before the graph, made of what the function is and in sight of the machine."""
        inner = self.load_attribute(function, "__wrapped__")
        if is_made(inner):
            inner = self._made_again(inner)
        _, maker, options = function.__dict__["made_by"]
        conditions, sources = self.outside.conditions, self.outside.sources
        here = self.outside.source_of(function)
        conditions.is_function(here, function)
        how = conditions.variable(sources.get("attribute", here, "made_by"))
        words = f"{function.__name__} is {maker.__name__}(..., {', '.join(f'{k}={v!r}' for k, v in options.items())})"
        conditions.test(f"{how}[1:] == {conditions.constant((maker, options))}", words)
        return self.call_now(maker, (inner,), dict(options))

    def _apart(self, t: Tensor) -> Tensor:
        """A tensor that is a constant of the graph from here on, though the program may know it by another way."""
        if not any(known.value is t for known in self.outside.known.values()):
            return t
        with modes.masked(modes.CAPTURE | modes.DISPATCH):
            return t.detach()

    def call_later(self, function, args: tuple, kwargs: dict) -> None:
        """Call a function when the graph has run: one of which the program sees nothing."""
        for value in (*args, *kwargs.values()):
            if not isinstance(value, (*CONSTANTS, Tensor, type)):
                raise Break(f"it calls {getattr(function, '__name__', function)} with a {type(value).__name__}")
        self.outside.constant(function)
        self.journal.log.append(Effect("later", function, args, kwargs))

    def _nonstrict(self, function: types.FunctionType, args: tuple, kwargs: dict):
        """A function that its user vouches for: it runs as it is, on fakes, and the graph has what it computes."""
        args, kwargs = tuple(map(self.deep, args)), {k: self.deep(v) for k, v in kwargs.items()}
        return self.refusing(inspect.unwrap(function), args, kwargs)

    def entered(self, function: types.FunctionType, args: tuple, kwargs: dict, on_return=None) -> Enter:
        """Have the machine interpret a function: its cells and defaults are from outside where it is."""
        source = self.outside.source_of(function) or (
            None if self.is_made_inside(function) else self.outside.sources.constant(function, function.__qualname__)
        )
        if source is not None:
            for i, cell in enumerate(function.__closure__ or ()):
                if not self.outside.is_outside(cell) and id(cell) not in self.own_cells:
                    self.outside.enter_table(
                        cell,
                        self.outside.sources.get(
                            "closure", source, i, f"the cell of {function.__code__.co_freevars[i]!r}"
                        ),
                    )
            self._enter_defaults(function, source)
        return Enter(function, args, kwargs, on_return)

    def _enter_defaults(self, function: types.FunctionType, source) -> None:
        """Default values are from outside: simple ones must be what they were, any other is entered. Those of this package stay."""
        if self.is_ours(function.__module__) and all(isinstance(v, CONSTANTS) for v in function.__defaults__ or ()):
            if all(isinstance(v, CONSTANTS) for v in (function.__kwdefaults__ or {}).values()):
                return
        for name, values in (("__defaults__", function.__defaults__), ("__kwdefaults__", function.__kwdefaults__)):
            if not values:
                continue
            table = self.outside.sources.get("attribute", source, name)
            self.outside.conditions.has_length(table, len(values))
            for key, value in values.items() if isinstance(values, dict) else enumerate(values):
                place = self.outside.sources.item(table, key)
                if isinstance(value, CONSTANTS):
                    self.outside.conditions.equals(place, value)
                else:
                    self.default_values[id(value)] = self.outside.enter(value, place)

    # ---- classes
    def _class(self, cls: type, args: tuple, kwargs: dict):
        if cls in KEEPING_TYPES:
            return self.refusing(cls, args, kwargs)
        if cls in PURE_TYPES:
            self.refuse_instances(args)
            self._refuse_iterators(args)
            return self._pure(cls, args, kwargs, 1)
        if cls is Parameter:
            return self._parameter(*args, **kwargs)
        if issubclass(cls, Parameter) or issubclass(cls, GraphModule):
            raise Break(f"it makes a {cls.__name__}")
        meta = class_attribute(type(cls), "__call__")
        if isinstance(meta, types.FunctionType) and not self.is_ours(module_of(meta)) and "enum" not in module_of(meta):
            return self.call(meta, (cls, *args), kwargs)
        if self.is_ours(cls.__module__) and not issubclass(cls, Module) and not cls.__module__.startswith(ENTERED):
            return self.native_call(cls, args, kwargs)
        if isinstance(meta, types.FunctionType):
            return self.native_call(cls, args, kwargs)
        make, init = class_attribute(cls, "__new__"), class_attribute(cls, "__init__")
        make = make.__func__ if isinstance(make, staticmethod) else make
        if isinstance(make, types.FunctionType):
            result = self.call_now(make, (cls, *args), kwargs)
        elif isinstance(init, types.FunctionType) and make is object.__new__:
            result = object.__new__(cls)
        elif issubclass(cls, (BaseException, *CONTAINERS)):
            result = cls.__new__(cls, *[self.inside(a) for a in args], **kwargs)
        elif make is object.__new__ and init is object.__init__:
            return cls(*args, **kwargs)
        else:
            raise Break(f"it makes a {cls.__module__}.{cls.__qualname__}")
        if cls not in type(result).__mro__:  # whatever its metaclass says of instances
            return result
        if isinstance(init, types.FunctionType):
            self.outside.constant(init)
            return self.entered(init, (result, *args), kwargs, Gives(result))
        if init is not object.__init__ and init is not BaseException.__init__:
            init(result, *[self.inside(a) for a in args], **kwargs)
        return result

    def _parameter(self, data=None, requires_grad: bool = True):
        """A parameter on the memory of a tensor, which in the graph is a value of its own."""
        if data is not None and type(data) not in (Tensor, Parameter):
            raise Break(f"it makes a Parameter of a {type(data).__name__}")
        if data is not None:
            data = self.native_call(Tensor.detach, (data,), {})  # type: ignore[attr-defined]
        return self.native_call(Parameter, (data, requires_grad), {})

    # ---- built-in functions
    def _builtin(self, function, args: tuple, kwargs: dict):
        owner = getattr(function, "__self__", None)
        name = function.__name__
        if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
            return self._unbound(function, args, kwargs)
        if name == "__get__" and isinstance(owner, DESCRIPTORS) and args and self._is_attribute(owner, args[0]):
            return self.load_attribute(args[0], owner.__name__)
        if name == "__subclasses__" and isinstance(owner, type):
            return self._subclasses(owner)
        if owner is not None and not isinstance(owner, (types.ModuleType, Tensor)):
            return self._method_of_builtin(function, owner, name, args, kwargs)
        if isinstance(owner, Tensor) or args and isinstance(args[0], Tensor):
            return self.native_call(function, args, kwargs)
        if function in PURE or function.__module__ in PURE_MODULES:
            self.refuse_instances(args)
            return self._pure(function, args, kwargs)
        raise Break(f"it calls {function.__module__ or 'builtins'}.{name}")

    def _is_attribute(self, descriptor, obj) -> bool:
        """Whether a descriptor is what gives an object its attribute of that name."""
        return obj is not None and class_attribute(type(obj), descriptor.__name__) is descriptor

    def _subclasses(self, cls: type) -> list[type]:
        """`cls.__subclasses__()`: there may be others later."""
        found, conditions = cls.__subclasses__(), self.outside.conditions
        code = f"{conditions.constant(cls)}.__subclasses__() == {conditions.constant(found)}"
        conditions.test(code, f"{cls.__name__}.__subclasses__() == {found}")
        return [self.outside.constant(c) for c in found]

    def _unbound(self, function, args: tuple, kwargs: dict):
        """`list.append(xs, x)`, `object.__setattr__(self, name, value)`."""
        name = function.__name__
        if function.__objclass__ is object or function is type.__call__:
            if name == "__setattr__":
                return self._store(*args)
            if name == "__delattr__":
                return self.delete_attribute(*args)
            if name == "__init__":
                return None
            if name == "__getattribute__":
                return self._plain_attribute(*args)
        return self.call(function.__get__(args[0], type(args[0])), args[1:], kwargs)

    def _plain_attribute(self, obj, name: str):
        """`object.__getattribute__`: without the class's own."""
        own = getattr(obj, "__dict__", None)
        raw = class_attribute(type(obj), name)
        is_data = hasattr(type(raw), "__set__") and hasattr(type(raw), "__get__")
        if own is not None and name in own and not is_data:
            own = self._own(obj)
            return self.outside.item(own, name) if self.outside.is_outside(own) else own[name]
        if raw is ABSENT:
            object.__getattribute__(obj, name)
        return (
            self._described(raw, obj, type(obj), name)
            if hasattr(type(raw), "__get__")
            else self._class_value(type(obj), name, raw)
        )

    def _method_of_builtin(self, function, owner, name: str, args: tuple, kwargs: dict):
        behind = self.outside.proxied(owner)
        if behind is not owner:
            return self._method_of_builtin(getattr(behind, name), behind, name, args, kwargs)
        if isinstance(owner, type) and name == "__new__":  # it keeps what it is given
            return self.refusing(function, tuple(map(self.inside, args)), kwargs)
        if isinstance(owner, type):  # a class method: dict.fromkeys
            return self._pure(function, args, kwargs) if owner in PURE_TYPES else self._refuse(function)
        if isinstance(function, types.MethodWrapperType) and function.__objclass__ is object:
            return self._unbound(getattr(object, name), (owner, *args), kwargs)
        kind = next((k for k in (*MUTATING, *PURE_TYPES) if isinstance(owner, k) and k is not object), None)
        if kind is None and (not isinstance(owner, BaseException) or self.outside.is_outside(owner)):
            return self._refuse(function)
        if name in COMPARING:
            self.refuse_instances((*args, owner))
            if isinstance(owner, (str, bytes)):
                args = tuple([self.concrete(a) for a in args])
                kwargs = {k: self.concrete(v) for k, v in kwargs.items()}
            elif isinstance(owner, CONTAINERS) and any(
                self.outside.is_outside(v) and isinstance(v, CONTAINERS) for v in (*args, *owner)
            ):
                raise Break(f"{name} compares containers from outside")
        if not self.outside.is_outside(owner):
            if name in HOLDING and not isinstance(owner, (str, bytes)):
                return self._hold(function, args, kwargs)
            return self._pure(function, args, kwargs, DEEP if isinstance(owner, (str, bytes)) else 1)
        if name in MUTATING.get(kind, ()):
            return self._change(function, owner, kind, name, args, kwargs)
        if isinstance(owner, dict) and name in ("get", "__getitem__", "__contains__") and not kwargs:
            return self._lookup(owner, name, args)
        if isinstance(owner, CONTAINERS):
            copy = self.outside.copy(owner)
            function = getattr(copy, name) if copy is not owner else function
            return self.refusing(function, tuple(map(self.inside, args)), kwargs)  # a function among them stays itself
        return self._pure(function, args, kwargs)

    def _lookup(self, owner: dict, name: str, args: tuple):
        key = self.outside.key(args[0])
        present = self.outside.has(owner, key)
        if name == "__contains__":
            return present
        if present:
            return self.outside.item(owner, key)
        return self.missing_item(owner, key) if name == "__getitem__" else args[1] if len(args) > 1 else None

    def _change(self, function, owner, kind: type, name: str, args: tuple, kwargs: dict):
        """A method that changes a container from outside."""
        if name in ONE_BY_ONE and self._is_lazy(*args):
            add = ONE_BY_ONE[name]
            for value in self.as_iterator(*args):  # which may look at the container, or raise half way
                self._change(getattr(owner, add), owner, kind, add, (value,), {})
            return owner if name == "__iadd__" else None
        if name in SPREADING:
            args = tuple([self._spread(a, kind) for a in args])
        elif name in KEYED and issubclass(kind, (dict, set)):
            args = (*(self.outside.key(a) for a in args[:1]), *args[1:])
        if name in GROWING and kind is not collections.deque:
            return self.journal.call(function, args, kwargs, GROWING[name](owner, *args, **kwargs))
        self.outside.absorb(owner)
        if name == "sort":
            return self._sort(owner, kwargs)
        return self.outside.settled(self.journal.call(function, args, kwargs, (ALL,)))

    def _is_lazy(self, *args) -> bool:
        """Whether something is given that makes values as they are asked for."""
        return (
            len(args) == 1
            and not self.outside.is_outside(args[0])
            and class_attribute(type(args[0]), "__next__") is not ABSENT
        )

    def _sort(self, owner: list, kwargs: dict) -> None:
        """`xs.sort(key=...)`: what it comes to is written, since the keys are of this capture."""
        result = self.call_now(sorted, ([self.outside.settled(v) for v in list.__iter__(owner)],), kwargs)
        self.journal.call(owner.__setitem__, (slice(None), result), {}, (ALL,))

    def _spread(self, value, kind: type):
        """What a method adds the items of, read to its end."""
        if not isinstance(value, CONTAINERS):
            value = self.all_of(value)
        value = self.inside(value)
        if kind is dict and not isinstance(value, dict):
            return {self.outside.key(k): v for k, v in map(self.all_of, value)}
        return value
