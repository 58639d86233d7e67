"""Guards as text and as one compiled function.

What comes in: a ShapeEnv, the traced inputs (tensors with symbolic sizes, symbolic numbers) and the names of their sources. What
goes out: Python conditions over the names, and `GuardCheck`, a generated function of new inputs that is true where the trace holds.
What always holds: the text and the function are written from the same list of conditions.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from .contexts import StrictMinMaxConstraint
from .errors import ConstraintViolationError
from .expressions import Expr, Symbol, evaluate
from .facts import INFINITE, Facts, solve
from .relations import Relation, compare
from .symbols import source_name
from .writing import write_python


def _properties(placeholder, name: str):
    """(how the source says it, the value that was traced) of an input's numbers."""
    if hasattr(placeholder, "shape") and hasattr(placeholder, "stride"):
        for d, s in enumerate(placeholder.shape):
            yield f"{name}.size()[{d}]", s
        for d, s in enumerate(placeholder.stride()):
            yield f"{name}.stride()[{d}]", s
        yield f"{name}.storage_offset()", placeholder.storage_offset()
    elif isinstance(placeholder, (int, float)) or hasattr(placeholder, "node"):
        yield name, placeholder


def _expr(env, value):
    return env.replace(value.node.expr) if hasattr(value, "node") else value


class Conditions:
    """What must hold of the inputs: which source gives each symbol, and questions about the rest."""

    def __init__(self, env, placeholders: Sequence, sources: Sequence, ignore_static: bool = True, guards=None):
        self.env, self.names = env, {}
        self.said: dict[str, None] = {}
        rows = []
        for placeholder, source in zip(placeholders, sources, strict=True):
            rows += [(text, value, _expr(env, value)) for text, value in _properties(placeholder, source_name(source))]
        self._choose_names(rows)
        for text, value, expr in rows:
            self._bind(text, value, expr, ignore_static)
        for guard in env.guards if guards is None else guards:
            self._guard(guard.expr)
        self._ranges()
        check_constraints(env)

    def _choose_names(self, rows: list) -> None:
        """The first source that is a symbol and nothing else names it; a symbol without one is solved for."""
        for text, _, expr in rows:
            if isinstance(expr, Symbol):
                self.names.setdefault(expr, text)
        for text, _, expr in rows:
            if isinstance(expr, Expr):
                missing = [s for s in expr.symbols if s not in self.names]
                if len(missing) == 1:
                    self._solve(text, expr, missing[0])

    def _solve(self, text: str, expr: Expr, symbol: Symbol) -> None:
        """A symbol that no input shows by itself, from an input that shows a multiple or sum of it."""
        shown = Symbol(f"<{text}>")
        solved = solve(compare("==", expr, shown), [symbol])
        if solved is not None:
            self.names[symbol] = "(" + write_python(solved[1], lambda s: text if s is shown else self.names[s]) + ")"
            return
        step = getattr(expr, "terms", {}).get((symbol,), 0)
        if step and all(m in ((), (symbol,)) for m in expr.terms):
            start = expr.terms.get((), 0)
            self.names[symbol] = f"(({text} - {start}) // {step})" if start else f"({text} // {step})"

    def _bind(self, text: str, value, expr, ignore_static: bool) -> None:
        if not isinstance(expr, Expr):
            # Where a tensor begins in its memory is no matter of a graph: views are made of the tensor it is given.
            if not ignore_static and not text.endswith(".storage_offset()"):
                self._add(f"{text} == {expr!r}")
        elif self.names.get(expr) != text:
            self._add(f"{text} == {self.write(expr)}")

    def _guard(self, question) -> None:
        question = self.env.replace(question)
        if isinstance(question, Expr) and not (_is_range(question) and question.symbols <= self.names.keys()):
            self._add(self.write(question))

    def _ranges(self) -> None:
        for symbol, name in self.names.items():
            self._add_range(name, *self.env.facts.range_of(symbol))
        for symbol, first in self.env.first_ranges.items():
            expr = self.env.replace(symbol)
            if isinstance(expr, Expr) and not expr.is_symbol and expr.symbols <= self.names.keys():
                low, high = self._implied(expr)
                bounds = (first[0] if low < first[0] else -INFINITE), (first[1] if high > first[1] else INFINITE)
                self._add_range(self.write(expr), *bounds)

    def _implied(self, expr) -> tuple:
        """The bounds of an expression that follow from its symbols' own, which are written out."""
        facts = Facts()
        facts.ranges = {s: self.env.facts.range_of(s) for s in expr.symbols}
        return facts.bounds(expr)

    def _add_range(self, name: str, low, high) -> None:
        conditions = [f"{low} <= {name}"] if low > -INFINITE else []
        if high < INFINITE:
            conditions.append(f"{name} <= {high}")
        if conditions:
            self._add(" and ".join(conditions))

    def _add(self, text: str) -> None:
        self.said[text] = None

    @property
    def texts(self) -> list[str]:
        return list(self.said)

    def write(self, expr) -> str:
        return write_python(expr, self._name)

    def _name(self, symbol: Symbol) -> str:
        if symbol in self.names:
            return self.names[symbol]
        sources = self.env.var_to_sources.get(symbol)
        if not sources:
            raise RuntimeError(f"no input shows the symbol {symbol}, so a guard on it cannot be written")
        return sources[0]


def _is_range(question) -> bool:
    """Whether a guard only bounds a symbol: the symbol's range says it."""
    sides = getattr(question, "args", ())
    return (
        isinstance(question, Relation)
        and question.operator not in ("==", "!=")
        and any(isinstance(s, Symbol) and s.kind is int for s in sides)
        and any(type(s) is int for s in sides)
    )


def check_constraints(env) -> None:
    """Raise where the trace needs more than the user promised of a dimension."""
    broken = {}
    for symbol, constraint in env.constraints.items():
        expr, text = env.replace(symbol), env.var_to_sources[symbol][0]
        if not isinstance(expr, Expr):
            broken[text] = (
                f"You marked {text} as dynamic but your code specialized it to be a constant ({expr}). If you're using "
                "mark_dynamic, either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with "
                "either Dim.STATIC or Dim.AUTO."
            )
        elif isinstance(constraint, StrictMinMaxConstraint):
            low, high = env.bounds(expr)
            if low > max(constraint.vr.lower, 2) or high < constraint.vr.upper:
                broken[text] = (
                    f"Not all values of {text} in the specified range {constraint.vr.lower} <= {text} <= "
                    f"{constraint.vr.upper} satisfy the generated guard {low} <= {text} and {text} <= {high}"
                )
    warned_of = {env.var_to_sources[s][0] for s, constraint in env.constraints.items() if constraint.warn_only}
    strict = [t for t in broken if t not in warned_of]
    if strict:
        raise ConstraintViolationError(
            f'Constraints violated ({", ".join(strict)})! For more information, run with TORCH_LOGS="+dynamic".\n'
            + "\n".join(f"  - {broken[t]}" for t in strict)
        )
    for text in broken:
        warnings.warn(broken[text], stacklevel=4)


def texts(
    env, placeholders, sources, *, guards=None, ignore_static: bool = True, input_contexts=None, equalities_inputs=None,
    _simplified: bool = False,
) -> list[str]:  # fmt: skip
    """The conditions as Python over the sources' names (`_simplified`: sources are the names of arguments). Contexts are
    already known to the environment."""
    if _simplified:
        sources = [f"L[{source_name(s)!r}]" for s in sources]
    if equalities_inputs is not None:
        raise NotImplementedError("produce_guards: equalities_inputs (derived dimensions of export) is not supported")
    return Conditions(env, placeholders, sources, ignore_static, guards).texts


class GuardCheck:
    """`check(*inputs)`: whether a trace holds for these inputs. `explain` says which condition does not."""

    def __init__(self, env, placeholders: Sequence, sources: Sequence | None = None, ignore_static: bool = False):
        arguments = [f"t{i}" for i in range(len(placeholders))]
        self.names = [source_name(s) for s in sources] if sources is not None else [f"L['{a}']" for a in arguments]
        self.conditions = Conditions(env, placeholders, arguments, ignore_static).texts
        self.texts = Conditions(env, placeholders, self.names, ignore_static).texts
        ranks = [
            f"len({a}.shape) == {len(p.shape)}"
            for a, p in zip(arguments, placeholders, strict=True)
            if hasattr(p, "shape")
        ]
        self.conditions = ranks + self.conditions
        self.texts = [f"len({n}.size()) == {len(p.shape)}" for n, p in zip(self.names, placeholders, strict=True)
                      if hasattr(p, "shape")] + self.texts  # fmt: skip
        self.code = f"def check({', '.join(arguments)}):\n    return " + (" and ".join(self.conditions) or "True")
        scope: dict = {"math": math}
        exec(self.code, scope)
        self.check = scope["check"]
        self._arguments = arguments

    def __call__(self, *inputs) -> bool:
        return self.check(*inputs)

    def explain(self, *inputs) -> str | None:
        """The first condition that does not hold, with the values found; None where all hold."""
        scope = {"math": math} | dict(zip(self._arguments, inputs, strict=True))
        for condition, text in zip(self.conditions, self.texts, strict=True):
            if not eval(condition, scope):
                return f"{text} does not hold: {_found(condition, scope)}"
        return None


def _found(condition: str, scope: dict) -> str:
    """The values on the sides of a condition."""
    for op in (" == ", " != ", " <= ", " >= ", " < ", " > "):
        sides = condition.split(op)
        if len(sides) > 1 and condition.count("(") == sum(s.count("(") for s in sides):
            try:
                return op.join(str(eval(s, scope)) for s in sides)
            except SyntaxError:
                continue
    return "False"


def evaluate_text(code: str, args) -> bool:
    """A text of `produce_guards_expression` for these arguments."""
    return bool(eval(code, {"math": math, "L": {f"t{i}": a for i, a in enumerate(args)}}))


def bind_symbols(env, placeholders: Sequence, args: Sequence) -> dict[Symbol, int]:
    """Each symbol's value in these arguments; an AssertionError where two sources disagree."""
    found: dict[Symbol, int] = {}
    waiting = []
    for placeholder, arg in zip(placeholders, args, strict=True):
        for (_, traced), (_, value) in zip(_properties(placeholder, ""), _properties(arg, ""), strict=True):
            expr = _expr(env, traced)
            if isinstance(expr, Symbol):
                if found.setdefault(expr, value) != value:
                    raise AssertionError(f"{found[expr]} != {value}: both would be {expr}")
            elif isinstance(expr, Expr):
                waiting.append((expr, value))
    for expr, value in waiting:
        missing = [s for s in expr.symbols if s not in found]
        if len(missing) == 1:
            solved = solve(compare("==", expr, value), missing)
            if solved is not None:
                found[missing[0]] = evaluate(solved[1], found)
    return found
