"""`ShapeEnv`: the symbols of one trace, what is known of them, and the guards under which the trace holds.

What comes in: sizes with their sources (`create_symbol`), and questions (`evaluate_expr`, `decide`). What goes out: answers, and
`guards`, the questions that were answered by the example. What always holds: for any sizes that satisfy `guards`, every question
asked so far has the answer that was given; a question that follows from earlier ones records nothing.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import NamedTuple

from ...core.logs import logger
from . import check
from .config import config
from .contexts import DimDynamic
from .errors import ConstraintViolationError, GuardOnDataDependentSymNode, data_dependent
from .expressions import Expr, Symbol, evaluate, free_symbols, substitute
from .facts import INFINITE, UNBOUNDED, Contradiction, Facts, solve, tidy
from .locations import Location, asked_within, user_location
from .numbers import wrap
from .relations import Logic, Relation, compare, negate
from .symbols import SymbolMaker


class ShapeGuard(NamedTuple):
    """A question that held for the example, and whose line asked it."""

    expr: Expr
    sloc: Location | None
    size_oblivious: bool = False

    @property
    def reason(self) -> str:
        return f"{self.sloc.line}  # {self.sloc}" if self.sloc is not None else "unknown line"


class RuntimeAssert(NamedTuple):
    """A question about data that the compiled program must ask when it runs."""

    expr: Expr
    msg: str
    stack: Location | None
    is_inner: bool = False  # whether a graph inside an operator asks it: that around it need not, and mostly cannot


class ShapeEnv(SymbolMaker):
    """Symbols, knowledge, guards."""

    def __init__(
        self,
        *,
        duck_shape: bool | None = None,
        specialize_zero_one: bool = True,
        assume_static_by_default: bool = False,
        allow_scalar_outputs: bool = True,
        allow_dynamic_output_shape_ops: bool = True,
        prefer_deferred_runtime_asserts_over_guards: bool = False,
        tracked_fakes: list | None = None,
        should_record_events: bool | None = None,
        trace_asserts: bool = False,
        co_fields: dict | None = None,
    ):
        super().__init__()
        self.duck_shape = True if duck_shape is None else duck_shape
        self.specialize_zero_one = specialize_zero_one
        self.assume_static_by_default = assume_static_by_default
        self.allow_scalar_outputs = allow_scalar_outputs
        self.allow_dynamic_output_shape_ops = allow_dynamic_output_shape_ops
        self.prefer_deferred_runtime_asserts_over_guards = prefer_deferred_runtime_asserts_over_guards
        self.tracked_fakes = tracked_fakes
        self.guards: list[ShapeGuard] = []
        self.replacements: dict[Symbol, object] = {}
        self.deferred_runtime_asserts: dict[Symbol | None, list[RuntimeAssert]] = {}
        self.data: dict[Symbol, int | float | bool] = {}  # what unbacked symbols are in an example whose data is known
        self.inner_asserts: list[list[RuntimeAssert]] = []  # of the functions inside operators that are being traced
        self.facts = Facts()
        self.version = 0  # grows with every replacement
        self.answers: dict = {}  # questions that were answered: what is learned never takes an answer back
        self.wrapped: dict = {}  # expression -> its SymInt / SymFloat / SymBool
        self.frozen = self.runtime_asserts_frozen = False
        self.trace_asserts, self.co_fields = trace_asserts, co_fields or {}
        self.locate = user_location  # whoever interprets the user's code knows its lines better
        self._hints: dict = {}
        self._open: tuple[int, dict] = (-1, {})
        self._suppressed = self._refusing = 0

    # -- expressions as they are known now

    sizes_assumed = False  # inside shape rules of operators: sizes that data decides count as neither 0 nor 1

    def replace(self, expr):
        """The expression with every symbol that is known by others written so."""
        if not isinstance(expr, Expr) or not self.replacements or self.replacements.keys().isdisjoint(expr.symbols):
            return expr
        return substitute(expr, self.replacements)

    def simplify(self, expr, size_oblivious: bool = False):
        """`replace`, and a constant where the bounds leave one value."""
        expr = self.replace(expr)
        if isinstance(expr, Expr) and expr.kind is bool:
            known = self.statically(expr)
            return expr if known is None else known
        if isinstance(expr, Expr) and expr.kind is int:
            low, high = self.facts.bounds(expr)
            return int(low) if low == high else expr
        return expr

    def hint(self, expr):
        """The expression's value in the example; None where it hangs on data."""
        if not isinstance(expr, Expr):
            return expr
        if expr not in self._hints:
            if any(s not in self.hints for s in expr.symbols):
                return None
            self._hints[expr] = evaluate(expr, self.hints)
        return self._hints[expr]

    def bounds(self, expr) -> tuple:
        return self.facts.bounds(self.replace(expr))

    bound_sympy = bounds

    # -- questions

    def decide(self, question) -> bool:
        """The answer to a question, with a guard where only the example gives it."""
        known = self.answers.get(question)
        return known if known is not None else bool(self.evaluate_expr(question))

    def statically(self, question, size_oblivious: bool = False) -> bool | None:
        """The answer where it follows from what is known, else None; never a guard."""
        known = self.answers.get(question)
        if known is not None:
            return known
        asked = question
        question = self.replace(question)
        if not isinstance(question, Expr):
            return bool(question)
        if size_oblivious and self.size_like:
            return self._as_if_sized(question)
        version, still_open = self._open
        if version != self._knowledge():
            self._open = (self._knowledge(), still_open := {})
        if question in still_open:
            return None
        answer = self.facts.decide(question)
        if answer is None:
            still_open[question] = None
        else:
            self.answers[question] = self.answers[asked] = answer
        return answer

    def _knowledge(self) -> tuple:
        return self.version, len(self.guards), sum(map(len, self.deferred_runtime_asserts.values())), self._narrowed

    def _as_if_sized(self, question) -> bool | None:
        """The answer if data-dependent sizes are neither 0 nor 1."""
        facts = Facts()
        facts.ranges, facts.inequalities = dict(self.facts.ranges), self.facts.inequalities
        for symbol in self.size_like & question.symbols:
            low, high = facts.ranges.get(symbol, UNBOUNDED)
            facts.ranges[symbol] = (max(low, 2), max(high, 2))
        known = facts.decide(question)
        if known is None and isinstance(question, Relation) and question.rhs in (0, 1):
            if isinstance(question.lhs, Expr) and question.lhs.kind is int and not question.lhs.is_symbol:
                return {"!=": True, ">": True, "==": False, "<=": False}.get(
                    question.operator
                )  # a size computed of them
        return known

    def evaluate_expr(
        self,
        orig_expr,
        hint=None,
        fx_node=None,
        size_oblivious: bool = False,
        fallback_value=None,
        *,
        forcing_spec=False,
    ):
        """A definite value of a number or question, recorded as a guard unless it follows from what is known."""
        expr = self.replace(orig_expr)
        if not isinstance(expr, Expr):
            return expr
        if expr.kind is not bool:
            return self._specialize(expr)
        known = self.statically(expr, size_oblivious)
        if known is not None:
            return known
        value = self.hint(expr)
        if value is not None and fallback_value is not None and config.backed_size_oblivious:
            return fallback_value
        if value is None:
            if (self.sizes_assumed or asked_within()) and (assumed := self._as_if_sized(expr)) is not None:
                return assumed
            if fallback_value is not None:
                return fallback_value
            return self.without_hint(expr, orig_expr)
        self._record(expr if value else negate(expr), size_oblivious)
        if not self._suppressed and not self.frozen:
            self.answers[orig_expr] = self.answers[expr] = bool(value)
        return bool(value)

    def _specialize(self, expr):
        value = self.hint(expr)
        if value is None:
            low, high = self.facts.bounds(expr) if expr.kind is int else UNBOUNDED
            return int(low) if low == high else self.without_hint(expr)
        question = compare("==", expr, value)
        if self.statically(question) is not True:
            self._record(question)
        return value

    def without_hint(self, expr, original=None):
        """The value of what hangs on data: nobody knows it."""
        raise self.data_dependent_error(expr, original)

    def value_of(self, expr):
        """The value in an example whose data is known (`data`); a LookupError where some of it is not."""
        return evaluate(expr, self.hints | self.data) if isinstance(expr, Expr) else expr

    def data_dependent_error(self, expr, original=None) -> GuardOnDataDependentSymNode:
        original = expr if original is None else original
        likes = self.size_like & free_symbols(expr)
        return data_dependent(expr, original, likes, self.locate(), expr.kind is bool)

    def expect_true(self, question, message: str = "") -> bool:
        """A question that the user says holds: learned at once, and checked at run time where it hangs on data."""
        question = self.replace(question)
        known = self.statically(question)
        if known is not None:
            return known
        if isinstance(question, Logic) and question.operator == "and":
            return all(self.expect_true(part, message) for part in question.args)
        if self.hint(question) is not None and not self.prefer_deferred_runtime_asserts_over_guards:
            return self.decide(question)
        if self.runtime_asserts_frozen:
            warnings.warn(f"Ignored runtime assertion {question}: they are frozen", stacklevel=3)
            return True
        self.defer(RuntimeAssert(question, message, self.locate()))
        self._learn(question)
        return True

    def defer(self, promise: RuntimeAssert) -> None:
        """Leave a question to the graph that is traced: that of the innermost function, where one is."""
        if self.inner_asserts:
            self.inner_asserts[-1].append(promise)
            return
        unbacked = (s for s in promise.expr.symbols if s.is_unbacked)
        last = max(unbacked, key=lambda s: int(s.name.lstrip("uzf")), default=None)
        self.deferred_runtime_asserts.setdefault(last, []).append(promise)

    @contextlib.contextmanager
    def inner(self) -> Iterator[list[RuntimeAssert]]:
        """A block in which a function inside an operator runs; gives what it promises, for its own graph to assert."""
        self.inner_asserts.append([])
        try:
            yield self.inner_asserts[-1]
        finally:
            self.inner_asserts.pop()

    def guard_or_defer_runtime_assert(self, orig_expr, msg: str, fx_node=None) -> bool:
        return self.expect_true(orig_expr, msg)

    # -- learning

    def _record(self, question, size_oblivious: bool = False) -> None:
        if self._suppressed:
            return
        where = self.locate()
        if self._refusing:
            raise RuntimeError(f"ShapeEnv: a new guard {question} was not expected here, from {where}")
        if self.frozen:
            warnings.warn(f"Ignored guard {question} from {where}: the ShapeEnv is frozen", stacklevel=3)
            return
        question = tidy(question, self.facts)
        self.guards.append(ShapeGuard(question, where, size_oblivious))
        logger("dynamic").info("eval %s [guard added] at %s", question, where)
        self._learn(question)

    def _learn(self, question) -> None:
        try:
            self.facts.learn(question)
            self._narrowed += 1
            self._unify(question)
            self._settle_points()
        except Contradiction as error:
            raise ConstraintViolationError(f"{question} contradicts what is known: {error}") from None

    def _unify(self, question) -> None:
        """Equalities rewrite a symbol: unbacked ones first, then the one with the largest example and name."""
        if isinstance(question, Logic) and question.operator == "and":
            for part in question.args:
                self._unify(self.replace(part))
        if not isinstance(question, Relation) or question.operator != "==":
            return
        sides = question.args
        if any(isinstance(s, Expr) and s.kind is not int for s in sides) or any(isinstance(s, float) for s in sides):
            self._unify_float(*sides)
            return
        order = sorted(question.symbols, key=lambda s: (s.is_unbacked, self.hints.get(s, 0), s.name), reverse=True)
        solved = solve(question, order)
        if solved is None:
            return
        symbol, expr = solved
        if isinstance(expr, Expr) and not symbol.is_unbacked and any(s.is_unbacked for s in expr.symbols):
            return  # what has an example is not written by what has none
        self._set_replacement(symbol, expr)

    def _settle_points(self) -> None:
        """A symbol with one possible value is that value."""
        while points := [
            (s, int(low))
            for s, (low, high) in self.facts.ranges.items()
            if low == high and isinstance(s, Symbol) and s not in self.replacements
        ]:
            self._set_replacement(*points[0])

    def _unify_float(self, lhs, rhs) -> None:
        if isinstance(lhs, Symbol) and not isinstance(rhs, Expr):
            self._set_replacement(lhs, rhs)

    def _set_replacement(self, symbol: Symbol, expr) -> None:
        change = {symbol: expr}
        written = {s: e for s, e in self.replacements.items() if isinstance(e, Expr) and symbol in e.symbols}
        self.replacements = self.replacements | {s: substitute(e, change) for s, e in written.items()} | change
        self.version += 1
        if symbol.kind is int:
            self.facts.replace(symbol, expr)

    def constrain_symbol_range(self, s: Symbol, compiler_min=None, compiler_max=None) -> None:
        """Take it as given that the symbol lies within these bounds."""
        low, high = self.facts.ranges.get(s, UNBOUNDED)
        low = low if compiler_min is None else max(low, compiler_min)
        high = high if compiler_max is None else min(high, compiler_max)
        if low > high:
            raise ValueError(f"Invalid ranges [{compiler_min}:{compiler_max}] for {s}")
        self.facts.set_range(s, low, high)
        self._narrowed += 1
        self._settle_points()

    def constrain_range(self, number, low=None, high=None) -> None:
        """`low <= number <= high`, for a SymInt; an int is only checked."""
        expr = self.replace(number.node.expr) if hasattr(number, "node") else number
        if isinstance(expr, Symbol):
            self.constrain_symbol_range(expr, low, high)
            return
        for op, bound in ((">=", low), ("<=", high)):
            if bound is not None and abs(bound) != INFINITE and not self.expect_true(compare(op, expr, bound)):
                raise ValueError(f"Invalid value {expr} for range [{low}:{high}]")

    def constrain_unify(self, a, b) -> None:
        """The two numbers are the same from here on."""
        a, b = (v.node.expr if hasattr(v, "node") else v for v in (a, b))
        self.expect_true(compare("==", a, b))

    def constrain_for_size(self, number, low=None, high=None) -> None:
        """The number is a size: not negative, and where obliviousness is asked for, not 0 or 1."""
        expr = self.replace(number.node.expr) if hasattr(number, "node") else number
        if isinstance(expr, Symbol) and expr.is_unbacked:
            self.size_like.add(expr)
        self.constrain_range(number, max(0, low or 0), high)

    # -- modes

    def freeze(self) -> None:
        """No guard is recorded any more; one that would be is warned of."""
        self.frozen = True

    def freeze_runtime_asserts(self) -> None:
        """No runtime assertion is recorded any more; one that would be is warned of."""
        self.runtime_asserts_frozen = True

    @contextlib.contextmanager
    def suppress_guards(self) -> Iterator[None]:
        """Inside, answers come from the example and nothing is recorded."""
        self._suppressed += 1
        try:
            yield
        finally:
            self._suppressed -= 1

    @contextlib.contextmanager
    def error_on_new_guards(self) -> Iterator[None]:
        """Inside, a question that needs a guard raises."""
        self._refusing += 1
        try:
            yield
        finally:
            self._refusing -= 1

    # -- numbers of expressions

    def create_symintnode(self, sym, *, hint=None, source=None):
        if isinstance(sym, Symbol) and hint is not None:
            self.hints.setdefault(sym, hint)
        return wrap(sym, self)

    create_symfloatnode = create_symintnode

    def create_symboolnode(self, sym):
        return wrap(sym, self)

    def size_hint(self, expr, *, allow_none: bool = False):
        value = self.hint(self.replace(expr))
        if value is None and not allow_none:
            raise self.data_dependent_error(expr)
        return value

    def guarding_hint_or_throw(self, expr):
        return self.size_hint(expr)

    def has_guarding_hint(self, expr) -> bool:
        return self.hint(self.replace(expr)) is not None

    def optimization_hint(self, expr, fallback: int | None = None):
        """A value to plan by: the example's, or one within the bounds."""
        value = self.hint(self.replace(expr))
        if value is not None:
            return value
        if fallback is None:
            raise self.data_dependent_error(expr)
        low, high = self.bounds(expr)
        return int(min(max(fallback, low), high))

    def is_unbacked_symint(self, symbol) -> bool:
        return symbol.is_unbacked

    is_unbacked = is_unbacked_symint

    # -- guards as text and as a function

    def produce_guards(self, placeholders, sources, **options) -> list[str]:
        """The guards over the names of sources, as Python."""
        return check.texts(self, placeholders, sources, **options)

    def produce_guards_expression(self, placeholders, *, guards=None, ignore_static: bool = True) -> str | None:
        sources = [f"L['t{i}']" for i in range(len(placeholders))]
        texts = check.texts(self, placeholders, sources, guards=guards, ignore_static=ignore_static)
        return " and ".join(texts) or None

    def compile_guards(self, placeholders, sources=None) -> check.GuardCheck:
        """One function that says whether other arguments satisfy the guards."""
        return check.GuardCheck(self, placeholders, sources)

    def evaluate_guards_for_args(self, placeholders, args, *, ignore_static: bool = True) -> bool:
        return check.GuardCheck(self, placeholders, ignore_static=ignore_static)(*args)

    def evaluate_guards_expression(self, code: str, args) -> bool:
        return check.evaluate_text(code, args)

    def bind_symbols(self, placeholders, args) -> dict[Symbol, int]:
        return check.bind_symbols(self, placeholders, args)

    def format_guards(self, verbose: bool = False) -> str:
        return "\n".join(f" - {g.expr}{f' at {g.sloc}' if verbose else ''}" for g in self.guards)

    def get_nontrivial_guards(self) -> list:
        """The guards that other arguments may not fulfil, as far as that is known."""
        return [found for g in self.guards if isinstance(found := self.simplify(g.expr), Expr)]

    def get_axioms(self, symbols=None, compute_hint: bool = False) -> tuple:
        """What is taken as true: guards and runtime assertions."""
        asserts = [a.expr for found in self.deferred_runtime_asserts.values() for a in found]
        return tuple([g.expr for g in self.guards] + asserts)

    @property
    def var_to_val(self) -> dict:
        return self.hints

    backed_var_to_val = var_to_val

    @property
    def var_to_range(self) -> dict:
        return {s: self.facts.ranges.get(s, UNBOUNDED) for s in self.var_to_sources}


__all__ = ["DimDynamic", "RuntimeAssert", "ShapeEnv", "ShapeGuard"]
