"""Questions about expressions: comparisons and their `and`, `or`, `not`.

What comes in: expressions and constants. What goes out: `True`, `False`, or an interned question. What always holds: a question
keeps the two sides as they were asked, for people to read; `negate` of a question is a question, never a wrapped one.
"""

from __future__ import annotations

import operator

from ...core import symbolic
from .expressions import Expr, build, intern, remember, subtract, symbols_of, typed

OPERATORS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class Relation(Expr):
    """`lhs operator rhs`, of two numbers."""

    __slots__ = ("operator", "lhs", "rhs")
    kind = bool

    @property
    def args(self) -> tuple:
        return self.lhs, self.rhs

    def build(self, leaf, call):
        return call(OPERATORS[self.operator], build(self.lhs, leaf, call), build(self.rhs, leaf, call))

    def parts(self):
        return iter((self.lhs, self.rhs))

    def remake(self, change):
        return compare(self.operator, change(self.lhs), change(self.rhs))


class Logic(Expr):
    """`and` or `or` of questions."""

    __slots__ = ("operator", "args")
    kind = bool

    def build(self, leaf, call):
        values = [build(a, leaf, call) for a in self.args]
        total = values[0]
        for value in values[1:]:
            total = call(operator.and_ if self.operator == "and" else operator.or_, total, value)
        return total

    def parts(self):
        return iter(self.args)

    def remake(self, change):
        return logic(self.operator, *map(change, self.args))


class Negation(Expr):
    """`not` of a question that is a bare symbol."""

    __slots__ = ("arg",)
    kind = bool

    def build(self, leaf, call):
        return call(symbolic.sym_not, build(self.arg, leaf, call))

    def parts(self):
        return iter((self.arg,))

    def remake(self, change):
        return negate(change(self.arg))


comparisons: dict = {}


def compare(op: str, a, b):
    """The answer where it is the same for all values of the symbols by algebra alone, else the question."""
    key = (op, a, b) if a.__class__ is not float and b.__class__ is not float else (op, typed(a), typed(b))
    result = comparisons.get(key)
    return result if result is not None else remember(comparisons, key, _compare(op, a, b))


def _compare(op: str, a, b):
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return OPERATORS[op](a, b)
    if a is b:
        return op in ("==", "<=", ">=")
    if _whole(a) and _whole(b):
        difference = subtract(a, b)
        if difference.__class__ is int:
            return OPERATORS[op](difference, 0)

    def make() -> Relation:
        node = Relation(symbols_of(a, b))
        node.operator, node.lhs, node.rhs = op, a, b
        return node

    return intern((op, typed(a), typed(b)), make)


def _whole(value) -> bool:
    return value.__class__ is int or isinstance(value, Expr) and value.kind is int


def logic(op: str, *args):
    """`and` / `or` of questions and answers."""
    stop = op == "or"  # the answer that decides alone
    parts: dict = {}
    for a in args:
        for one in a.args if isinstance(a, Logic) and a.operator == op else (a,):
            if isinstance(one, Expr):
                parts[one] = None
            elif bool(one) is stop:
                return stop
    if any(negate(p) in parts for p in parts):
        return stop
    if len(parts) < 2:
        return next(iter(parts), not stop)

    def make() -> Logic:
        node = Logic(symbols_of(*parts))
        node.operator, node.args = op, tuple(parts)
        return node

    return intern((op, frozenset(parts)), make)


def negate(question):
    """The opposite answer or question."""
    if isinstance(question, Relation):
        return compare(OPPOSITE[question.operator], question.lhs, question.rhs)
    if isinstance(question, Logic):
        return logic("and" if question.operator == "or" else "or", *map(negate, question.args))
    if isinstance(question, Negation):
        return question.arg
    if not isinstance(question, Expr):
        return not question

    def make() -> Negation:
        node = Negation(question.symbols)
        node.arg = question
        return node

    return intern(("not", question), make)


def truth(value) -> Expr | bool:
    """A number as a question: whether it is not zero."""
    if isinstance(value, Expr) and value.kind is bool:
        return value
    return compare("!=", value, 0)
