"""Type stubs, written from the operators' schemas, so that editors complete and check every call.

In: the operators and public functions that importing pullback declares. Out: the text of one `.pyi` file for each
module that exports operators, and of `core/methods.pyi`, the methods that `Tensor` gets from them (a base class that
exists for type checkers alone). What always holds: every exported function is in the stub of its module, and the text
depends on the declarations alone, so that a test can hold the files on disk to it.

    python -m pullback.ops.system.stubs            write the files
    python -m pullback.ops.system.stubs --check    say which are out of date; exit status 1 if any is
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from ...core import device as devices
from ...core import tensor as tensor_module
from ...core.dtype import dtype
from ...core.tensor import Tensor
from .operator import exports
from .signatures import BY_ATTRIBUTE, Results, annotation_text, signatures

__all__ = ["stub_files"]

PACKAGE = (__package__ or "").partition(".")[0]
ROOT = Path(__file__).resolve().parents[2]
BANNER = "# Written by `python -m pullback.ops.system.stubs` from the operators' schemas; not to be edited.\n"
# Underscores: a tensor has methods, and the package dtypes, that are called `int`, `float`, `bool`, `dtype`, `device`.
HEADER = """
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable as _Callable, Sequence as _Sequence
from typing import Any as _Any, NamedTuple as _NamedTuple, Self as _Self, TypeAlias as _TypeAlias, overload as _overload

from {core}.device import device as _device, layout as _layout, memory_format as _memory_format
from {core}.dtype import dtype as _dtype
from {core}.random import Generator as _Generator
from {core}.tensor import Tensor as _Tensor

_Number: _TypeAlias = _int | _float | _complex
_Ints: _TypeAlias = _Sequence[_int]
_DeviceLike: _TypeAlias = _device | _str | _int
"""


# --------------------------------------------------------------------------------------------------------------- files
def function_text(space: str, name: str, function: Callable, results: Results) -> str:
    """`def name(...) -> ...: ...`, overloaded where there are several ways to call."""
    found = signatures(space, name, function, results)
    mark = "@_overload\n" if len(found) > 1 else ""
    ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
    return "\n".join(f"{mark}def {name}{text}: ...{ignored}" for text in found)


def result_classes(results: Results) -> list[str]:
    """The classes of named results: tuples whose fields the schemas name."""
    return ["\n    ".join([f"class {name}(_NamedTuple):", *fields]) + "\n" for name, fields in sorted(results.items())]


def tensor_attributes() -> Iterator[tuple[str, Any]]:
    """What is hung on `Tensor` from outside its class statement, by name."""
    source = ast.parse(Path(tensor_module.__file__).read_text())
    body = next(node.body for node in source.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    written = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    written |= {t.id for node in body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)}
    for name, value in sorted(vars(Tensor).items()):
        # Of the names in double underscores only methods: the rest is the interpreter's, and differs between versions.
        if name not in written and (isinstance(value, FunctionType) or not name.startswith("__")):
            yield name, value


def method_text(name: str, value: Any, results: Results) -> str:
    """One attribute of `Tensor` as its class states it."""
    if isinstance(value, property):
        returns = getattr(value.fget, "__annotations__", {}).get("return", inspect.Parameter.empty)
        known = BY_ATTRIBUTE.get(name, "_Any") if returns is inspect.Parameter.empty else annotation_text(returns)
        return f"{name}: {known}"
    if isinstance(value, FunctionType):
        return function_text("Tensor", name, value, results)
    slots = {
        "_own_dtype": "_dtype",
        "_own_device": "_device",
        "_offset": "_int",
        "_keys": "_int",
        "_counter": "list[_int]",
    }
    return f"{name}: {slots.get(name, '_Any')}"


def methods_stub(results: Results) -> str:
    """The base class of `Tensor` that only type checkers see."""
    lines = [textwrap.indent(method_text(name, value, results), "    ") for name, value in tensor_attributes()]
    head = BANNER + HEADER.format(core=f"{PACKAGE}.core")
    return "\n".join([head, *result_classes(results), "class TensorMethods:", *lines, ""])


def name_line(module: str, name: str, value: Any) -> str | None:
    """How a module's stub states one name that is no operator: an import, or its type; None to leave it out."""
    if isinstance(value, ModuleType):
        home, _, last = value.__name__.rpartition(".")
        return f"from {home} import {last} as {name}" if value.__name__.startswith(f"{PACKAGE}.") else None
    home, own = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", "")
    if isinstance(value, type) or callable(value):
        if home != module and home.startswith(PACKAGE) and getattr(sys.modules.get(home), own, None) is value:
            return f"from {home} import {own} as {name}"
    for kind, text in ((dtype, "_dtype"), (devices.layout, "_layout"), (devices.memory_format, "_memory_format")):
        if isinstance(value, kind):
            return f"{name}: {text}"
    if isinstance(value, (bool, int, float, str)):
        return f"{name}: _{type(value).__name__}"
    return f"{name}: _Any"


def module_stub(module: ModuleType, space: str) -> str:
    """The stub of one module that exports operators."""
    functions = exports.get(space, {})
    results: Results = {}
    imports: list[str] = []
    lines: list[str] = []
    for name, value in sorted(vars(module).items()):
        if isinstance(value, FunctionType) and functions.get(name) is value:
            lines.append(function_text(space, name, value, results))
        elif name.startswith("_") or name == "annotations":
            continue
        elif (line := name_line(module.__name__, name, value)) is not None:
            (imports if line.startswith("from ") else lines).append(line)
    imports += [line for line in later_lines(module) if line not in imports]
    shared = f"from {PACKAGE}.core.methods import " + ", ".join(sorted(results)) if results else ""
    return "\n".join([BANNER + HEADER.format(core=f"{PACKAGE}.core"), shared, *imports, "", *lines, ""])


def later_lines(module: ModuleType) -> list[str]:
    """The names that a module loads when they are first named (`_HOMES`, `_LATER`): an editor knows them from the start."""
    name = module.__name__
    lines = {f"from {name}.{home} import {own} as {own}" for own, home in getattr(module, "_HOMES", {}).items()}
    for own in getattr(module, "_LATER", ()):
        spec = importlib.util.find_spec(f"{name}.{own}")
        if spec is not None:
            home = getattr(spec.loader, "home", lambda full: full)(spec.name)  # a module may answer to a second name
            lines.add(f"from {home.rpartition('.')[0]} import {home.rpartition('.')[2]} as {own}")
    return sorted(lines)


def fileless(space: str = "") -> Iterator[str]:
    """The namespaces that were made of operators alone (`linalg`, `signal.windows`), below one of them or below the package.

    They are known by the package's own name: under the alias it answers to another, and so do modules hung on it.
    """
    parent = f"{PACKAGE}.{space}".rstrip(".")
    for name, value in list(vars(importlib.import_module(parent)).items()):
        full = f"{parent}.{name}"
        if isinstance(value, ModuleType) and sys.modules.get(full) is value and not source_of(value):
            below = full[len(PACKAGE) + 1 :]
            yield below
            yield from fileless(below)


def namespaces() -> Iterator[tuple[str, ModuleType]]:
    """Every module that needs a stub, by the name that operators know it by."""
    package = importlib.import_module(PACKAGE)  # by name: it stands above this layer, and declares all that is written
    yield "torch", package
    for space in sorted({*exports, *fileless()} - {"torch", "Tensor"}):
        if space.startswith("_"):  # reached through the alias of private names alone
            continue
        yield space, importlib.import_module(f"{PACKAGE}.{space}")


def source_of(module: ModuleType) -> str | None:
    """The file a module was read from; None for one that was made of operators alone."""
    return getattr(module, "__file__", None)


def stub_path(module: ModuleType, all_names: set[str]) -> Path:
    """Beside the module's source; for a module without one, where its source would be."""
    if source := source_of(module):
        return Path(source).with_suffix(".pyi")
    place = ROOT.joinpath(*module.__name__.split(".")[1:])
    is_package = any(name.startswith(f"{module.__name__}.") for name in all_names)
    return place / "__init__.pyi" if is_package else place.with_suffix(".pyi")


def stub_files() -> dict[Path, str]:
    """The text of every stub by the path it belongs at."""
    found = dict(namespaces())
    names = {module.__name__ for module in found.values()}
    files = {stub_path(module, names): module_stub(module, space) for space, module in found.items()}
    results: Results = {}  # every class of named results is declared in one place, with the methods
    for space, functions in exports.items():
        for name, function in functions.items():
            if isinstance(function, FunctionType):
                function_text(space, name, function, results)
    files[ROOT / "core" / "methods.pyi"] = methods_stub(results)
    return files


def changes() -> dict[Path, str | None]:
    """What must be written for the stubs on disk to be right: text by path, None for a stub whose module is gone."""
    files = stub_files()
    gone = [path for path in ROOT.rglob("*.pyi") if path not in files and path.read_text().startswith(BANNER)]
    old = {path: text for path, text in files.items() if not path.exists() or path.read_text() != text}
    return {**old, **dict.fromkeys(gone)}


def main(check: bool) -> int:
    """Write the stubs, or with `check` only say which differ from what is on disk."""
    old = changes()
    for path, text in sorted(old.items()):
        print(f"{'out of date' if check else 'written' if text else 'removed'}: {path.relative_to(ROOT.parent)}")
        if check:
            continue
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    return 1 if check and old else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
