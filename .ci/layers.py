#!/usr/bin/env python3
"""What layers ask of one another, read off the source: imports (deferred ones too) and the seams of `core/layers.py`.

In: the source of the package, and the contract in `pyproject.toml`, which says the order of the layers. Out: the figures
of the import graph, exit status 1 where an import points upward; with `--write`, the tables of seams in
`docs/architecture.md`, which a test holds to the declarations.

    .ci/layers.py            figures: deferred imports, upward ones, cycles
    .ci/layers.py --write    the tables in the docs made again
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "pullback"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- {}: written by .ci/layers.py --write -->", "<!-- end of {} -->"


# ---- imports
class Import(NamedTuple):
    """One module that another imports."""

    source: str
    target: str
    line: int
    deferred: bool  # inside a function
    for_types: bool  # under `if TYPE_CHECKING`


def module_files() -> dict[str, Path]:
    """Every module of the package, by its dotted name."""
    found = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


class _Reader(ast.NodeVisitor):
    """Collects the imports of one module; strings in `import_module("...")` count as deferred imports."""

    def __init__(self, module: str, path: Path, modules: Iterable[str]):
        self.module, self.modules = module, modules
        self.home = module if path.name == "__init__.py" else module.rpartition(".")[0]
        self.functions = self.types = 0
        self.found: list[Import] = []

    def add(self, line: int, name: str, deferred: bool = False) -> None:
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        if name:
            self.found.append(Import(self.module, name, line, deferred or self.functions > 0, self.types > 0))

    def visit_FunctionDef(self, node) -> None:
        self.functions += 1
        self.generic_visit(node)
        self.functions -= 1

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_If(self, node: ast.If) -> None:
        types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        self.types += types
        for child in node.body:
            self.visit(child)
        self.types -= types
        for child in (node.test, *node.orelse):
            self.visit(child)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.add(node.lineno, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            home = self.home.split(".")
            base = ".".join((*home[: len(home) - node.level + 1], *filter(None, [node.module])))
        for alias in node.names:
            self.add(node.lineno, f"{base}.{alias.name}")

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name == "import_module" and node.args:
            text = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
            if isinstance(text, str):
                self.add(node.lineno, text, deferred=True)
        self.generic_visit(node)


def imports() -> list[Import]:
    """All imports of modules of the package by others."""
    files, found = module_files(), []
    for module, path in files.items():
        reader = _Reader(module, path, files)
        reader.visit(ast.parse(path.read_text()))
        found += reader.found
    return found


# ---- layers
def contract() -> list[str]:
    """The names of the layers, highest first. The package itself stands below those that use it as any program does."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    names = [f"{PACKAGE}.{layer.strip('()')}" for layer in said]
    at = names.index(f"{PACKAGE}.distributions") + 1
    return [*names[:at], PACKAGE, *names[at:]]


def layer_of(module: str) -> str:
    """The layer that a module is in: the first two parts of its name."""
    return ".".join(module.split(".")[:2])


def upward(found: Iterable[Import]) -> list[Import]:
    """Imports of a module in a higher layer."""
    order = contract()
    return [i for i in found if order.index(layer_of(i.target)) < order.index(layer_of(i.source))]


def cycles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    """The groups of modules that all reach one another, largest first (strongly connected components)."""
    graph: dict[str, set[str]] = defaultdict(set)
    for a, b in edges:
        if a != b:
            graph[a].add(b)
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def enter(v: str) -> None:
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in graph.get(v, ()):
            if w not in number:
                enter(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], number[w])
        if low[v] == number[v]:
            at = stack.index(v)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                groups.append(sorted(group))

    for v in list(graph):
        if v not in number:
            enter(v)
    return sorted(groups, key=len, reverse=True)


# ---- seams
def uses() -> Iterator[tuple[str, str, bool]]:
    """(module, name, whether it is set) for each `above.name` in the source."""
    for module, path in module_files().items():
        text = path.read_text()
        if "layers import above" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "above":
                    yield module, node.attr, isinstance(node.ctx, ast.Store)


def hung(classes: Iterable[str]) -> Iterator[str]:
    """Assignments like `Tensor.backward = ...` outside the module that defines the class."""
    for module, path in module_files().items():
        tree = ast.parse(path.read_text())
        own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
                if node.value.id in classes and node.value.id not in own:
                    yield f"{module}:{node.lineno} sets {node.value.id}.{node.attr}"


def seam_table() -> str:
    """The seams as a table of the docs."""
    from pullback.core.layers import declarations

    rows = ["| `above.` | asked by | set by | what it gives and keeps true | until then |", "| - | - | - | - | - |"]
    for d in declarations():
        asked = ", ".join(f"`{name}`" for name in d.asked_by)
        rows.append(f"| `{d.name}` | {asked} | `{d.set_by}` | {d.promise} | {d.otherwise} |")
    return "\n".join(rows)


def extension_table() -> str:
    """The members that layers add to classes of lower ones, as a table of the docs."""
    from pullback.core.layers import EXTENSIONS

    rows = ["| class | added by | members |", "| - | - | - |"]
    for name, by_module in EXTENSIONS.items():
        for module, members in by_module.items():
            rows.append(f"| `{name}` | `{module}` | {' '.join(f'`{m}`' for m in members.split())} |")
    return "\n".join(rows)


TABLES = {"seams": seam_table, "extensions": extension_table}


def with_tables(page: str) -> str:
    """The page with its tables made again."""
    for name, table in TABLES.items():
        begin, end = BEGIN.format(name), END.format(name)
        head, rest = page.split(begin)
        page = head + begin + "\n" + table() + "\n" + end + rest.split(end)[1]
    return page


def main() -> int:
    if "--write" in sys.argv:
        sys.path.insert(0, str(ROOT))
        PAGE.write_text(with_tables(PAGE.read_text()))
        return 0
    found = imports()
    real = [i for i in found if not i.for_types]
    up = upward(real)
    groups = cycles((i.source, i.target) for i in real)
    print(f"{len({(i.source, i.line) for i in real if i.deferred})} deferred imports, {len(up)} upward")
    for i in up:
        print(f"  {i.source}:{i.line} imports {i.target}")
    print(f"{len(groups)} cycles, deferred imports counted; the longest {len(groups[0]) if groups else 0} modules")
    for group in groups:
        print(f"  {len(group)}: {' '.join(group)}")
    return 1 if up else 0


if __name__ == "__main__":
    sys.exit(main())
