"""TORCH_LIBRARY blocks: what C++ defines and registers, given to `library`.

In: schemas or names, C++ functions with the types of their parameters. Out: operators and kernels of a `Library` that stays.
A kernel is called with every argument of the schema, by position. What goes wrong while a block runs is kept
(`note_failure`) and raised by whoever loaded it (`raise_failures`): nothing may be thrown while a library is loading.
"""

from __future__ import annotations

from collections.abc import Callable

from ..library import Library
from ..library.declaration import read
from ..library.functions import lookup
from ..library.kernels import fallthrough_kernel
from ..ops.system.schema import Schema

_failures: list[BaseException] = []
_kept: list[CppLibrary] = []  # what a shared library registers stays: it is never unloaded

_MISMATCH = (
    "Inferred operator schema for a C++ kernel function doesn't match the expected function schema.\n"
    "  operator: {name}\n  expected schema: {schema}\n  inferred types: ({types}) -> {returns}\n  reason: {reason}"
)


def note_failure(error: BaseException) -> None:
    """Keep an error of a block that runs while a library is loading."""
    _failures.append(error)


def raise_failures() -> None:
    """Raise what went wrong while a library was loading."""
    if _failures:
        error = _failures[0]
        _failures.clear()
        raise error


class CppKernel:
    """A C++ function as a kernel: gets all arguments, defaults included, in the order of the schema."""

    def __init__(self, name: str, function: Callable, count: int):
        self.name, self.function, self.count = name, function, count

    def __call__(self, *args, **kwargs):
        if kwargs or len(args) != self.count:
            args = lookup(self.name).bind(args, kwargs)
        return self.function(*args)


class CppLibrary:
    """A block: `kind` is DEF, FRAGMENT or IMPL."""

    def __init__(self, namespace: str, kind: str, key: str, source: str):
        self.namespace = namespace
        self.key = "" if key == "CatchAll" else key
        self.library = Library(namespace, kind, self.key)
        self.library.source = source

    def define(self, schema: str) -> None:
        """m.def("f(Tensor x) -> Tensor")"""
        self.library.define(schema)

    def define_with(
        self, text: str, function: Callable, types: list[str] | None, returns: str | None, key: str
    ) -> None:
        """m.def("f(Tensor x) -> Tensor", f), or m.def("f", f) with the schema that the C++ types say."""
        if "(" in text:
            name = read(text).name
            self.library.define(text)
        else:
            if types is None:
                raise RuntimeError(f'def("{text}"): a fallthrough has no types to infer a schema from; give the schema')
            name = text.partition("::")[2] or text
            self.library.define(inferred(name, types, returns or "()"))
        self.impl(name, function, types, returns, key)

    def impl(self, name: str, function: Callable, types: list[str] | None, returns: str | None, key: str) -> None:
        """m.impl("f", f)"""
        qualified = name if "::" in name else f"{self.namespace}::{name}"
        if types is None:
            self.library.impl(name, function, key)
            return
        check_kernel(qualified, types, returns or "()")
        self.library.impl(name, CppKernel(qualified, function, len(types)), key)

    def fallback(self, function: Callable) -> None:
        """m.fallback(f): only what passes a key by can be one."""
        if function is not fallthrough_kernel:
            raise NotImplementedError(
                "m.fallback: boxed kernels are not supported, only CppFunction::makeFallthrough()"
            )


def library(namespace: str, kind: str, key: str, source: str) -> CppLibrary:
    """A block of C++ that registers."""
    result = CppLibrary(namespace, kind, key, source)
    _kept.append(result)
    return result


def inferred(name: str, types: list[str], returns: str) -> str:
    """The schema of a C++ function: parameters are numbered."""
    for kind in (*types, returns):
        if "Any" in kind:
            raise RuntimeError(f'def("{name}"): a C++ type of its signature cannot be in a schema')
    several = returns.startswith("(") and returns != "()"
    outs = returns[1:-1].split(", ") if several else [] if returns == "()" else [returns]
    results = [f"{kind} _{i}" for i, kind in enumerate(outs)]
    arguments = ", ".join(f"{kind} _{i}" for i, kind in enumerate(types))
    return f"{name}({arguments}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"


def plain(kind: str) -> str:
    """A type of a schema as C++ has it: sizes of lists are not in types, symbols may come as plain numbers."""
    kind = "".join(c for c in kind if not c.isdigit())
    kind = {"number": "Scalar", "Layout": "int", "MemoryFormat": "int", "ScalarType": "int"}.get(kind, kind)
    return kind.replace("SymInt", "int").replace("SymFloat", "float").replace("SymBool", "bool")


def check_kernel(name: str, types: list[str], returns: str) -> None:
    """That a C++ function has the parameters that its operator's schema says, where that is known by now."""
    try:
        schema: Schema = lookup(name).schema
    except (AttributeError, ValueError):
        return
    reason = difference(schema, types, returns)
    if reason is not None:
        raise RuntimeError(
            _MISMATCH.format(name=name, schema=schema, types=", ".join(types), returns=returns, reason=reason)
        )


def difference(schema: Schema, types: list[str], returns: str) -> str | None:
    """How a C++ function differs from a schema, in words."""
    arguments = schema.arguments
    if len(arguments) != len(types):
        return f"The number of arguments is different. {len(arguments)} vs {len(types)}."
    for i, (a, kind) in enumerate(zip(arguments, types, strict=True)):
        if plain(a.type) != plain(kind) and "Any" not in kind and a.base not in ("Generator", "Any"):
            return f"Type mismatch in argument {i + 1}: {a.type} vs {kind}"
    count = 0 if returns == "()" else returns.count(", ") + 1
    if len(schema.returns) != count:
        return f"The number of returns is different. {len(schema.returns)} vs {count}"
    return None
