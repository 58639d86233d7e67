"""`pullback run --compile`: a script whose own functions are compiled, without a change to it.

In: a script's text. Out: code of the same program in which every function and method that it defines at its top level has
`compile` as its innermost decorator. Functions inside those are captured with them. Generators, coroutines, special
methods, and static methods (those of autograd functions, which the engine calls) stay as they are.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable

NAME = "__pullback_compile__"  # what the script's namespace calls the decorator


def compiled_code(source: str, file: str) -> types.CodeType:
    """The code of a script with its functions compiled; line numbers are the script's."""
    module = ast.parse(source, file)
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            decorate(node)
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.decorator_list:
                    decorate(member)
    return compile(ast.fix_missing_locations(module), file, "exec")


def compiles_itself(source: str, file: str) -> bool:
    """Whether a script says what of it is to be compiled: it has `torch.compile`, or calls a `compile()` of a module's."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "compile" and not _is_named(node.value, "re")
        or isinstance(node, ast.ImportFrom) and node.module == "torch" and any(a.name == "compile" for a in node.names)
        for node in ast.walk(ast.parse(source, file))
    )  # fmt: skip


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def decorate(function: ast.FunctionDef) -> None:
    """Add the decorator, where it means something."""
    if function.name.startswith("__") or yields(function):
        return
    decorator = ast.copy_location(ast.Name(NAME, ast.Load()), function)
    function.decorator_list.append(decorator)


def yields(node: ast.AST) -> bool:
    """Whether a function is a generator: a `yield` of its own, not of a function inside."""
    inner = (child for child in ast.iter_child_nodes(node) if not isinstance(child, (ast.FunctionDef, ast.Lambda)))
    return isinstance(node, (ast.Yield, ast.YieldFrom)) or any(yields(child) for child in inner)


def run_compiled(path: str, decorator: Callable | None = None, *, as_it_is: bool = False) -> None:
    """Run a script as `__main__` with its functions compiled (or given to another decorator), or as it is."""
    import sys

    from ..capture.front.compile import compile as compile_function

    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec") if as_it_is else compiled_code(file.read(), path)
    main = types.ModuleType("__main__")
    main.__dict__.update({"__file__": path, "__builtins__": __builtins__, NAME: decorator or compile_function})
    before = sys.modules.get("__main__")
    sys.modules["__main__"] = main
    try:
        exec(code, main.__dict__)
    finally:
        if before is not None:
            sys.modules["__main__"] = before
