"""`pullback scan`: which names of torch a program or an installed package uses, and which of them pullback lacks.

In: files, folders, or names of installed packages. Out: a table of the names that are not here, with where they are first
used; exit status 1 if there are any. Sources are read, never run: a name counts where the text reaches it through an
import of torch (`torch.nn.Foo`, `F.bar` after `import torch.nn.functional as F`, `from torch.x import y`). Names in the body
of `try: ... except ImportError` or below `hasattr(torch, ...)` are the program's own business and are listed apart.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["missing_names", "scan"]

ROOTS = ("torch", "functorch")
_FORGIVING = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "RuntimeError"}


@dataclass
class Use:
    """One name of torch, as some sources use it."""

    name: str
    places: list[str] = field(default_factory=list)
    guarded: bool = True  # only where the program expects that it may be absent


class _Reader(ast.NodeVisitor):
    """Collects the dotted names of torch that one file uses."""

    def __init__(self, place: str, uses: dict[str, Use]):
        self.place, self.uses = place, uses
        self.bound: dict[str, str] = {}  # what a name of the file stands for
        self.forgiven = 0
        self.handling = 0  # how many handlers of errors the text is in

    def bind(self, name: str, meaning: str) -> None:
        """A name that a handler binds a second time keeps its first meaning: the handler is for where that is absent."""
        if not self.handling or name not in self.bound:
            self.bound[name] = meaning

    def note(self, name: str, line: int) -> None:
        use = self.uses.setdefault(name, Use(name))
        use.places.append(f"{self.place}:{line}")
        use.guarded = use.guarded and self.forgiven > 0

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] in ROOTS:
                self.note(alias.name, node.lineno)
                name = alias.asname or alias.name.partition(".")[0]
                self.bind(name, alias.name if alias.asname else name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or not node.module or node.module.partition(".")[0] not in ROOTS:
            return
        for alias in node.names:
            if alias.name == "*":
                self.note(node.module, node.lineno)
                continue
            self.note(f"{node.module}.{alias.name}", node.lineno)
            self.bind(alias.asname or alias.name, f"{node.module}.{alias.name}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts: list[str] = []
        at: ast.expr = node
        while isinstance(at, ast.Attribute):
            parts.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name) and at.id in self.bound:
            if isinstance(node.ctx, ast.Load):
                self.note(".".join([self.bound[at.id], *reversed(parts)]), node.lineno)
        else:
            self.visit(at)

    def visit_Try(self, node: ast.Try) -> None:
        named = {
            n.id for h in node.handlers for n in ast.walk(h.type or ast.Name("Exception")) if isinstance(n, ast.Name)
        }
        self._visit_all(node.body, forgiving=bool(named & _FORGIVING))
        self.handling += 1
        self._visit_all(node.handlers, forgiving=bool(named & _FORGIVING))
        self.handling -= 1
        for part in (node.orelse, node.finalbody):
            self._visit_all(part, forgiving=bool(named & _FORGIVING))

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        asks = any(isinstance(n, ast.Name) and n.id in ("hasattr", "TYPE_CHECKING") for n in ast.walk(node.test))
        text = ast.unparse(node.test)
        asks = asks or "version" in text or "is_available" in text or "available" in text.lower()
        self._visit_all(node.body, forgiving=asks)
        self._visit_all(node.orelse, forgiving=asks)

    def _visit_all(self, nodes, forgiving: bool) -> None:
        self.forgiven += forgiving
        for child in nodes:
            self.visit(child)
        self.forgiven -= forgiving


def _sources(target: str) -> list[Path]:
    """The Python files of a path, or of an installed package."""
    path = Path(target)
    if path.is_file():
        return [path]
    if not path.is_dir():
        found = importlib.util.find_spec(target)
        if found is None or found.origin is None:
            raise FileNotFoundError(f"{target!r} is neither a file, a folder nor an installed package")
        path = Path(found.origin).parent if found.submodule_search_locations else Path(found.origin)
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def _exists(name: str, known: dict[str, object]) -> bool:
    """Whether a dotted name of torch leads to something: attributes are looked up, modules are imported."""
    parts = name.split(".")
    value = _module(parts[0], known)
    for i, part in enumerate(parts[1:], 2):
        if not isinstance(value, (types.ModuleType, type)):
            return value is not None  # an attribute of an object: its class decides when it runs
        missing = object()
        found = getattr(value, part, missing)
        if found is missing and isinstance(value, types.ModuleType):
            found = _module(".".join(parts[:i]), known) or missing
        if found is missing:
            return False
        value = found
    return True


def _module(name: str, known: dict[str, object]) -> object:
    if name not in known:
        try:
            known[name] = importlib.import_module(name)
        except Exception:  # a module that cannot be imported here, for whatever reason, is one that is not here
            known[name] = None
    return known[name]


def _uses(targets: list[str]) -> dict[str, Use]:
    uses: dict[str, Use] = {}
    for target in targets:
        for path in _sources(target):
            try:
                tree = ast.parse(path.read_bytes())
            except (SyntaxError, ValueError) as error:
                print(f"not read: {path} ({error})", file=sys.stderr)
                continue
            _Reader(str(path), uses).visit(tree)
    return uses


def missing_names(targets: list[str]) -> Iterator[Use]:
    """The names of torch that the targets use and pullback lacks; the shortest missing name stands for all below it."""
    from ..compat.torch import install

    install()
    known: dict[str, object] = {}
    reported: set[str] = set()
    for name, use in sorted(_uses(targets).items()):
        if any(name.startswith(f"{short}.") for short in reported):
            continue
        try:
            there = _exists(name, known)
        except Exception:
            there = False
        if not there:
            reported.add(name)
            yield use


def scan(targets: list[str], everything: bool = False) -> int:
    """Print what is missing; names that the sources themselves allow to be absent only with `everything`."""
    try:
        found = list(missing_names(targets))
    except FileNotFoundError as error:
        print(f"pullback scan: {error}", file=sys.stderr)
        return 2
    needed = [use for use in found if not use.guarded]
    optional = [use for use in found if use.guarded]
    for use in sorted(needed, key=lambda use: -len(use.places)) + (optional if everything else []):
        mark = " (may be absent)" if use.guarded else ""
        print(f"{use.name}{mark}  {len(use.places)}x  {use.places[0]}")
    print(f"{len(needed)} names of torch are used and missing here; {len(optional)} more may be absent.")
    return 1 if needed else 0
