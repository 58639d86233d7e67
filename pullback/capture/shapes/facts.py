"""What is known about the symbols, and what follows from it.

What comes in: questions that hold (`learn`). What goes out: whether another question follows, contradicts, or is open (`decide`),
and bounds of expressions. What always holds: an answer is a proof for all values of the symbols that satisfy what was learned; an
open question is None. The method: a polynomial is bounded from below by writing every atom as its bound plus something that is
not negative; inequalities that were learned, and those that define a division or a maximum, are subtracted from it first.
"""

from __future__ import annotations

import math
from itertools import product

from . import functions as f
from .expressions import (
    Apply,
    Atom,
    Expr,
    Sum,
    Symbol,
    add,
    divide_exactly,
    multiply,
    polynomial,
    remove,
    substitute,
    subtract,
    terms_of,
)  # fmt: skip
from .relations import Logic, Relation, compare

INFINITE = math.inf
UNBOUNDED = (-INFINITE, INFINITE)
DEPTH = 2  # learned inequalities combined in one proof
MODULI = 64  # divisors that are tried against what is known to be a multiple
EFFORT = 150  # combinations tried before a question counts as open


class Contradiction(Exception):
    """Something was learned that cannot hold beside what is known."""


def normalize(expr):
    """The canonical form for proofs: `Mod` by division, divisions by constants with reduced numerators."""
    if isinstance(expr, Sum):
        return expr.remake(normalize)
    if not isinstance(expr, Apply) or expr.kind is not int:
        return expr
    args = tuple(map(normalize, expr.args))
    if expr.function is f.mod:
        return subtract(args[0], multiply(args[1], _reduced_division(*args)))
    return _reduced_division(*args) if expr.function is f.floordiv else expr.function.make(*args)


def _reduced_division(p, q):
    if q.__class__ is not int or p.__class__ is int or q <= 0:
        return f.floordiv(p, q)
    parts = {m: divmod(c, q) for m, c in terms_of(p).items()}
    whole, rest = polynomial({m: c[0] for m, c in parts.items()}), polynomial({m: c[1] for m, c in parts.items()})
    return add(whole, f.floordiv(rest, q))


class Facts:
    """Ranges of atoms, inequalities `p >= 0`, and polynomials that are not zero."""

    def __init__(self) -> None:
        self.ranges: dict[Atom, tuple] = {}
        self.inequalities: dict = {}  # polynomial without constant -> c, where polynomial + c >= 0
        self.nonzero: set = set()
        self.multiples: dict = {}  # polynomial -> a number that divides it
        self._effort = 0
        self._computed: dict = {}  # ranges of function nodes, as long as nothing new is learned

    # -- bounds

    def range_of(self, atom) -> tuple:
        """(lowest, highest) of an atom."""
        known = self.ranges.get(atom, UNBOUNDED)
        if isinstance(atom, Symbol):
            return known
        if atom not in self._computed:
            self._computed[atom] = UNBOUNDED  # whatever asks again on the way must not wait for the answer
            low, high = _RANGES.get(atom.function.name, _unknown)(self, *atom.args)
            self._computed[atom] = max(low, known[0]), min(high, known[1])
        return self._computed[atom]

    def bounds(self, expr) -> tuple:
        """(lowest, highest) of an integer expression; infinite where not known."""
        if not isinstance(expr, Expr):
            return expr, expr
        forms = [terms_of(expr)]
        if (other := normalize(expr)) is not expr:
            forms.append(terms_of(other))
        return max(map(self.lower, forms)), -max(self.lower({m: -c for m, c in form.items()}) for form in forms)

    def lower(self, terms: dict):
        """A number that the polynomial is never below."""
        shifted: dict = {}
        widths: dict = {}
        for monomial, coefficient in terms.items():
            choices = [self._shift(atom, widths) for atom in monomial]
            if any(c is None for c in choices):
                return -INFINITE
            for picked in product(*choices):
                value, left = coefficient, []
                for factor, atom in picked:
                    value *= factor
                    if atom is not None:
                        left.append(atom)
                if value:
                    key = tuple(sorted(left, key=lambda a: a.serial))
                    shifted[key] = shifted.get(key, 0) + value
        total = shifted.pop((), 0)
        for monomial, coefficient in shifted.items():
            if coefficient < 0:
                width = math.prod(widths[a] for a in monomial)
                if width == INFINITE:
                    return -INFINITE
                total += coefficient * width
        return total

    def _shift(self, atom, widths: dict):
        """The atom as `bound + t` or `bound - t` with 0 <= t <= width: pairs (factor, t or None)."""
        low, high = self.range_of(atom)
        if low == high:
            return ((low, None),)
        widths[atom] = high - low
        if low > -INFINITE:
            return ((low, None), (1, atom)) if low else ((1, atom),)
        return ((high, None), (-1, atom)) if high < INFINITE else None

    # -- proofs

    def decide(self, question) -> bool | None:
        """True, False, or None where neither follows."""
        if not isinstance(question, Expr):
            return bool(question)
        if isinstance(question, Logic):
            return self._decide_logic(question)
        if not isinstance(question, Relation) or not _whole(question):
            return None
        p = self.without_positive_factor(normalize(subtract(question.lhs, question.rhs)))
        op = question.operator
        if op in ("==", "!="):
            answer = True if self._divides(question) else self._decide_zero(p)
            if answer is None and self._is_away_from_zero(subtract(question.lhs, question.rhs)):
                answer = False
            return answer if answer is None or op == "==" else not answer
        if op in (">", "<="):  # p > 0 is p - 1 >= 0
            answer = self._decide_nonnegative(subtract(p, 1))
            return answer if answer is None or op == ">" else not answer
        answer = self._decide_nonnegative(p)
        return answer if answer is None or op == ">=" else not answer

    def _is_away_from_zero(self, p) -> bool:
        """Whether a sum as it is written, remainders and powers whole, has bounds that leave zero out."""
        if not isinstance(p, Expr):
            return p != 0
        low, high = self.bounds(p)
        return low > 0 or high < 0

    def _decide_logic(self, question: Logic) -> bool | None:
        stop = question.operator == "or"
        answers = [self.decide(a) for a in question.args]
        return stop if stop in answers else None if None in answers else not stop

    def _divides(self, question: Relation) -> bool:
        """Whether the question is about a remainder that a multiple which was learned makes zero."""
        x, zero = question.args
        if not (isinstance(x, Apply) and x.function is f.mod and zero.__class__ is int and zero == 0):
            return False
        x, m = x.args
        if m.__class__ is not int or not 0 < m <= MODULI:
            return False
        return any(
            step % m == 0
            and any(_all_divisible(_combine(terms_of(x), 1, terms_of(p), -times), m) for times in range(1, m))
            for p, step in self.multiples.items()
        )

    def _decide_nonnegative(self, p) -> bool | None:
        if self.never_negative(p):
            return True
        return False if self.never_negative(subtract(multiply(p, -1), 1)) else None

    def _decide_zero(self, p) -> bool | None:
        if p.__class__ is int:
            return p == 0
        terms = terms_of(p)
        step = math.gcd(*(c for m, c in terms.items() if m))
        if terms.get((), 0) % step or p in self.nonzero or multiply(p, -1) in self.nonzero:
            return False
        above, below = self.never_negative(p), self.never_negative(multiply(p, -1))
        if above and below:
            return True
        if self.never_negative(subtract(p, 1)) or self.never_negative(subtract(multiply(p, -1), 1)):
            return False
        return None

    def without_positive_factor(self, p):
        """p divided by the atoms in all of its terms that are known to be positive: same sign, same zeros."""
        monomials = list(terms_of(p))
        for atom in set(monomials[0]) if monomials and () not in monomials else ():
            while all(atom in m for m in terms_of(p)) and self.range_of(atom)[0] > 0:
                p = polynomial({remove(m, (atom,)): c for m, c in terms_of(p).items()})
                if p.__class__ is int:
                    return p
        return p

    def never_negative(self, p) -> bool:
        if p.__class__ is int:
            return p >= 0
        self._effort = EFFORT
        return self._search(terms_of(p), 1, DEPTH)

    def _search(self, terms: dict, scale: int, depth: int) -> bool:
        """Whether scale * d > -scale follows, `terms` being scale * d less what is known not to be negative."""
        if self.lower(terms) > -scale:
            return True
        self._effort -= 1
        if not depth or self._effort <= 0:
            return False
        for known, monomial in self._useful(terms):
            times, own = abs(terms[monomial]), abs(known[monomial])
            common = math.gcd(times, own)
            for share in (1, 2):  # all of the term, or half of it: the other half may meet another inequality
                times, own = times // common, own * share // common
                rest, common = _combine(terms, own, known, -times), 1
                if self._search(rest, scale * own, depth - 1):
                    return True
        return False

    def _useful(self, terms: dict):
        """Inequalities that share a term of one sign with the polynomial, as (terms, monomial); negative ones first."""
        obstacles = sorted((m for m in terms if m), key=terms.__getitem__)
        known = [_with_constant(p, c) for p, c in self.inequalities.items()]
        for atom in {a for m in terms for a in m if isinstance(a, Apply)}:
            known += self._definition(atom)
        return [(k, m) for m in obstacles for k in known if k.get(m, 0) * terms[m] > 0]

    def _definition(self, atom: Apply) -> list[dict]:
        """Inequalities that hold of a function node by what it computes."""
        if atom.function is f.floordiv:
            p, q = atom.args
            if (q.__class__ is int and q > 0) or (isinstance(q, Expr) and self.bounds(q)[0] > 0):
                rest = normalize(subtract(p, multiply(q, atom)))
                return [terms_of(rest), terms_of(subtract(subtract(q, 1), rest))]
        if atom.function is f.maximum or atom.function is f.minimum:
            return self._extreme(atom, 1 if atom.function is f.maximum else -1)
        return []

    def _extreme(self, atom: Apply, sign: int) -> list[dict]:
        """What holds of a maximum (sign 1) or a minimum (-1); it is one of its arguments where ranges say which."""
        args = list(map(normalize, atom.args))
        known = [terms_of(multiply(subtract(atom, a), sign)) for a in args]
        for a in args:
            if all(self.bounds(multiply(subtract(a, b), sign))[0] >= 0 for b in args):
                known.append(terms_of(multiply(subtract(a, atom), sign)))
        return known

    # -- learning

    def learn(self, question) -> None:
        """Take a question as true from here on; Contradiction where that cannot be."""
        if not isinstance(question, Expr):
            if not question:
                raise Contradiction("false")
            return
        if isinstance(question, Logic):
            self._learn_logic(question)
        elif isinstance(question, Relation) and _whole(question):
            p = normalize(subtract(question.lhs, question.rhs))
            self._learn_relation(question.operator, self.without_positive_factor(p))
            self._learn_multiple(question)
        self._computed.clear()

    def _learn_logic(self, question: Logic) -> None:
        if question.operator == "and":
            for part in question.args:
                self.learn(part)
            return
        open_parts = [a for a in question.args if self.decide(a) is not False]
        if len(open_parts) == 1:
            self.learn(open_parts[0])

    def _learn_relation(self, op: str, p) -> None:
        minus = multiply(p, -1)
        if op in (">=", ">"):
            self._learn_nonnegative(p if op == ">=" else subtract(p, 1))
        elif op in ("<=", "<"):
            self._learn_nonnegative(minus if op == "<=" else subtract(minus, 1))
        elif op == "==":
            self._learn_nonnegative(p)
            self._learn_nonnegative(minus)
        else:
            self._learn_nonzero(p)

    def _learn_nonnegative(self, p) -> None:
        p = self.without_positive_factor(p)
        if p.__class__ is int:
            if p < 0:
                raise Contradiction(f"{p} >= 0")
            return
        terms = dict(terms_of(p))
        constant = terms.pop((), 0)
        step = math.gcd(*terms.values())
        terms, constant = {m: c // step for m, c in terms.items()}, constant // step  # an integer: floor is exact
        if len(terms) == 1:
            ((monomial, sign),) = terms.items()
            if len(monomial) == 1 and abs(sign) == 1:
                low, high = self.ranges.get(monomial[0], UNBOUNDED)
                self.set_range(monomial[0], *((max(low, -constant), high) if sign > 0 else (low, min(high, constant))))
                return
        key = polynomial(terms)
        self.inequalities[key] = min(constant, self.inequalities.get(key, constant))
        self._narrow(terms, constant)
        opposite = self.inequalities.get(multiply(key, -1))
        if opposite is not None and opposite + self.inequalities[key] < 0:
            raise Contradiction(f"{key} >= {-constant}")

    def _narrow(self, terms: dict, constant: int) -> None:
        """Tighten the ranges of the function nodes in `terms + constant >= 0` by the bounds of the other terms."""
        for monomial, c in terms.items():
            if len(monomial) == 1 and isinstance(monomial[0], Apply):
                rest = -self.lower({m: -d for m, d in terms.items() if m is not monomial}) + constant
                if rest < INFINITE:
                    low, high = self.range_of(monomial[0])
                    bound = -(rest // c) if c > 0 else rest // -c
                    self.set_range(monomial[0], *((max(low, bound), high) if c > 0 else (low, min(high, bound))))

    def _learn_multiple(self, question: Relation) -> None:
        x, zero = question.args
        if question.operator == "==" and zero.__class__ is int and zero == 0 and getattr(x, "function", None) is f.mod:
            if x.args[1].__class__ is int:
                self.multiples[x.args[0]] = math.lcm(self.multiples.get(x.args[0], 1), x.args[1])

    def _learn_nonzero(self, p) -> None:
        p = self.without_positive_factor(p)
        if p.__class__ is int:
            if p == 0:
                raise Contradiction("0 != 0")
            return
        self.nonzero.add(p)
        if self.never_negative(p):
            self._learn_nonnegative(subtract(p, 1))
        elif self.never_negative(multiply(p, -1)):
            self._learn_nonnegative(subtract(multiply(p, -1), 1))

    def set_range(self, atom: Atom, low, high) -> None:
        if low > high:
            raise Contradiction(f"{atom} would have to be at least {low} and at most {high}")
        self.ranges[atom] = (low, high)
        self._computed.clear()

    def replace(self, symbol: Symbol, expr) -> None:
        """The symbol is now written as `expr`; everything known is said anew."""
        low, high = self.ranges.get(symbol, UNBOUNDED)
        inequalities, nonzero, multiples = self.inequalities, self.nonzero, self.multiples
        ranges = {a: r for a, r in self.ranges.items() if isinstance(a, Apply) and symbol in a.symbols}
        self.ranges = {a: r for a, r in self.ranges.items() if a not in ranges}
        self.inequalities, self.nonzero = {}, set()
        self._computed.clear()
        change = {symbol: expr}
        self.multiples = {substitute(p, change): step for p, step in multiples.items()}
        self.multiples = {p: step for p, step in self.multiples.items() if isinstance(p, Expr)}
        for p, c in inequalities.items():
            self._learn_nonnegative(normalize(add(substitute(p, change), c)))
        for p in nonzero:
            self._learn_nonzero(normalize(substitute(p, change)))
        for value, (least, most) in [*((substitute(a, change), r) for a, r in ranges.items()), (expr, (low, high))]:
            if least > -INFINITE:
                self._learn_nonnegative(normalize(subtract(value, least)))
            if most < INFINITE:
                self._learn_nonnegative(normalize(subtract(most, value)))
        self._computed.clear()


def _whole(question: Relation) -> bool:
    return all(a.__class__ is int or isinstance(a, Expr) and a.kind is int for a in question.args)


def _combine(a: dict, times: int, b: dict, other: int) -> dict:
    """The terms of a*times + b*other."""
    out = {m: c * times for m, c in a.items()}
    for m, c in b.items():
        out[m] = out.get(m, 0) + c * other
    return {m: c for m, c in out.items() if c}


def _all_divisible(terms: dict, m: int) -> bool:
    return all(c % m == 0 for c in terms.values())


def _with_constant(p, constant: int) -> dict:
    terms = dict(terms_of(p))
    if constant:
        terms[()] = constant
    return terms


def _unknown(facts: Facts, *args) -> tuple:
    return UNBOUNDED


def _range_floordiv(facts: Facts, p, q) -> tuple:
    (low, high), (least, most) = facts.bounds(p), facts.bounds(q)
    if least <= 0:
        return UNBOUNDED
    corners = [_quotient(a, b) for a in (low, high) for b in (least, most)]
    return min(corners), max(corners)


def _quotient(a, b):
    if b == INFINITE:
        return 0 if a >= 0 else -1 if a > -INFINITE else -INFINITE
    return a if abs(a) == INFINITE else a // b


def _range_mod(facts: Facts, p, q) -> tuple:
    least, most = facts.bounds(q)
    return (0, min(most - 1, facts.bounds(p)[1] if facts.bounds(p)[0] >= 0 else INFINITE)) if least > 0 else UNBOUNDED


def _range_max(facts: Facts, *args) -> tuple:
    lows, highs = zip(*map(facts.bounds, args), strict=True)
    return max(lows), max(highs)


def _range_min(facts: Facts, *args) -> tuple:
    lows, highs = zip(*map(facts.bounds, args), strict=True)
    return min(lows), min(highs)


def _range_choice(facts: Facts, condition, then, otherwise) -> tuple:
    (a, b), (c, d) = facts.bounds(then), facts.bounds(otherwise)
    return min(a, c), max(b, d)


def _range_rounded(facts: Facts, value, *digits) -> tuple:
    """A rounded quotient of integers has the sign of the numerator where the denominator is positive."""
    if isinstance(value, Apply) and value.function is f.int_truediv:
        p, q = value.args
        if facts.bounds(q)[0] > 0 and facts.bounds(p)[0] >= 0:
            return 0, INFINITE
    return UNBOUNDED


def _range_power(facts: Facts, base, exponent) -> tuple:
    low = facts.bounds(base)[0]
    return (1, INFINITE) if low > 0 else (0, INFINITE) if low == 0 else UNBOUNDED


_RANGES = {
    "floordiv": _range_floordiv, "Mod": _range_mod, "Max": _range_max, "Min": _range_min, "Piecewise": _range_choice,
    "Abs": lambda facts, value: (0, INFINITE), "CastToInt": lambda facts, value: (0, 1), "PowByNatural": _range_power,
    "TruncToInt": _range_rounded, "FloorToInt": _range_rounded, "CeilToInt": _range_rounded,
    "RoundToInt": _range_rounded,
}  # fmt: skip


def tidy(question, facts: Facts):
    """An equality of integers without the factors that both sides share; any other question as it is."""
    if not isinstance(question, Relation) or question.operator not in ("==", "!=") or not _whole(question):
        return question
    p = subtract(question.lhs, question.rhs)
    number = math.gcd(*terms_of(p).values())
    rest = facts.without_positive_factor(p)
    if number == 1 and rest is p:
        return question
    terms = {m: c // number for m, c in terms_of(rest).items()}
    if not any(m and c > 0 for m, c in terms.items()):
        terms = {m: -c for m, c in terms.items()}
    left = {m: c for m, c in terms.items() if m and c > 0}
    return compare(question.operator, polynomial(left), polynomial({m: -c for m, c in terms.items() if m not in left}))


def solve(question: Relation, order: list[Symbol]) -> tuple[Symbol, object] | None:
    """`symbol == expression` that says the same as an equality, for the first symbol in `order` that allows it."""
    p = normalize(subtract(question.lhs, question.rhs))
    if p.__class__ is int:
        return None
    step = math.gcd(*terms_of(p).values())
    p = divide_exactly(p, step)
    for symbol in order:
        coefficient = terms_of(p).get((symbol,), 0)
        if abs(coefficient) != 1:
            continue
        rest = subtract(p, multiply(symbol, coefficient))
        if not isinstance(rest, Expr) or symbol not in rest.symbols:
            return symbol, multiply(rest, -coefficient)
    return None
