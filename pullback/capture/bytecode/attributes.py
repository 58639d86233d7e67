"""Attributes, in a captured program: Python's rules for them, each step of which notes what it read.

For an instance, an attribute is looked for as Python does: a data descriptor of its class, its own `__dict__`, anything
else of its class, `__getattr__`. What Python code takes part (properties, descriptors, `__getattr__`) is interpreted.
"""

from __future__ import annotations

import functools
import types

from ...autograd.function import BackwardCFunction
from ...autograd.methods import set_data
from ...core import modes
from ...core.modes import FORWARD, TRANSFORM, ambient, process
from ...core.tensor import Tensor
from ...nn.module import Module
from ...ops.system.offers import is_offered
from ..trace.subclasses import is_wrapper
from . import custom_functions, modules
from .arrays import world as arrays
from .arrays.traced import TracedArray
from .kept import PendingHandle
from .lookups import ABSENT, class_attribute
from .outside import SIMPLE, Outside, is_symbol, plain_setter, stays
from .signals import Break
from .world import World

BACKENDS = "pullback.surface.backends"  # whose settings are attributes of objects
NATIVE = (Tensor, type, super, str, int, float, list, tuple, dict, set, frozenset, range, slice, types.FunctionType, types.MethodType,
          types.BuiltinFunctionType, types.CodeType, types.CellType, types.GeneratorType, BaseException, property)  # fmt: skip
# Of the real tensor only: its fake has a history of its own.
REAL_ONLY = frozenset("_version _base retains_grad _backward_hooks _post_accumulate_grad_hooks".split())
REAL_METHODS = frozenset("_is_view storage_offset storage untyped_storage".split())
BOUND = (types.BuiltinFunctionType, types.MethodWrapperType, types.MethodType)


def class_of(value) -> type:
    """The class of a value as the program knows it: a symbol stands for a number."""
    if type(value) is TracedArray:
        return value.kind
    return value.symbolic_type if is_symbol(value) else type(value)


class Attributes(World):
    """The part of the tracing world that reads and writes attributes."""

    outside: Outside

    def load_attribute(self, obj, name: str):
        if isinstance(obj, Tensor):
            return self.tensor_attribute(obj, name)
        if type(obj) is TracedArray:
            return arrays.attribute(self, obj, name)
        if isinstance(obj, arrays.DESCRIPTIONS):
            return arrays.described(self, obj, name)
        if isinstance(obj, PendingHandle):
            if name == "remove":
                return types.MethodType(PendingHandle.remove, obj)
            raise Break("it uses the handle of a hook that is registered after the graph")
        if obj is ambient or obj is process:  # tested by itself where a graph is entered
            return getattr(obj, name)
        if isinstance(obj, types.ModuleType):
            return self._of_module(obj, name)
        if isinstance(obj, type):
            return self._of_class(obj, name)
        if isinstance(obj, super):
            return self._of_super(obj, name)
        if name == "__class__":
            return self.outside.constant(class_of(obj))
        if name == "__dict__" and hasattr(obj, "__dict__"):
            return self._own(obj)
        if isinstance(obj, NATIVE) and type(obj).__module__ == "builtins" or not self._has_own(obj):
            return self._native(obj, name)
        return self._of_instance(obj, name)

    def _has_own(self, obj) -> bool:
        return hasattr(obj, "__dict__") or class_attribute(type(obj), "__slots__") is not ABSENT

    # ---- kinds of objects
    def _native(self, obj, name: str):
        """An attribute of a built-in kind, or of an object without anything of its own."""
        value = getattr(obj, name)
        source = self.outside.source_of(obj)
        own = getattr(obj, "__dict__", None)
        if source is not None and type(own) is dict and name in own:  # a function's, say
            return self.outside.item(self._own(obj), name)
        if source is None or isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            return self.outside.settled(value)
        return self.outside.enter(value, self.outside.sources.get("attribute", source, name))

    def _of_module(self, module: types.ModuleType, name: str):
        touched = self.journal.is_touched(module.__dict__, name)
        try:
            value = getattr(
                module, name
            )  # a module that makes names as they are asked for may have this one from now on
        finally:
            if not touched and name not in module.__dict__:
                table = self.outside.conditions.constant(module.__dict__)
                self.outside.conditions.test(f"{name!r} not in {table}", f"{module.__name__} has no {name!r}")
        if touched:
            return self.outside.settled(value)
        if self.is_ours(module.__name__) and stays(name, value):
            return self.outside.constant(value)
        if isinstance(value, types.ModuleType) or self.is_ours(module.__name__) and not isinstance(value, SIMPLE):
            return self._stays(module, name, self.outside.constant(value))
        known = self.outside.source_of(module) or self.outside.sources.constant(module, module.__name__)
        return self.outside.enter(
            value, self.outside.sources.get("attribute", known, name, f"{module.__name__}.{name}")
        )

    def _stays(self, module: types.ModuleType, name: str, value):
        """A function, class or module that a module has; where it makes names as they are asked for, nothing is tested."""
        if module.__dict__.get(name, ABSENT) is value:
            conditions = self.outside.conditions
            code = f"{conditions.constant(module.__dict__)}.get({name!r}) is {conditions.constant(value)}"
            conditions.test(code, f"{module.__name__}.{name} is what it was")
        return value

    def _of_class(self, cls: type, name: str):
        if name == "__dict__":  # the table of the class itself, not what its instances have under that name
            known = self.outside.sources.constant(cls, cls.__qualname__)
            return self.outside.enter(cls.__dict__, self.outside.sources.get("attribute", known, name))
        for base in cls.__mro__:
            if name in base.__dict__ and self.journal.is_touched(cls, name):
                return self.outside.settled(getattr(cls, name))
        raw = class_attribute(cls, name)
        if (
            raw is ABSENT
            or isinstance(raw, (types.FunctionType, classmethod, staticmethod))
            or callable(raw)
            and not isinstance(raw, Tensor)
        ):
            if raw is ABSENT and type(cls) is not type and class_attribute(type(cls), name) is not ABSENT:
                known = self.outside.sources.constant(cls, cls.__qualname__)
                return self.outside.enter(getattr(cls, name), self.outside.sources.get("attribute", known, name))
            return self.bound(getattr(cls, name))
        if hasattr(type(raw), "__get__"):
            return self._described(raw, None, cls, name)
        known = self.outside.sources.constant(cls, cls.__qualname__)
        return (
            self.outside.enter(raw, self.outside.sources.get("attribute", known, name))
            if not self.is_ours(cls.__module__)
            else self.outside.constant(raw)
        )

    def _of_super(self, obj: super, name: str):
        """`super().name`: the rest of the method resolution order of its object."""
        order = (obj.__self_class__ or type).__mro__
        for base in order[order.index(obj.__thisclass__) + 1 :]:
            raw = self.outside.own_attribute(base, name)
            if raw is not ABSENT:
                owner = obj.__self__ if not isinstance(obj.__self__, type) else None
                return (
                    self._described(raw, owner, obj.__self_class__, name)
                    if hasattr(type(raw), "__get__")
                    else self._class_value(base, name, raw)
                )
        return getattr(obj, name)

    def _of_instance(self, obj, name: str):
        cls = type(obj)
        if (
            self.is_ours(cls.__module__)
            and not isinstance(obj, Module)
            and class_attribute(cls, "__getattr__") is not ABSENT
        ):
            return self.outside.constant(getattr(obj, name))  # a namespace of ours, filled as it is asked
        lookup = class_attribute(cls, "__getattribute__")
        if lookup is not object.__getattribute__ and isinstance(lookup, types.FunctionType):
            fallback = class_attribute(cls, "__getattr__")
            try:
                return self.call_now(lookup, (obj, name), {})
            except AttributeError:
                if not isinstance(fallback, types.FunctionType):
                    raise
            return self.call_now(fallback, (obj, name), {})
        raw = class_attribute(cls, name)
        if raw is not ABSENT and hasattr(type(raw), "__set__") and hasattr(type(raw), "__get__"):
            return self._described(raw, obj, cls, name)
        own = getattr(obj, "__dict__", None)
        if own is not None:
            own = self._own(obj)
            if name in own:
                return self.outside.item(own, name) if self.outside.is_outside(own) else self.outside.settled(own[name])
            if (
                raw is ABSENT
                and isinstance(obj, Module)
                and class_attribute(cls, "__getattr__") is modules.PLAIN_LOOKUP
            ):
                found = modules.find(self, obj, name)
                if found is not modules.ABSENT:
                    return found
            if self.outside.is_outside(own):
                self.outside.has(own, name)
        if raw is not ABSENT:
            if hasattr(type(raw), "__get__"):
                return self._described(raw, obj, cls, name)
            return self._class_value(cls, name, raw)
        return self._missing(obj, cls, name)

    def _class_value(self, cls: type, name: str, raw):
        if self.is_ours(cls.__module__) or callable(raw):
            return self.outside.constant(raw)
        known = self.outside.sources.constant(cls, cls.__qualname__)
        return self.outside.enter(raw, self.outside.sources.get("attribute", known, name))

    def _missing(self, obj, cls: type, name: str):
        """`__getattr__`: a module looks into its tables, which has been done for it; any other is interpreted."""
        fallback = class_attribute(cls, "__getattr__")
        if isinstance(obj, Module) and fallback is modules.PLAIN_LOOKUP:
            for table in (t for t in modules.TABLES if t in obj.__dict__):
                found = self.load_attribute(obj, table)
                if self.outside.is_outside(found):
                    self.outside.has(found, name)
        elif isinstance(fallback, types.FunctionType):
            return self.call_now(fallback, (obj, name), {})
        return getattr(obj, name)

    def _own(self, obj) -> dict:
        """The `__dict__` of an object, with its source where the object is from outside."""
        own = obj.__dict__
        source = self.outside.source_of(obj)
        if source is not None and not self.outside.is_outside(own):
            self.outside.enter_table(own, self.outside.sources.get("attributes", source))
        return own

    def _described(self, raw, obj, cls: type, name: str):
        """What a descriptor gives."""
        if isinstance(raw, types.FunctionType):
            return self.bound(types.MethodType(raw, obj) if obj is not None else raw)
        if isinstance(raw, property):
            if obj is None:
                return raw
            if raw.fget is None:
                return getattr(obj, name)
            if raw is BackwardCFunction.saved_tensors:
                return custom_functions.saved_tensors(self, obj)
            if cls.__module__.startswith(BACKENDS):
                return self._setting(obj, name)
            return self.call_now(raw.fget, (obj,), {})
        if isinstance(raw, (classmethod, staticmethod)):
            return self.bound(raw.__get__(obj, cls))
        if type(raw) is functools.cached_property and obj is not None and raw.attrname is not None:
            value = self.call_now(raw.func, (obj,), {})  # without the lock that some versions of Python hold meanwhile
            self.store_item(self.load_attribute(obj, "__dict__"), raw.attrname, value)
            return value
        getter = class_attribute(type(raw), "__get__")
        if isinstance(getter, types.FunctionType):
            return self.call_now(getter, (raw, obj, cls), {})
        return self._native_descriptor(raw, obj, cls, name)

    def _setting(self, obj, name: str):
        """A setting of this package's that is a property (`backends.cuda.matmul.allow_tf32`): asked for again at each call."""
        value, conditions = getattr(obj, name), self.outside.conditions
        code = f"{conditions.constant(obj)}.{name} == {conditions.literal(value)}"
        conditions.test(code, f"{type(obj).__name__}.{name} == {value!r}")
        return value

    def _native_descriptor(self, raw, obj, cls: type, name: str):
        """What a descriptor written in C gives: a slot, a field of a named tuple, a method."""
        value = raw.__get__(obj, cls)
        source = self.outside.source_of(obj) if obj is not None else None
        if source is None or isinstance(value, BOUND) or self.journal.is_touched(obj, name):
            return self.outside.settled(value)
        return self.outside.enter(value, self.outside.sources.get("attribute", source, name))

    def bound(self, method):
        """A function or method as the classes have it: at hand in any case."""
        self.outside.constant(method.__func__ if isinstance(method, types.MethodType) else method)
        return method

    # ---- tensors
    def tensor_attribute(self, t: Tensor, name: str):
        """An attribute of a tensor: of the real one where Python code has put it there."""
        real = self.outside.real(t)
        if name in ("grad", "_grad", "grad_fn", "output_nr") and is_offered(type(t), name):
            raise Break(f"it reads {name!r} of a {type(t).__name__}, whose __torch_function__ hears of it")
        if name == "grad" or name == "_grad":
            return self._gradient(t, real)
        if name == "grad_fn" and t.grad_fn is not None and not self._is_tested_for_none():
            raise Break("it looks into the history of a tensor")
        if real is not t and name in REAL_ONLY:
            raise Break(f"it reads {name!r} of a tensor from outside")
        if name == "output_nr" and real is not t:  # its history is not the fake's
            return self.outside.enter(
                real.output_nr, self.outside.sources.get("attribute", self.outside.source_of(t), name)
            )
        is_put_there = name in getattr(real, "__dict__", {}) and name != "trace_marks"
        if real is not t and is_put_there and not is_wrapper(t):  # the parts of a wrapper are those of its fake
            if self.journal.is_touched(real, name):
                return self.outside.settled(real.__dict__[name])
            return self.outside.enter(
                real.__dict__[name], self.outside.sources.get("attribute", self.outside.source_of(t), name)
            )
        raw = class_attribute(type(t), name)
        if raw is ABSENT and real is not t and not is_put_there and not self.journal.is_touched(real, name):
            self.outside.has_no_attribute(t, name)
        if isinstance(raw, property) and isinstance(raw.fget, types.FunctionType) and self.enters(raw.fget):
            return self.call_now(raw.fget, (t,), {})
        if isinstance(raw, types.FunctionType) and self.enters(raw):
            return types.MethodType(raw, t)
        return self.native_call(getattr, (t, name), {})

    def check_method(self, t: Tensor, name: str) -> None:
        """A method that tells what is not tested of every tensor from outside, since few programs ask."""
        real = self.outside.real(t)
        if name not in REAL_METHODS or real is t:
            return
        conditions, source = self.outside.conditions, self.outside.source_of(t)
        v = conditions.variable(source)
        if name == "storage_offset":
            offset = real.storage_offset()
            conditions.test(f"{v}.storage_offset() == {offset}", f"{source.name}.storage_offset() == {offset}")
        elif name == "_is_view" and not real._is_view():
            conditions.test(f"not {v}._is_view()", f"{source.name} is no view")
        else:
            raise Break(f"it calls {name} of a tensor from outside")

    def _is_tested_for_none(self) -> bool:
        """Whether the step being executed gives something that is only asked whether it is None."""
        frame = self.machine.frames[-1]
        after = [name for name, _ in frame.steps.code[frame.index + 1 : frame.index + 3]]
        return after == ["LOAD_CONST", "IS_OP"] or bool(after) and after[0].endswith("NONE")

    def _gradient(self, t: Tensor, real: Tensor):
        if real is t:
            return self.native_call(getattr, (t, "grad"), {})
        if self.journal.is_touched(real, "grad"):
            return self.outside.gradients[id(real)]
        return self.outside.enter(real.grad, self.outside.sources.get("attribute", self.outside.source_of(t), "grad"))

    # ---- writing
    def store_attribute(self, obj, name: str, value) -> None:
        if isinstance(obj, Tensor):
            return self._store_on_tensor(obj, name, value)
        if type(obj) is TracedArray:
            raise Break(f"it assigns to {name!r} of a NumPy array")
        cls = type(obj)
        setter = class_attribute(cls, "__setattr__")
        if isinstance(setter, types.FunctionType) and not (isinstance(obj, Module) and setter is Module.__setattr__):
            self.call_now(setter, (obj, name, value), {})
            return None
        raw = class_attribute(cls, name)
        if isinstance(raw, property):
            if raw.fset is None:
                setattr(obj, name, value)
            self.call_now(raw.fset, (obj, value), {})
            return None
        given = getattr(type(raw), "__set__", None)
        if isinstance(given, types.FunctionType):
            self.call_now(given, (raw, obj, value), {})
            return None
        return self._store(obj, name, value)

    def _store(self, obj, name: str, value) -> None:
        """Write an attribute without asking Python code of the class."""
        assign = plain_setter(obj)
        if not self.outside.is_outside(obj):
            assign(obj, name, value)
            return
        if isinstance(obj, type):
            raise Break(f"it assigns to the attribute {name!r} of the class {obj.__name__}")
        if isinstance(obj, Module):
            return self._store_on_module(obj, name, value)
        if hasattr(obj, "__dict__") and not hasattr(type(class_attribute(type(obj), name)), "__set__"):
            self._own(obj)
            self.journal.set_item(obj.__dict__, name, value)
            return
        old = getattr(obj, name, ABSENT)
        assign(obj, name, value)
        remove = object.__delattr__ if assign is object.__setattr__ else delattr
        self.journal.set_attribute(
            obj, name, value, (lambda: remove(obj, name)) if old is ABSENT else lambda: assign(obj, name, old)
        )

    def _store_on_module(self, obj: Module, name: str, value) -> None:
        """A module sorts what it is given into its tables, by the rule of its own `__setattr__`."""
        own = obj.__dict__
        tables = [own, *(own[t] for t in modules.TABLES), own["_non_persistent_buffers_set"]]
        for table in tables:
            self.journal.save(table)
        setattr(obj, name, value)
        for table in tables[:-1]:
            self.journal.touch(table, name)
        self.journal.set_attribute(obj, name, value, lambda: None)

    def _store_on_tensor(self, t: Tensor, name: str, value) -> None:
        if is_offered(type(t), name):
            raise Break(f"it assigns to {name!r} of a {type(t).__name__}, whose __torch_function__ hears of it")
        real, name = self.outside.real(t), "grad" if name == "_grad" else name
        if real is not t and is_wrapper(t):
            raise Break(f"it assigns to the attribute {name!r} of a {type(t).__name__}")
        if name == "data" and real is not t:
            self._move(t, value)
            return
        if name == "requires_grad":
            self.call_now(Tensor.requires_grad_, (t, value), {})
            return
        if name == "grad" or name not in dir(type(t)):
            if real is t:
                with modes.masked(modes.CAPTURE | modes.DISPATCH):
                    setattr(t, name, value)
                self.outside.marked.setdefault(id(t), (t, {}))[1][name] = value
                return
            self.outside.write_tensor_attribute(real, name, value)
            return
        self.native_call(setattr, (t, name, value), {})

    def _move(self, t: Tensor, value) -> None:
        """`x.data = y` of a tensor from outside: in the graph it is from here on an alias of the other, and the real one gets
        the other's memory when the graph has run."""
        plain = type(t) is Tensor and type(value) is Tensor and t.dtype is value.dtype and t.device == value.device
        if not plain or self.outside.real(t)._is_view() or ambient.mode & (TRANSFORM | FORWARD):
            raise Break("it gives a tensor from outside other memory")
        self.outside.conditions.test(
            f"not {self.outside.conditions.variable(self.outside.source_of(t))}._is_view()", "it is no view"
        )
        alias = self.native_call(Tensor.detach, (value,), {})  # type: ignore[attr-defined]
        self.trace.move(t, alias)
        self.journal.call_later(self.outside.constant(set_data), (t, value))

    def delete_attribute(self, obj, name: str) -> None:
        deleter = class_attribute(type(obj), "__delattr__")
        if isinstance(deleter, types.FunctionType) and not isinstance(obj, Module):
            self.call_now(deleter, (obj, name), {})
        elif not self.outside.is_outside(obj):
            delattr(obj, name)
        elif isinstance(obj, Module) and deleter is Module.__delattr__:
            self._delete_of_module(obj, name)
        elif isinstance(obj, (Module, Tensor, type)) or not hasattr(obj, "__dict__"):
            raise Break(f"it deletes the attribute {name!r} of a {type(obj).__name__}")
        else:
            own = self._own(obj)
            if name not in own:
                delattr(obj, name)
            self.outside.has(own, name)
            self.journal.delete_item(own, name)

    def _delete_of_module(self, obj: Module, name: str) -> None:
        """`del module.name`: from the table in which the module keeps it."""
        own = self._own(obj)
        tables = [own, *(self.load_attribute(obj, table) for table in modules.TABLES)]
        for table in tables:
            if self.outside.is_outside(table):
                self.outside.has(table, name)
            self.journal.save(table)
        self.journal.save(own["_non_persistent_buffers_set"])
        delattr(obj, name)
        for table in tables:
            self.journal.touch(table, name)
        self.journal.delete_attribute(obj, name)
