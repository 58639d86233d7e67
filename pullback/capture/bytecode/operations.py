"""Items and operators, in a captured program: Python's rules for them, with every reading noted and every write journaled.

Python methods of the program's own classes (`__getitem__`, `__add__`, `__eq__`, `__bool__`, ...) are interpreted, in
Python's order; containers from outside are read item by item; whatever else is native code.
"""

from __future__ import annotations

import collections
import operator
import types

from ...core.tensor import Tensor
from ...ops.make.assertions import assert_async_msg
from ..trace.program import writes
from .arrays.world import as_index, refuse_arrays
from .builtin_calls import HANDLED, MUTATING
from .calls import Calls
from .journal import ALL
from .lookups import ABSENT, class_attribute
from .native import Answer, runs_python
from .outside import CONSTANTS, CONTAINERS, SEQUENCES, is_symbol
from .signals import Break
from .world import BINARY, COMPARE, INPLACE, UNARY

DUNDERS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "@": "matmul", "**": "pow", "<<": "lshift",
    ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
COMPARISONS = {
    "<": ("__lt__", "__gt__"),
    "<=": ("__le__", "__ge__"),
    "==": ("__eq__", "__eq__"),
    "!=": ("__ne__", "__ne__"),
    ">": ("__gt__", "__lt__"),
    ">=": ("__ge__", "__le__"),
}
UNARY_DUNDERS = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}
SIMPLE_SET = frozenset((int, float, bool, str, complex, bytes, type(None)))


PLACES = (list, tuple, str, bytes, bytearray, range, collections.deque)
KEYED = (set, frozenset, type({}.keys()))  # they know what they hold by hash


def has_plain_hash(value) -> bool:
    """Whether looking a value up runs no Python code of a class of the user's."""
    return not runs_python(type(value)) and type(value).__hash__ is not None


class Operations(Calls):
    """The part of the tracing world for items and operators."""

    # ---- items
    def load_item(self, obj, key):
        if isinstance(obj, Tensor):
            return self.native_call(operator.getitem, (obj, as_index(key)), {})
        key = self._as_place(obj, key)
        method = class_attribute(type(obj), "__getitem__")
        if isinstance(method, types.FunctionType) and not isinstance(obj, type):
            if self.enters(method) or method in HANDLED:
                return self.call_now(method, (obj, key), {})
            return self._ours(method, method, (obj, key))
        if self.outside.is_outside(obj):
            return self._outside_item(self.outside.proxied(obj), key)
        if isinstance(obj, dict):
            self.outside.key(key)
            if not dict.__contains__(obj, key):
                return self.missing_item(obj, key)
        return self.outside.settled(self.refusing(operator.getitem, (obj, key), {}))

    def _as_place(self, obj, key):
        """A place in a sequence of a built-in kind: what `__index__` of an object says, in a slice, too."""
        if not isinstance(obj, PLACES) or type(key) in (int, str):
            return key
        if type(key) is slice:
            parts = [self._as_place(obj, part) for part in (key.start, key.stop, key.step)]
            same = parts[0] is key.start and parts[1] is key.stop and parts[2] is key.step
            return key if same else slice(*parts)
        if is_symbol(key):
            return int(key) if isinstance(obj, list) and self.outside.is_outside(obj) else key
        given = self._dunder(key, "__index__")
        return key if given is NotImplemented else operator.index(Answer(key, "__index__", self.concrete(given)))

    def _outside_item(self, obj, key):
        if isinstance(obj, dict):
            real = self.outside.key(key)
            if dict.__contains__(obj, real):
                return self.outside.item(obj, real)
            self.outside.has(obj, real)
            return self.missing_item(obj, real)
        if isinstance(obj, SEQUENCES):
            if type(key) is int and -len(obj) <= key < len(obj):
                return self.outside.item(obj, key)
            return self.outside.copy(obj)[key]
        if isinstance(obj, (type, types.GenericAlias)):
            return self.refusing(operator.getitem, (obj, key), {})
        if isinstance(obj, CONTAINERS):
            return self.outside.copy(obj)[key]
        raise Break(f"it reads an item of a {type(obj).__name__}")

    def missing_item(self, obj: dict, key):
        """What a dict gives for a key that it does not have."""
        result = class_attribute(type(obj), "__missing__")
        if isinstance(result, types.FunctionType):
            return self.call_now(result, (obj, key), {})
        factory = self.load_attribute(obj, "default_factory") if isinstance(obj, collections.defaultdict) else None
        if factory is None:
            raise KeyError(key)
        value = self.call_now(factory, (), {})
        if self.outside.is_outside(obj):
            self.journal.set_item(obj, key, value)
        else:
            dict.__setitem__(obj, key, value)
        return value

    def store_item(self, obj, key, value) -> None:
        if isinstance(obj, Tensor):
            refuse_arrays(operator.setitem, (value,))
            self.native_call(operator.setitem, (obj, as_index(key), value), {})
            return
        key = self._as_place(obj, key)
        method = class_attribute(type(obj), "__setitem__")
        if isinstance(method, types.FunctionType):
            self.call_now(method, (obj, key, value), {})
        elif not self.outside.is_outside(obj):
            if isinstance(obj, dict):
                self.outside.key(key)
            obj[key] = value
        elif isinstance(obj, dict) or isinstance(obj, list) and type(key) is int:
            if isinstance(obj, list):
                self.outside.length(obj)
                key = key + len(obj) if key < 0 else key
            self.journal.set_item(obj, self.outside.key(key), value)
        elif isinstance(obj, list):
            self.outside.absorb(obj)
            self.journal.call(obj.__setitem__, (key, self._spread(value, list)), {}, (ALL,))
        else:
            raise Break(f"it assigns to an item of a {type(obj).__name__}")

    def delete_item(self, obj, key) -> None:
        key = self._as_place(obj, key)
        method = class_attribute(type(obj), "__delitem__")
        if isinstance(method, types.FunctionType):
            self.call_now(method, (obj, key), {})
        elif not self.outside.is_outside(obj):
            del obj[key]
        elif isinstance(obj, dict):
            key = self.outside.key(key)
            if not self.outside.has(obj, key):
                raise KeyError(key)
            self.journal.delete_item(obj, key)
        elif isinstance(obj, list):
            self.outside.absorb(obj)
            self.journal.delete_item(obj, key)
        else:
            raise Break(f"it deletes an item of a {type(obj).__name__}")

    # ---- operators
    def unary(self, name: str, value):
        if name == "not":
            return not self.truth(value)
        method = class_attribute(type(value), UNARY_DUNDERS[name])
        if isinstance(method, types.FunctionType) and self.enters(method):
            return self.call_now(method, (value,), {})
        self.refuse_mutable(value)
        return self.refusing(UNARY[name], (value,), {})

    def binary(self, name: str, a, b, inplace: bool):
        if type(a) in SIMPLE_SET and type(b) in SIMPLE_SET:
            return BINARY[name](a, b)
        if inplace and self.outside.is_outside(a) and isinstance(a, tuple(MUTATING)):
            method = getattr(a, f"__i{DUNDERS[name]}__", None)
            return self.call(method, (b,), {}) if method is not None else self._refuse(a)
        found = self._user_binary(DUNDERS[name], a, b, inplace)
        if found is not NotImplemented:
            return found
        if name == "*":
            a, b = self._as_place(b, a), self._as_place(a, b)
        self.refuse_mutable(a)
        self.refuse_mutable(b)
        if name == "%" and isinstance(a, (str, bytes)):
            self.refuse_instances((b,))
            b = self.concrete(b)
        return self.refusing((INPLACE if inplace else BINARY)[name], (self.inside(a), self.inside(b)), {})

    def _user_binary(self, name: str, a, b, inplace: bool):
        """Python methods of operators, in Python's order."""
        tries = [(a, b, f"__i{name}__")] if inplace else []
        forward, reflected = (a, b, f"__{name}__"), (b, a, f"__r{name}__")
        first = (
            type(a) is not type(b)
            and issubclass(type(b), type(a))
            and class_attribute(type(b), reflected[2]) is not class_attribute(type(a), reflected[2])
        )
        tries += [reflected, forward] if first else [forward, reflected]
        for one, other, method in tries:
            result = self._dunder(one, method, other)
            if result is not NotImplemented:
                return result
        return NotImplemented

    def _dunder(self, obj, name: str, *args):
        method = class_attribute(type(obj), name)
        if isinstance(method, types.FunctionType) and self.enters(method):
            return self.call_now(method, (obj, *args), {})
        return NotImplemented

    def compare(self, op: str, a, b):
        if type(a) in SIMPLE_SET and type(b) in SIMPLE_SET:
            return COMPARE[op](a, b)
        forward, reflected = COMPARISONS[op]
        for one, other, name in ((a, b, forward), (b, a, reflected)):
            result = self._dunder(one, name, other)
            if result is not NotImplemented:
                return result
        if isinstance(a, CONTAINERS) or isinstance(b, CONTAINERS):
            self.refuse_instances((a, b))
        self.refuse_mutable(a)
        self.refuse_mutable(b)
        return self.refusing(COMPARE[op], (self.deep(a), self.deep(b)), {})

    def contains(self, container, item, invert: bool) -> bool:
        container = self.outside.proxied(container)
        result = self._dunder(container, "__contains__", item)
        if result is not NotImplemented:
            found = self.truth(result)
        elif isinstance(container, dict) and self.outside.is_outside(container):
            found = self.outside.has(container, self.outside.key(item))
        elif isinstance(container, KEYED) and self.outside.is_outside(container) and has_plain_hash(item):
            found = self.outside.has(container, self.outside.key(item))
        else:
            if not isinstance(container, (Tensor, type)) and self._is_read_on(type(container)):
                found = self._comes_by(container, item)
                return not found if invert else found
            container = self.deep(container)
            if isinstance(container, (dict, set, frozenset)):
                self.outside.key(item)
            elif not isinstance(container, (Tensor, type)):
                self.refuse_instances((container, item))
            found = self.truth(self.refusing(operator.contains, (container, item), {}))
        return not found if invert else found

    def _is_read_on(self, cls: type) -> bool:
        """Whether Python looks for a value in objects of a class by iterating, which runs Python code of the class."""
        methods = [class_attribute(cls, name) for name in ("__iter__", "__next__", "__getitem__")]
        return methods[1] is not ABSENT or any(isinstance(m, types.FunctionType) for m in (methods[0], methods[2]))

    def _comes_by(self, values, item) -> bool:
        """`item in values`, of what iterating gives: values after the first that is equal are not asked for."""
        for value in self.as_iterator(values):
            if self.is_same(value, item, False) or self.truth(self.compare("==", value, item)):
                return True
        return False

    def is_same(self, a, b, invert: bool) -> bool:
        a, b, places = (
            self.outside.real(a),
            self.outside.real(b),
            (self.outside.source_of(a), self.outside.source_of(b)),
        )
        if a is not b and None not in places and not isinstance(a, CONSTANTS) and not isinstance(b, CONSTANTS):
            self.outside.conditions.different(*places)
        return (a is b) is not invert

    def truth(self, value) -> bool:
        if value is True or value is False or value is None:
            return bool(value)
        value = self.outside.proxied(value)
        for name in ("__bool__", "__len__"):
            method = class_attribute(type(value), name)
            if method is not ABSENT and method is not None:
                if isinstance(method, types.FunctionType) and self.enters(method):
                    return as_truth(name, self.call_now(method, (value,), {}))
                break
        if isinstance(value, CONTAINERS) and self.outside.is_outside(value):
            return self._outside_truth(value)
        self.refuse_mutable(value)
        if isinstance(value, Tensor) and self._is_asserted(value):
            return True
        return self.refusing(bool, (value,), {})

    def _is_asserted(self, value: Tensor) -> bool:
        """Whether a tensor is the condition of an `assert`, which then is in the graph: where nobody would catch the error, and
        nothing was done before it that would be left undone."""
        frame = self.machine.frames[-1]
        words = asserted_words(frame.steps.code, frame.index)
        if words is None or value.numel() != 1 or self.journal.log or any(map(writes, self.trace.graph.nodes)):
            return False
        if any(f.steps.handler(f.index - (1 if f.waiting else 0)) for f in self.machine.frames) or self.machine.outer:
            return False
        self.refusing(assert_async_msg, (value, words), {})
        return True

    def _outside_truth(self, value) -> bool:
        if self.journal.touched.get(id(value)):
            return bool(self.outside.length(value))
        source = self.outside.source_of(value)
        v = self.outside.conditions.variable(source)
        self.outside.conditions.test(v if value else f"not {v}", f"{source.name} is {'not ' if value else ''}empty")
        return bool(value)

    def length(self, value) -> int:
        value = self.outside.proxied(value)
        method = class_attribute(type(value), "__len__")
        if isinstance(method, types.FunctionType) and self.enters(method):
            return self.call_now(method, (value,), {})
        if isinstance(value, CONTAINERS) and self.outside.is_outside(value):
            return self.outside.length(value)
        self.refuse_mutable(value)
        return self.refusing(len, (value,), {})


def asserted_words(code: list, index: int) -> str | None:
    """The words of the `assert` whose condition a step decides; None where it is no such step, or the words are no text."""
    if code[index][0] == "TO_BOOL":  # which is a step of its own in newer Pythons
        index += 1
    name, _ = code[index]
    after = [step for step, _ in code[index + 1 : index + 6]]
    if "JUMP" not in name or not name.endswith("IF_TRUE") or after[:1] != ["LOAD_ASSERTION_ERROR"]:
        return None
    if after[1:2] == ["RAISE_VARARGS"]:
        return "assertion error"
    said = code[index + 2]
    is_text = said[0] == "LOAD_CONST" and isinstance(said[1], str) and "RAISE_VARARGS" in after[2:5]
    return said[1] if is_text else None


def as_truth(method: str, value) -> bool:
    """What `__bool__` or `__len__` gave, as Python takes it."""
    if method == "__bool__" and type(value) is not bool and not (is_symbol(value) and value.symbolic_type is bool):
        raise TypeError(f"__bool__ should return bool, returned {type(value).__name__}")
    if method == "__len__" and not is_symbol(value):
        value = operator.index(value)
        if value < 0:
            raise ValueError("__len__() should return >= 0")
    return bool(value)
