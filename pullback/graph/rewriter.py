"""Tracing of functions whose source is changed first: asserts and annotated assignments become calls that a trace records.

In: a function or module whose source is at hand. Out: its graph, in which `assert` is `torch._assert` and `x: T = value` gives the
node of `value` the type `T`. What always holds: the traced module shares parameters and submodules with the one that was given.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Iterable
from types import CellType, CodeType, FunctionType
from typing import Any

from ..nn.module import Module
from .annotate import annotate
from .assertions import _assert
from .graph import Graph
from .tracer import Tracer

_ASSERT, _ANNOTATE = "__recorded_assert", "__recorded_annotation"  # no program has these names


class AST_Rewriter(ast.NodeTransformer):
    """Makes calls of the statements that leave nothing in a trace."""

    def rewrite(self, fn: Callable) -> FunctionType:
        """The same function, of changed source."""
        plain = inspect.unwrap(getattr(fn, "__func__", fn))
        tree = _parsed(inspect.getsource(plain))
        cells = dict(zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True))
        cells |= {
            _ASSERT: CellType(_assert),
            _ANNOTATE: CellType(annotate),
        }  # its globals stay its own: traces patch them
        changed = ast.fix_missing_locations(_within_cells(self.visit(tree), cells))
        module = compile(changed, plain.__code__.co_filename, "exec", flags=plain.__code__.co_flags & _FUTURE)
        code = _code_named(module, plain.__name__)
        result = FunctionType(
            code, plain.__globals__, plain.__name__, plain.__defaults__, tuple(cells[name] for name in code.co_freevars)
        )
        result.__kwdefaults__, result.__annotations__ = plain.__kwdefaults__, plain.__annotations__
        return result

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        words = node.msg if node.msg is not None else ast.Constant("")
        return ast.copy_location(ast.Expr(_call(_ASSERT, node.test, words)), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return node
        value = _call(_ANNOTATE, node.value, node.annotation)
        return ast.copy_location(ast.Assign([node.target], value), node)


_FUTURE = __import__("__future__").annotations.compiler_flag


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


def _parsed(source: str) -> ast.Module:
    """The tree of one definition, without its decorators. An indented one is not moved: lines of its strings would move too."""
    indented = source[:1].isspace()
    tree = ast.parse(f"if True:\n{source}" if indented else source)
    body = tree.body[0].body if indented else tree.body  # type: ignore[attr-defined]
    body[0].decorator_list = []  # type: ignore[union-attr]
    return ast.Module(body, [])


def _within_cells(tree: ast.Module, free: Iterable[str]) -> ast.Module:
    """The definition inside a function that has the variables it closes over, so that they are free in it again."""
    outer = ast.parse(f"def around({', '.join(free)}):\n    pass").body[0]
    outer.body = tree.body  # type: ignore[attr-defined]
    return ast.Module([outer], [])


def _code_named(code: CodeType, name: str) -> CodeType:
    """The code of the function of this name, which is inside another."""
    inside = [c for c in code.co_consts if isinstance(c, CodeType)]
    return next((c for c in inside if c.co_name == name), None) or _code_named(inside[0], name)


class RewritingTracer(Tracer):
    """A tracer that records the asserts and the annotated assignments of what it traces."""

    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        return super().trace(rewritten(root), concrete_args)


def rewritten(root: Module | Callable[..., Any]) -> Any:
    """A function, or a module and all modules in it, of changed source."""
    if not isinstance(root, Module):
        return AST_Rewriter().rewrite(root)
    changed = copy.copy(root)
    changed._modules = {name: child and rewritten(child) for name, child in root._modules.items()}
    if not Tracer().is_leaf_module(root, ""):
        kind = type(root)
        forward = {"forward": AST_Rewriter().rewrite(kind.forward), "__module__": kind.__module__}
        changed.__class__ = type(kind.__name__, (kind,), forward)
    return changed


__all__ = ["AST_Rewriter", "RewritingTracer"]
