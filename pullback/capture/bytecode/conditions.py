"""The conditions under which a captured graph may be entered, as one generated function.

While a program is captured, everything it reads from outside becomes a line here, in the order of reading: a lookup, or
a test that what was found is what the capture saw. `Conditions.text` gives these lines for the function that checks
them; the same lines with words instead of a plain refusal make `explain`, which says what does not fit.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import math
import operator
import struct
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...core import modes
from ...core.extension import extension
from ...core.modes import ambient, process
from ...core.node import Autograd, requires_grad
from ...core.tensor import CUDA, Tensor, stride_of
from ..front.guards import AMBIENT, describe, sharing, sharing_mismatch, tensor_mismatch
from .sources import READ, Source

MISSING = (KeyError, IndexError, AttributeError, ValueError, TypeError)

native_conditions = extension("_conditions")  # the tests of tensors and modules in C
if native_conditions is not None:
    native_conditions.setup(Tensor, Autograd, np.ndarray, requires_grad)


class About(NamedTuple):
    """What a test is about: its kind, by PyTorch's name, where the value is, and the value (of a type, the class)."""

    kind: str
    source: Source
    value: object


class Conditions:
    """Lookups and tests, in order."""

    def __init__(self) -> None:
        self.namespace: dict[str, object] = {"requires_grad": requires_grad, "stride_of": stride_of, "MISSING": MISSING}
        self.constants: dict[int, str] = {}
        self.equal: dict[tuple, tuple] = {}  # values that are named once for all that are equal
        self.variables: dict[int, str] = {}  # id of a source -> its variable
        self.lines: list[tuple[bool, str, str]] = []  # (whether it is a test, code, code for the words where it fails)
        self.tested: dict[str, str] = {}  # the tests, by code: what they test, for people
        self.abouts: dict[str, About] = {}  # by code, what of a value a test is about
        self.explaining: Callable | None = None
        self.tensors: list[tuple[Source, str]] = []  # tensors read, each once: how they alias each other is tested
        self.first: list[tuple[str, str]] = []  # (code, words) of the tests of classes, which come before all others
        self.watched: tuple[type, ...] = ()  # these classes

    # ---- names
    def constant(self, value) -> str:
        """A name for an object in the generated code."""
        found = self.constants.get(id(value))
        if found is None:
            found = self.constants[id(value)] = f"c{len(self.constants)}"
            self.namespace[found] = value
        return found

    def shared(self, value: tuple) -> str:
        """A name for a value, the same for those that are equal."""
        return self.constant(self.equal.setdefault(value, value))

    def literal(self, value) -> str:
        """A simple value as Python text, or a name for it."""
        if value is None or type(value) in (bool, int, str, bytes) or type(value) is float and math.isfinite(value):
            return repr(value)
        return self.constant(value)

    def variable(self, source: Source) -> str:
        """The variable that holds what a source gives; its lookup becomes a line at first use."""
        found = self.variables.get(id(source))
        if found is None:
            base = self.variable(source.base) if source.base is not None else None
            if source.kind == "constant":
                return self.constant(source.key)
            found = self.variables[id(source)] = f"v{len(self.variables)}"
            self.lines.append((False, f"{found} = {self._read(source, base)}", repr(f"{source.name} is not there")))
        return found

    def _read(self, source: Source, base: str | None) -> str:
        if source.kind == "read":
            return f"{self.constant(source.key.reader)}({base}, {self.literal(source.key.key)})"
        if source.kind != "item":
            return READ[source.kind].format(base=base, key=source.key)
        return f"{base}[{self.literal(source.key)}]"

    # ---- tests
    def test(self, code: str, words: str, say: str | None = None, about: About | None = None) -> None:
        """Something that must be true; `say`: code that gives better words."""
        if code not in self.tested:
            self.tested[code] = words
            if about is not None:
                self.abouts[code] = about
            self.lines.append((True, code, say or repr(words)))

    def has_type(self, source: Source, cls: type) -> None:
        v = self.variable(source)
        self.test(
            f"type({v}) is {self.constant(cls)}",
            f"type of {source.name} is {cls.__name__}",
            f"'expected type of %s to be {cls.__name__}, but found %s' % ({source.name!r}, type({v}).__name__)",
            About("TYPE_MATCH", source, cls),
        )

    def is_object(self, source: Source, value) -> None:
        code, about = f"{self.variable(source)} is {self.constant(value)}", About("ID_MATCH", source, value)
        self.test(code, f"{source.name} is another object", about=about)

    def is_function(self, source: Source, value) -> None:
        v = self.variable(source)
        code, around = self.constant(value.__code__), self.constant(value.__globals__)
        self.test(
            f"type({v}) is {self.constant(type(value))} and {v}.__code__ is {code} and {v}.__globals__ is {around}",
            f"{source.name} is another function",
            about=About("CLOSURE_MATCH", source, value),
        )

    def equals(self, source: Source, value) -> None:
        """A simple value, of the same type."""
        v, c = self.variable(source), self.literal(value)
        test = f"type({v}) is {self.constant(type(value))} and {v} == {c}"
        if isinstance(value, bool) or value is None:
            test = f"{v} is {c}"
        elif value != value:
            test = f"type({v}) is {self.constant(type(value))} and {v} != {v}"
        elif type(value) is float and value == 0:
            self.namespace["copysign"] = math.copysign
            test += f" and copysign(1.0, {v}) == {math.copysign(1.0, value)}"
        say = f"{f'{source.name} == {value!r}  (it is '!r} + repr({v}) + ')'"
        self.test(test, f"{source.name} == {value!r}", say, About("CONSTANT_MATCH", source, value))

    def has_length(self, source: Source, length: int, reader: Callable | None = None) -> None:
        v = self.variable(source)
        self.test(
            f"{'len' if reader is None else self.constant(reader)}({v}) == {length}",
            f"len({source.name}) == {length}",
            f"'len({{}}) == {length}  (it is {{}})'.format({source.name!r}, len({v}))",
            About("SEQUENCE_LENGTH", source, length),
        )

    def has_keys(self, source: Source, keys: tuple, reader: Callable | None = None, counts: bool = False) -> None:
        """The keys of a dict, in order. `counts`: whether `len` runs no Python code of its class."""
        v = self.variable(source)
        test = f"[*{v if reader is None else f'{self.constant(reader)}({v})'}] == {self.constant(list(keys))}"
        if not keys and counts:
            test = f"len({v}) == 0"
        self.test(test, f"the keys of {source.name} are {list(keys)!r}", about=About("DICT_KEYS_MATCH", source, keys))

    def has_identical_keys(self, source: Source, keys: list) -> None:
        """Keys that are objects."""
        v, c = self.variable(source), self.constant(keys)
        self.test(
            f"len({v}) == {len(keys)} and all(map({self.constant(operator.is_)}, {v}, {c}))",
            f"{source.name} has the same keys",
        )

    def has_key(self, source: Source, key, present: bool, reader: Callable | None = None) -> None:
        word, v, k = "in" if present else "not in", self.variable(source), self.literal(key)
        plain = f"{k} {word} {v}" if reader is None else f"{self.constant(reader)}({v}, {k}) is {present}"
        self.test(plain, f"{key!r} {word} {source.name}", about=About("DICT_CONTAINS", source, key))

    def same(self, a: Source, b: Source) -> None:
        """Two places hold the same object."""
        if a is not b:
            self.test(f"{self.variable(a)} is {self.variable(b)}", f"{a.name} is {b.name}")

    def different(self, a: Source, b: Source) -> None:
        self.test(f"{self.variable(a)} is not {self.variable(b)}", f"{a.name} is not {b.name}")

    def fits(self, source: Source, t: Tensor, static: bool) -> None:
        """A tensor of the same metadata (`static`: sizes too)."""
        v = self.variable(source)
        fact = describe(t)
        self.tensors.append((source, v))
        if not static:
            fact = (*fact[:6], None, None)
        say = f"tensor_mismatch({source.name!r}, {v}, {self.constant(fact)})"
        self.namespace.update(describe=describe, tensor_mismatch=tensor_mismatch)
        self.test(
            _plain_test(self, v, t, fact)
            or f"describe({v})[:{8 if static else 6}] == {self.constant(fact if static else fact[:6])}",
            f"check_tensor({source.name}, {t.dtype}, {f'size={list(t.shape)}' if static else 'dynamic'}, requires_grad={fact[4]})",
            say,
            About("TENSOR_MATCH", source, t),
        )

    # ---- the whole
    def ambient_test(self) -> str:
        """The test of everything that changes what calls mean."""
        self.namespace.update(ambient=ambient, process=process)
        test = f"ambient.mode & {AMBIENT} == {ambient.mode & AMBIENT} and process.default_dtype is {self.constant(process.default_dtype)}"
        test += f" and process.deterministic is {process.deterministic}"
        if ambient.mode & modes.AUTOCAST:
            test += f" and {self.autocast_test()}"
        if ambient.mode & modes.DEFAULT_DEVICE:
            test += f" and ambient.default_device is {self.constant(ambient.default_device)}"
        return test

    def autocast_test(self) -> str:
        """The test that autocast is what it is now."""
        return f"ambient.autocast == {self.constant(dict(ambient.autocast))}"

    def sharing_test(self, tensors: list, written: frozenset[int] | None) -> None:
        """Which of the tensors that were read are the same; where some are written (those of these numbers; None: who knows), which share
        memory, and how."""
        if len(self.tensors) < 2:
            return
        names, variables = [s.name for s, _ in self.tensors], ", ".join(v for _, v in self.tensors)
        look = same_objects if written is not None and not written else functools.partial(sharing, written=written)
        self.namespace["sharing_mismatch"] = sharing_mismatch
        want, now = self.constant(look(tensors)), f"{self.constant(look)}(({variables},))"
        say = f"sharing_mismatch({self.constant(names)}, {want}, {now})"
        quick = ""
        if native_conditions is not None and self.namespace[want] == ():  # most often they share nothing
            self.namespace["are_apart"] = native_conditions.are_apart
            quick = f"are_apart({variables}) or "
        self.test(f"{quick}{now} == {want}", "the tensors share memory as they did", say)

    def put_first(self, tests, classes: Iterable[type]) -> None:
        """Tests, (code, words) each, of what the lookups of all others go by: of these classes."""
        self.first, self.watched = list(tests), tuple(classes)
        self.tested.update(self.first)

    def drop(self, codes: set[str]) -> None:
        """Do without these tests."""
        self.lines = [line for line in self.lines if not (line[0] and line[1] in codes)]
        self.tested = {code: words for code, words in self.tested.items() if code not in codes}

    @property
    def words(self) -> list[str]:
        return list(self.tested.values())

    def body(self) -> list[str]:
        """The lines of the check. Tests that follow each other are one line: Python compiles that in less time."""
        lines = [f"if not ({self._classes_test()}): return MISS"] if self.first else []
        for is_test, group in itertools.groupby(self.lines, lambda line: line[0]):
            codes = [code for _, code, _ in group]
            lines += [f"if not (({') and ('.join(codes)})): return MISS"] if is_test else codes
        return lines

    def _classes_test(self) -> str:
        """All tests of classes; none of them where Python says that the classes are what they were when all held. What it says is asked
        before the tests: somebody else may change a class meanwhile."""
        tests = " and ".join(f"({code})" for code, _ in self.first)
        if native_conditions is None:
            return tests
        self.namespace.update(is_unchanged=native_conditions.is_unchanged, marks=native_conditions.marks, keep=_keep)
        watch = self.constant([self.watched, None])
        return f"is_unchanged({watch}) or (now := marks({watch}[0])) and {tests} and keep({watch}, now)"

    def explain(self, prologue: list[str], frames: list) -> str | None:
        """The words for what does not fit; None where everything does. Its function is made when first asked for: most graphs never are."""
        if self.explaining is None:
            self.explaining = self._explaining(prologue)
        return self.explaining(frames)

    def _explaining(self, prologue: list[str]) -> Callable:
        out = ["def explain(frames):", *("    " + line for line in prologue)]
        for is_test, code, words in (*[(True, code, repr(words)) for code, words in self.first], *self.lines):
            if is_test:
                out.append(f"    if not ({code}): return {words}")
            else:
                out += ["    try:", f"        {code}", "    except MISSING:", f"        return {words}"]
        return compiled("\n".join([*out, "    return None"]), self.namespace, "explain")


def _plain_test(conditions: Conditions, v: str, t: Tensor, fact: tuple) -> str | None:
    """The test of an ordinary dense tensor, written out: most tensors are."""
    if t._keys & ~CUDA or type(t).__name__ not in ("Tensor", "Parameter", "Buffer") or not hasattr(t._array, "strides"):
        return None
    kind, dtype, device, _, wants, own, shape, _ = fact
    is_parameter = wants and own[0] and t._view_info is None  # most likely: a leaf that is no view
    if native_conditions is not None and shape is not None and type(t._array) is np.ndarray and is_parameter is wants:
        layout = struct.pack(f"{2 * t.ndim}n", *t._array.shape, *t._array.strides)
        conditions.namespace["fits"] = native_conditions.fits
        return f"fits({v}, {conditions.shared((kind, dtype, device, layout, is_parameter))})"
    test = f"type({v}) is {conditions.constant(kind)} and {v}._keys == {t._keys} and {v}.dtype is {conditions.constant(dtype)} and {v}.device is {conditions.constant(device)}"
    if shape is not None:
        test += f" and {v}._array.shape == {shape!r} and {v}._array.strides == {t._array.strides!r}"
    else:
        test += f" and len({v}._array.shape) == {t.ndim}"
    if not wants:
        return test + f" and ({v}._autograd is None or not requires_grad({v}))"
    if is_parameter:
        return (
            test
            + f" and {v}._view_info is None and (a := {v}._autograd) is not None and a.requires_grad and a.edge is None"
        )
    return test + f" and requires_grad({v}) and {v}.is_leaf is {own[0]}"


def _keep(watch: list, marks: bytes) -> bool:
    """Remember what classes were like while their tests held."""
    watch[1] = marks
    return True


def same_objects(tensors: Sequence) -> tuple:
    """Which tensors are the same object; () where all are different."""
    if len(set(map(id, tensors))) == len(tensors):
        return ()
    numbers: dict[int, int] = {}
    return tuple([(numbers.setdefault(id(t), len(numbers)),) for t in tensors])


_count = itertools.count()


def compiled(text: str, namespace: dict, name: str) -> Callable:
    """A function from generated text; tracebacks show its lines."""
    file = f"<captured {next(_count)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), namespace)
    result = namespace[name]
    weakref.finalize(result, linecache.cache.pop, file, None)
    return result  # type: ignore[return-value]
