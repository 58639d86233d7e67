"""Type stubs, written from the operators' schemas, so that editors complete and check every call.

In: the operators and public functions that importing pullback declares. Out: the text of one `.pyi` file for each
module that exports operators, and of `core/methods.pyi`, the methods that `Tensor` gets from them (a base class that
exists for type checkers alone). What always holds: names, order, kinds and defaults of parameters are read from the
very source that the public functions are compiled from; the text depends on the declarations alone; and what has no
stated type is `Any`, never a guess.

    python -m pullback.ops.stubs            write the files
    python -m pullback.ops.stubs --check    say which are out of date; exit status 1 if any is
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from ..core import device as devices
from ..core.dtype import dtype
from ..core.tensor import Tensor
from .calls import default_names, wrapper_source
from .operator import Operator, exports, packets
from .schema import Argument

__all__ = ["stub_files"]

PACKAGE = (__package__ or "").partition(".")[0]
ROOT = Path(__file__).resolve().parents[1]
BANNER = "# Written by `python -m pullback.ops.stubs` from the operators' schemas; not to be edited.\n"
# Underscores: a tensor has methods, and the package dtypes, that are called `int`, `float`, `bool`, `dtype`, `device`.
HEADER = """
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable as _Callable, Sequence as _Sequence
from typing import Any as _Any, NamedTuple as _NamedTuple, Self as _Self, TypeAlias as _TypeAlias

from {core}.device import device as _device, layout as _layout, memory_format as _memory_format
from {core}.dtype import dtype as _dtype
from {core}.random import Generator as _Generator
from {core}.tensor import Tensor as _Tensor

_Number: _TypeAlias = _int | _float | _complex
_Ints: _TypeAlias = _Sequence[_int]
_DeviceLike: _TypeAlias = _device | _str | _int
"""

# ------------------------------------------------------------------------------------------------------- types as text
TYPES = {
    "Tensor": "_Tensor", "int": "_int", "SymInt": "_int", "float": "_float", "bool": "_bool", "str": "_str",
    "Scalar": "_Number | _Tensor", "ScalarType": "_dtype", "Device": "_DeviceLike", "Layout": "_layout",
    "MemoryFormat": "_memory_format", "Generator": "_Generator", "Dimname": "_str",
}  # fmt: skip
RETURNS = {**TYPES, "Scalar": "_Number"}
# What a hand-written annotation may be made of, and how the stub spells it.
KNOWN = {
    "int": "_int", "float": "_float", "bool": "_bool", "str": "_str", "complex": "_complex", "Sequence": "_Sequence",
    "Callable": "_Callable", "Any": "_Any", "dtype": "_dtype", "None": "None", "Tensor": "_Tensor", "tuple": "tuple",
    "list": "list", "dict": "dict",
}  # fmt: skip


# Parameters that mean the same wherever they stand, for hand-written functions that do not say.
BY_NAME = {
    "dtype": "_dtype | None", "layout": "_layout | None", "device": "_DeviceLike | None", "requires_grad": "_bool",
    "pin_memory": "_bool | None", "memory_format": "_memory_format | None", "generator": "_Generator | None",
}  # fmt: skip


def argument_type(argument: Argument, number_too: bool = False) -> str:
    """The type that a parameter takes; `number_too` where a Python number stands for a tensor."""
    base = argument.base.removesuffix("?")
    text = TYPES.get(base, "_Any")
    if argument.is_list:
        inner = f"{text} | None" if argument.base.endswith("?") else text
        text = "_Ints" if inner == "_int" else f"_Sequence[{inner}]"
        if argument.list_size is not None and base != "Tensor":
            text = f"{TYPES[base]} | {text}"
    elif number_too and base == "Tensor":
        text = "_Tensor | _Number"
    if argument.optional or (argument.has_default and argument.default is None):
        text += " | None"
    return text


def result_type(op: Operator, results: dict[str, list[str]]) -> str:
    """The type of an operator's result; named results are noted in `results`, as classes to write."""
    returns = op.schema.returns
    kinds = [RETURNS.get(kind.removesuffix("?").partition("[")[0], "_Any") for kind, _ in returns]
    kinds = [f"list[{text}]" if "[" in kind else text for text, (kind, _) in zip(kinds, returns, strict=True)]
    if not kinds:
        return "None"
    if len(kinds) == 1:
        return kinds[0]
    names = [name for _, name in returns]
    if all(names) and op.options.get("named", True):
        made = f"{op.options.get('result_name', op.name)}_result"
        results[made] = [f"{name}: {kind}" for name, kind in zip(names, kinds, strict=True)]
        return made
    return f"tuple[{', '.join(kinds)}]"


def annotation_text(annotation: Any) -> str:
    """A hand-written annotation as the stub spells it, `_Any` where it names what the stub does not know."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    if annotation is inspect.Parameter.empty or not words <= KNOWN.keys() or re.search(r"['\"]", text):
        return "_Any"
    return re.sub(r"[A-Za-z_]\w*", lambda word: KNOWN[word[0]], text)


def default_text(value: Any) -> str:
    return repr(value) if value is None or type(value) in (bool, int, str) else "..."


# ---------------------------------------------------------------------------------------------------------- signatures
def generated_parameters(name: str, op: Operator) -> Iterator[inspect.Parameter]:
    """The parameters of a generated function, as its own source states them, with the schema's types."""
    made = ast.parse(wrapper_source(name, op)).body[0]
    assert isinstance(made, ast.FunctionDef)
    values = {**default_names(op), "UNSET": ...}
    numbers_too = type(op.family).__name__ == "Pointwise"
    types = {a.name: argument_type(a, numbers_too and a.position > 1) for a in op.schema.arguments}
    if op.schema.arguments:
        types["input"] = types.get("self", "_Any")
    types["axis"], types["keepdims"] = types.get("dim", "_Any"), types.get("keepdim", "_Any")
    types["out"] = "_Tensor | _Sequence[_Tensor] | None" if len(op.schema.returns) > 1 else "_Tensor | None"

    def parameter(arg: ast.arg, kind: Any, default: ast.expr | None) -> inspect.Parameter:
        value: Any = inspect.Parameter.empty
        if isinstance(default, ast.Name):
            value = values[default.id]
        elif isinstance(default, ast.Constant):
            value = default.value
        text = types.get(arg.arg, types.get(arg.arg.rstrip("_"), "_Any"))
        if kind is inspect.Parameter.VAR_POSITIONAL:
            text = "_int | _Ints"
        return inspect.Parameter(arg.arg, kind, default=value, annotation=text)

    spec = made.args
    missing = [None] * (len(spec.args) - len(spec.defaults))
    for arg, default in zip(spec.args, [*missing, *spec.defaults], strict=True):
        yield parameter(arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default)
    if spec.vararg:
        yield parameter(spec.vararg, inspect.Parameter.VAR_POSITIONAL, None)
    for arg, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        yield parameter(arg, inspect.Parameter.KEYWORD_ONLY, default)


def written_parameters(function: Callable) -> Iterator[inspect.Parameter]:
    """The parameters of a hand-written function, with those of its annotations that the stub can spell."""
    for p in inspect.signature(function).parameters.values():
        known = BY_NAME.get(p.name, "_Any") if p.annotation is p.empty else annotation_text(p.annotation)
        yield p.replace(annotation=known)


def written_result(function: Callable, space: str, name: str) -> str:
    """The result of a hand-written function: as annotated, or a tensor where every operator of its name gives one."""
    stated = getattr(function, "__annotations__", {}).get("return", inspect.Parameter.empty)
    if stated is not inspect.Parameter.empty:
        return annotation_text(stated)
    behind = packets.get(name if space in ("torch", "Tensor") else f"{space}_{name}", {})
    kinds = {tuple(kind for kind, _ in op.schema.returns) for op in behind.values()}
    return "_Tensor" if kinds == {("Tensor",)} else "_Any"


def parameters_text(parameters: list[inspect.Parameter], method: bool) -> str:
    """A parameter list; a method's first parameter is `self`, by position alone."""
    parts, starred, defaults = [], False, False
    for i, p in enumerate(parameters):
        if method and i == 0 and p.kind is p.POSITIONAL_OR_KEYWORD:
            parts.append("self")
            continue
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        mark = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        default = "" if p.default is p.empty else f" = {default_text(p.default)}"
        defaults = defaults or bool(default)
        if defaults and not default and p.kind is p.POSITIONAL_OR_KEYWORD:
            default = " = ..."
        parts.append(f"{mark}{p.name}: {p.annotation}{default}")
    return ", ".join(parts)


def function_line(space: str, name: str, function: Callable, results: dict[str, list[str]]) -> str:
    """`def name(...) -> ...: ...` for one public function, or one method (`space` is then "Tensor")."""
    method = space == "Tensor"
    op: Operator | None = getattr(function, "operator", None)
    if op is not None:
        in_place = function.__name__.endswith("_") and not op.name.endswith("_") and op.inplace is not None
        target = op.inplace if in_place else op
        parameters = list(generated_parameters(function.__name__, target))
        returns = "_Self" if in_place and method else result_type(target, results)
    else:
        body = inspect.unwrap(function)
        parameters = list(written_parameters(body))
        returns = written_result(body, space, name)
    ignored = "  # type: ignore[override]" if method and name in ("__eq__", "__ne__") else ""
    return f"def {name}({parameters_text(parameters, method)}) -> {returns}: ...{ignored}"


# --------------------------------------------------------------------------------------------------------------- files
def result_classes(results: dict[str, list[str]]) -> list[str]:
    """The classes of named results: tuples whose fields the schemas name."""
    return ["\n    ".join([f"class {name}(_NamedTuple):", *fields]) + "\n" for name, fields in sorted(results.items())]


def tensor_attributes() -> Iterator[tuple[str, Any]]:
    """What is hung on `Tensor` from outside its class statement, by name."""
    source = ast.parse(Path(inspect.getfile(Tensor)).read_text())
    body = next(node.body for node in source.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")
    written = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    written |= {t.id for node in body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)}
    for name, value in sorted(vars(Tensor).items()):
        # Of the names in double underscores only methods: the rest is the interpreter's, and differs between versions.
        if name not in written and (isinstance(value, FunctionType) or not name.startswith("__")):
            yield name, value


def method_line(name: str, value: Any, results: dict[str, list[str]]) -> str:
    """One attribute of `Tensor` as a line of its class."""
    if isinstance(value, property):
        returns = getattr(value.fget, "__annotations__", {}).get("return", inspect.Parameter.empty)
        return f"{name}: {annotation_text(returns)}"
    if isinstance(value, FunctionType):
        return function_line("Tensor", name, value, results)
    slots = {"dtype": "_dtype", "device": "_device", "offset": "_int", "keys": "_int", "version": "list[_int]"}
    return f"{name}: {slots.get(name, '_Any')}"


def methods_stub(results: dict[str, list[str]]) -> str:
    """The base class of `Tensor` that only type checkers see."""
    lines = [f"    {method_line(name, value, results)}" for name, value in tensor_attributes()]
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
    results: dict[str, list[str]] = {}
    imports: list[str] = []
    lines: list[str] = []
    for name, value in sorted(vars(module).items()):
        if isinstance(value, FunctionType) and functions.get(name) is value:
            lines.append(function_line(space, name, value, results))
        elif name.startswith("_") or name == "annotations":
            continue
        elif (line := name_line(module.__name__, name, value)) is not None:
            (imports if line.startswith("from ") else lines).append(line)
    shared = f"from {PACKAGE}.core.methods import " + ", ".join(sorted(results)) if results else ""
    return "\n".join([BANNER + HEADER.format(core=f"{PACKAGE}.core"), shared, *imports, "", *lines, ""])


def fileless(module: ModuleType) -> Iterator[str]:
    """The namespaces under a module that were made of operators alone: `linalg`, `signal`, `signal.windows`."""
    for name, value in vars(module).items():
        if isinstance(value, ModuleType) and value.__name__ == f"{module.__name__}.{name}" and not source_of(value):
            yield value.__name__.partition(".")[2]
            yield from fileless(value)


def namespaces() -> Iterator[tuple[str, ModuleType]]:
    """Every module that needs a stub, by the name that operators know it by."""
    package = importlib.import_module(PACKAGE)  # by name: it stands above this layer, and declares all that is written
    yield "torch", package
    for space in sorted({*exports, *fileless(package)} - {"torch", "Tensor"}):
        home, _, _ = f"{PACKAGE}.{space}".rpartition(".")
        if home in sys.modules and f"{PACKAGE}.{space}" in sys.modules:
            yield space, sys.modules[f"{PACKAGE}.{space}"]
        else:
            print(f"{PACKAGE}.{space} is no module yet: what is exported to it has no stub", file=sys.stderr)


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
    results: dict[str, list[str]] = {}  # every class of named results is declared in one place, with the methods
    for space, functions in exports.items():
        for name, function in functions.items():
            if isinstance(function, FunctionType):
                function_line(space, name, function, results)
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
