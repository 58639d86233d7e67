"""`SymNode`: what stands behind a symbolic number.

What comes in: an expression and a `ShapeEnv`. What goes out: the expression as it is now known (after replacements), its hint, and
definite values with guards. What always holds: `expr` never shows a symbol that the environment has replaced.
"""

from __future__ import annotations

from ...core.layers import above
from .expressions import Expr


class SymNode:
    """Expression, environment; `current` is the expression as of the environment's `version`."""

    __slots__ = ("original", "shape_env", "current", "version", "fx_node")
    constant = None

    def __init__(self, expr, shape_env, pytype=None, hint=None, constant=None, fx_node=None):
        self.original, self.shape_env, self.fx_node = expr, shape_env, fx_node
        self.current, self.version = expr, -1
        if hint is not None and isinstance(expr, Expr) and expr.is_symbol:
            shape_env.hints.setdefault(expr, hint)

    @property
    def expr(self):
        """The expression with everything replaced that is known by now."""
        env = self.shape_env
        if self.version != env.version:
            self.current, self.version = env.replace(self.current), env.version
        return self.current

    _expr = property(lambda self: self.original)

    @property
    def pytype(self) -> type:
        return self.original.kind if isinstance(self.original, Expr) else type(self.original)

    @property
    def hint(self):
        """The value in the example that is being traced; None where there is none (data-dependent sizes)."""
        return self.shape_env.hint(self.expr)

    @property
    def has_hint(self):
        return _Called(self.hint is not None)

    def require_hint(self):
        hint = self.hint
        if hint is None:
            raise self.shape_env.data_dependent_error(self.expr)
        return hint

    def wrap(self, expr):
        """The number of another expression of this environment."""
        return above.wrap_symbol(self, expr)

    def guard(self):
        """A definite value, recorded as a guard."""
        return self.shape_env.evaluate_expr(self.expr)

    def guard_int(self, file: str = "", line: int = 0) -> int:
        return int(self.guard())

    def guard_float(self, file: str = "", line: int = 0) -> float:
        return float(self.guard())

    def guard_bool(self, file: str = "", line: int = 0) -> bool:
        return bool(self.guard())

    int_ = guard
    bool_ = guard

    def expect_true(self, file: str = "", line: int = 0) -> bool:
        return self.shape_env.expect_true(self.expr)

    def guard_size_oblivious(self, file: str = "", line: int = 0) -> bool:
        return self.shape_env.evaluate_expr(self.expr, size_oblivious=True)

    def guard_or_false(self, file: str = "", line: int = 0) -> bool:
        return self.shape_env.evaluate_expr(self.expr, fallback_value=False)

    def guard_or_true(self, file: str = "", line: int = 0) -> bool:
        return self.shape_env.evaluate_expr(self.expr, fallback_value=True)

    def statically_known_true(self, file: str = "", line: int = 0) -> bool:
        return self.shape_env.statically(self.expr) is True

    def is_int(self) -> bool:
        return self.pytype is int

    def is_float(self) -> bool:
        return self.pytype is float

    def is_bool(self) -> bool:
        return self.pytype is bool

    def is_symbolic(self) -> bool:
        return True

    def is_constant(self) -> bool:
        return False

    def is_nested_int(self) -> bool:
        return False

    def nested_int(self) -> None:
        return None

    def _maybe(self, kind: type):
        expr = self.expr
        return None if isinstance(expr, Expr) else kind(expr)

    def maybe_as_int(self) -> int | None:
        """The value where it is known for certain, without a guard."""
        return self._maybe(int)

    def maybe_as_float(self) -> float | None:
        return self._maybe(float)

    def maybe_as_bool(self) -> bool | None:
        return self._maybe(bool)

    def clone(self) -> SymNode:
        return self

    def with_shape_env(self, shape_env) -> SymNode:
        return SymNode(self.original, shape_env)

    def str(self) -> str:
        return repr(self.expr)

    def _graph_repr(self) -> str:
        return repr(self.expr)

    def __repr__(self) -> str:
        return repr(self.expr)


class _Called:
    """A truth that may also be called: PyTorch has had `has_hint` as a method and programs test it either way."""

    __slots__ = ("value",)

    def __init__(self, value: bool):
        self.value = value

    def __bool__(self) -> bool:
        return self.value

    __call__ = __bool__
