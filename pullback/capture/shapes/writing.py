"""Expressions as text: as PyTorch prints them, and as Python over the names of sources.

What always holds: terms come in one order (lexicographic in the symbols' names, highest powers first), whatever the order in
which the expression was made; the Python text evaluates to the expression's value.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from .expressions import Apply, Expr, Sum, Symbol

_ATOM, _POWER, _PRODUCT, _SUM, _LOW = range(5, 0, -1)  # how tightly the outermost operator holds


def ordered_terms(total: Sum) -> list[tuple[tuple, int]]:
    """(monomial, coefficient) pairs in the order of printing."""
    names = {a: (not isinstance(a, Symbol), str(a)) for a in total.parts()}
    generators = sorted(names, key=names.__getitem__)
    rows = sorted(total.terms.items(), key=lambda t: [-t[0].count(g) for g in generators])
    if len(rows) == 2 and not rows[1][0] and rows[1][1] > 0 and rows[0][1] < 0:
        rows.reverse()  # 1 - s0
    return [(tuple(sorted(m, key=names.__getitem__)), c) for m, c in rows]


class _Writer:
    """Text with how tightly it holds together; `python` chooses between the two styles."""

    def __init__(self, name: Callable | None):
        self.name, self.python = name or (lambda s: s.name), name is not None

    def write(self, e) -> str:
        return self._write(e)[0]

    def within(self, e, level: int) -> str:
        text, holds = self._write(e)
        return text if holds >= level else f"({text})"

    def _write(self, e) -> tuple[str, int]:
        if not isinstance(e, Expr):
            return (repr(e) if self.python else str(e)), (_ATOM if not isinstance(e, (int, float)) or e >= 0 else _SUM)
        if isinstance(e, Symbol):
            return self.name(e), _ATOM
        if isinstance(e, Sum):
            return self._sum(e)
        if isinstance(e, Apply):
            return self._call(e)
        return self._question(e)

    def _sum(self, e: Sum) -> tuple[str, int]:
        rows = ordered_terms(e)
        text = ""
        for monomial, c in rows:
            sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
            text += sign + self._term(monomial, abs(c))
        single = len(rows) == 1
        return text, (_SUM if not single or rows[0][1] < 0 else _POWER if len(rows[0][0]) > 1 and len(set(rows[0][0])) == 1
                      and rows[0][1] == 1 else _PRODUCT)  # fmt: skip

    def _term(self, monomial: tuple, c: int) -> str:
        factors = [str(c)] if c != 1 or not monomial else []
        for atom, times in groupby(monomial):
            n = len(list(times))
            base = self.within(atom, _ATOM if n > 1 else _POWER)
            factors.append(f"{base}**{n}" if n > 1 else base)
        return "*".join(factors)

    def _call(self, e: Apply) -> tuple[str, int]:
        f, args = e.function, e.args
        if f.name == "floordiv":
            slash = " // " if self.python else "//"
            # PyTorch counts this as holding loosely, though it already stands in parentheses.
            return f"({self.within(args[0], _ATOM)}{slash}{self.within(args[1], _ATOM)})", (
                _ATOM if self.python else _LOW
            )
        if f.infix:
            level = _PRODUCT if f.infix == "*" else _SUM
            space = "" if f.infix == "*" else " "
            left, right = args if isinstance(args[0], Expr) or f.infix != "+" else args[::-1]
            if f.infix == "*" and not isinstance(right, Expr):
                left, right = right, left
            right_level = _PRODUCT if f.infix == "-" else level
            return f"{self.within(left, level)}{space}{f.infix}{space}{self.within(right, right_level)}", level
        if self.python:
            return self._python_call(e)
        if f.name.endswith("Piecewise"):
            return f"Piecewise(({self.write(args[1])}, {self.write(args[0])}), ({self.write(args[2])}, True))", _ATOM
        name = f.name.removeprefix("Float") if f.name in ("FloatMax", "FloatMin", "FloatAbs") else f.name
        if f.name == "FloatNeg":
            return f"-{self.within(args[0], _ATOM)}", _SUM
        return f"{name}({', '.join(map(self.write, args))})", _ATOM

    def _python_call(self, e: Apply) -> tuple[str, int]:
        name, parts = e.function.name, [self.within(a, _ATOM) for a in e.args]
        binary = _PYTHON_BINARY.get(name)
        if binary:
            return f"({parts[0]} {binary} {parts[1]})", _ATOM
        if name.endswith("Piecewise"):
            return f"({parts[1]} if {parts[0]} else {parts[2]})", _ATOM
        if name == "FloatNeg":
            return f"(-{parts[0]})", _ATOM
        called = _PYTHON_CALLS.get(name) or f"math.{name.removeprefix('OpaqueUnaryFn_')}"
        return f"{called}({', '.join(map(self.write, e.args))})", _ATOM

    def _question(self, e) -> tuple[str, int]:
        kind = type(e).__name__
        if kind == "Negation":
            return (f"not {self.within(e.arg, _ATOM)}" if self.python else f"~{self.within(e.arg, _ATOM)}"), _LOW
        if kind == "Logic":
            joint = f" {e.operator} " if self.python else (" & " if e.operator == "and" else " | ")
            level = _LOW + 1 if self.python else _ATOM
            return joint.join(self.within(a, level) for a in e.args), _LOW
        if self.python:
            return f"{self._side(e.lhs)} {e.operator} {self._side(e.rhs)}", _LOW
        if e.operator in ("==", "!="):
            return f"{'Eq' if e.operator == '==' else 'Ne'}({self.write(e.lhs)}, {self.write(e.rhs)})", _ATOM
        return f"{self.write(e.lhs)} {e.operator} {self.write(e.rhs)}", _LOW

    def _side(self, e) -> str:
        return self.within(e, _ATOM) if isinstance(e, Expr) else repr(e)


_PYTHON_BINARY = {
    "Mod": "%", "PowByNatural": "**", "IntTrueDiv": "/", "FloatTrueDiv": "/", "FloatPow": "**", "FloatMod": "%",
    "BitwiseFn_bitwise_and": "&", "BitwiseFn_bitwise_or": "|", "BitwiseFn_bitwise_xor": "^",
}  # fmt: skip
_PYTHON_CALLS = {
    "Max": "max", "Min": "min", "FloatMax": "max", "FloatMin": "min", "ToFloat": "float", "TruncToInt": "math.trunc",
    "FloorToInt": "math.floor", "CeilToInt": "math.ceil", "RoundToInt": "round", "RoundDecimal": "round", "Abs": "abs",
    "FloatAbs": "abs", "CastToInt": "int",
}  # fmt: skip


_plain = _Writer(None)


def write(e) -> str:
    """As PyTorch prints it: `2*s0 + 1`, `(s0//2)`, `Mod(s0, 2)`, `Eq(s0, s1)`."""
    return _plain.write(e)


def write_python(e, name: Callable[[Symbol], str]) -> str:
    """Python source with `name(symbol)` in each symbol's place."""
    return _Writer(name).write(e)
