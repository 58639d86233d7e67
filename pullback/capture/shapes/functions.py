"""The functions of the algebra that polynomials do not cover: division, `Max`, powers, floats, ...

What comes in: expressions and constants. What goes out: an expression, simplified where that holds for every value of the
symbols (division by a symbol assumes, as running it does, that it is not zero). What always holds: of constants alone, a function
gives what Python gives; a `Function`'s `compute` is both that Python function and what a graph calls.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from functools import reduce

from ...core import symbolic
from .expressions import (
    Expr,
    add,
    apply_node,
    divide_exactly,
    multiply,
    polynomial,
    remember,
    remove,
    subtract,
    terms_of,
)  # fmt: skip

POWER_LIMIT = 8  # whole powers up to here are products


class Function:
    """A function by name: how constants are computed, how a call simplifies, the kind of number it gives."""

    __slots__ = ("name", "compute", "simplify", "kind", "infix", "memo")

    def __init__(self, name: str, compute: Callable, kind: type, simplify: Callable | None = None, infix: str = ""):
        self.name, self.compute, self.kind, self.simplify, self.infix = name, compute, kind, simplify, infix
        self.memo: dict = {}

    def make(self, *args):
        """The value of the call: a constant, something simpler, or a node."""
        key = (args, tuple(map(type, args)))
        result = self.memo.get(key)
        return result if result is not None else remember(self.memo, key, self._make(args))

    __call__ = make

    def _make(self, args: tuple):
        if not any(isinstance(a, Expr) for a in args):
            return self.compute(*args)
        result = self.simplify(*args) if self.simplify is not None else None
        return result if result is not None else apply_node(self, args, self.kind)

    def __repr__(self) -> str:
        return self.name


def common_factor(p, q) -> tuple[int, tuple]:
    """(number, monomial) that divides every term of both."""
    rows = [*terms_of(p).items(), *terms_of(q).items()]
    monomial = rows[0][0]
    for other, _ in rows[1:]:
        if not monomial:
            break
        monomial = tuple(a for i, a in enumerate(monomial) if monomial[:i].count(a) < other.count(a))
    return math.gcd(*(c for _, c in rows)), monomial


def _without(p, number: int, monomial: tuple):
    return polynomial({remove(m, monomial): c // number for m, c in terms_of(p).items()})


def _split(p, q) -> tuple:
    """(a, r) with p == a*q + r, `a` from the terms of p that q's single term divides."""
    ((lead, c),) = terms_of(q).items()
    whole, rest = {}, {}
    for monomial, coefficient in terms_of(p).items():
        factor = remove(monomial, lead)
        if factor is not None and coefficient % c == 0:
            whole[factor] = coefficient // c
        else:
            rest[monomial] = coefficient
    return polynomial(whole), polynomial(rest)


def _simplify_floordiv(p, q):
    if q.__class__ is int and q == 0:
        raise ZeroDivisionError("division by zero")
    if p.__class__ is int and p == 0:
        return 0
    if q.__class__ is int and q == -1:
        return multiply(p, -1)
    exact = divide_exactly(p, q)
    if exact is not None:
        return exact
    if len(terms_of(q)) == 1:
        whole, rest = _split(p, q)
        if whole.__class__ is not int or whole:
            return add(whole, floordiv(rest, q))
    number, monomial = common_factor(p, q)
    if number > 1 or monomial:
        return floordiv(_without(p, number, monomial), _without(q, number, monomial))
    return _nested_floordiv(p, q)


def _nested_floordiv(p, q):
    """(x // a) // b is x // (a*b) for positive constants."""
    if q.__class__ is int and q > 0 and getattr(p, "function", None) is floordiv:
        inner = p.args[1]
        if inner.__class__ is int and inner > 0:
            return floordiv(p.args[0], inner * q)
    return None


def _simplify_mod(p, q):
    if q.__class__ is int and q == 0:
        raise ZeroDivisionError("integer modulo by zero")
    if q.__class__ is int and builtins.abs(q) == 1 or p.__class__ is int and p == 0:
        return 0
    if divide_exactly(p, q) is not None:
        return 0
    if len(terms_of(q)) == 1:
        whole, rest = _split(p, q)
        if whole.__class__ is not int or whole:
            return mod(rest, q)
    _, monomial = common_factor(p, q)
    if monomial:
        return multiply(mod(_without(p, 1, monomial), _without(q, 1, monomial)), polynomial({monomial: 1}))
    return None


def _simplify_extreme(function, pick):
    def simplify(*args):
        parts, constant = {}, None
        whole = _without_dominated(
            [a for a in args if isinstance(a, Expr)], pick
        )  # before extremes among them come apart
        for a in (*whole, *(a for a in args if not isinstance(a, Expr))):
            for one in a.args if getattr(a, "function", None) is function() else (a,):
                if isinstance(one, Expr):
                    parts[one] = None
                else:
                    constant = one if constant is None else pick(constant, one)
        kept = _without_dominated(parts, pick)
        if constant is None and len(kept) == 1:
            return kept[0]
        kept = sorted(kept, key=str)
        return apply_node(function(), (*(() if constant is None else (constant,)), *kept), int)

    return simplify


def _without_dominated(parts, pick) -> list:
    """Of expressions that differ by a constant, only the one that wins."""
    kept: list = []
    for e in parts:
        for i, k in enumerate(kept):
            if e.kind is int and k.kind is int:
                difference = subtract(e, k)
                if difference.__class__ is int:
                    kept[i] = e if pick(difference, 0) == difference else k
                    break
        else:
            kept.append(e)
    return kept


def _simplify_power(base, exponent):
    if exponent.__class__ is int:
        if exponent < 0:
            raise ValueError(f"a symbolic integer to the negative power {exponent} is no integer")
        if exponent <= POWER_LIMIT:
            return reduce(multiply, [base] * exponent, 1)
    if base.__class__ is int and base in (0, 1) and base == 1:
        return 1
    return None


def _simplify_float(value):
    return value if value.kind is float else None


def _simplify_whole(value):
    """Rounding: an integer made float, or an integer, is itself."""
    if value.kind is int:
        return value
    function = getattr(value, "function", None)
    if function is to_float:
        return value.args[0]
    if function is float_mul:  # a whole multiple of an integer
        factors = [
            _simplify_whole(a) if isinstance(a, Expr) else int(a) if a.is_integer() else None for a in value.args
        ]
        return multiply(*factors) if None not in factors else None
    return None


def _simplify_int_truediv(p, q):
    return to_float(p) if q.__class__ is int and q == 1 else None


def _simplify_choice(condition, then, otherwise):
    if not isinstance(condition, Expr):
        return then if condition else otherwise
    return then if then is otherwise else None


def _simplify_abs(value):
    return None


def _extreme(function, of_two, value_kinds=(int, float)):
    def compute(*args):
        return reduce(of_two, args)

    compute.__name__ = function
    return compute


floordiv = Function("floordiv", operator.floordiv, int, _simplify_floordiv)
mod = Function("Mod", operator.mod, int, _simplify_mod)
power = Function("PowByNatural", operator.pow, int, _simplify_power)
int_truediv = Function("IntTrueDiv", operator.truediv, float, _simplify_int_truediv)
to_float = Function("ToFloat", symbolic.sym_float, float, _simplify_float)
trunc = Function("TruncToInt", symbolic.sym_int, int, _simplify_whole)
floor = Function("FloorToInt", math.floor, int, _simplify_whole)
ceil = Function("CeilToInt", math.ceil, int, _simplify_whole)
round_to_int = Function("RoundToInt", builtins.round, int, _simplify_whole)
round_decimal = Function("RoundDecimal", builtins.round, float)
absolute = Function("Abs", operator.abs, int, _simplify_abs)
maximum = Function("Max", _extreme("sym_max", symbolic.sym_max), int)
minimum = Function("Min", _extreme("sym_min", symbolic.sym_min), int)
maximum.simplify = _simplify_extreme(lambda: maximum, builtins.max)
minimum.simplify = _simplify_extreme(lambda: minimum, builtins.min)
choice = Function("Piecewise", symbolic.sym_ite, int, _simplify_choice)
bitwise_and = Function("BitwiseFn_bitwise_and", operator.and_, int)
bitwise_or = Function("BitwiseFn_bitwise_or", operator.or_, int)
bitwise_xor = Function("BitwiseFn_bitwise_xor", operator.xor, int)
bool_to_int = Function("CastToInt", symbolic.sym_int, int)

float_add = Function("FloatAdd", operator.add, float, infix="+")
float_sub = Function("FloatSub", operator.sub, float, infix="-")
float_mul = Function("FloatMul", operator.mul, float, infix="*")
float_truediv = Function("FloatTrueDiv", operator.truediv, float)
float_pow = Function("FloatPow", operator.pow, float)
float_mod = Function("FloatMod", operator.mod, float)
float_neg = Function("FloatNeg", operator.neg, float)
float_abs = Function("FloatAbs", operator.abs, float)
float_max = Function("FloatMax", _extreme("sym_max", symbolic.sym_max), float)
float_min = Function("FloatMin", _extreme("sym_min", symbolic.sym_min), float)
float_choice = Function("FloatPiecewise", symbolic.sym_ite, float, _simplify_choice)

# sqrt, cos, ...: opaque functions of one float, computed by the function of that name beside `sym_sqrt`.
UNARY = {
    name: Function(f"OpaqueUnaryFn_{name}", getattr(symbolic, f"sym_{name}"), float)
    for name in ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "log2")
}
