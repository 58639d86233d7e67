"""Integer expressions over symbols: immutable, interned, in polynomial normal form.

What comes in: symbols, and Python numbers, which are the constants of this algebra (an expression that is a constant *is* the
`int`, `float` or `bool`). What goes out: `Expr` objects. What always holds: sums and products are expanded polynomials with
integer coefficients over atoms (symbols and function nodes), so two integer expressions of one normal form are one object, and
equality is identity. Function nodes (`floordiv`, `Max`, ...) are made by `functions`; comparisons and logic by `relations`.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping

_interned: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
_next_serial = itertools.count().__next__
MEMO_LIMIT = 100_000  # entries of one table of remembered results; a full table starts afresh


class Expr:
    """Something that is not a constant. `kind` is int, float or bool; `symbols` are the symbols in it."""

    __slots__ = ("serial", "symbols", "text", "__weakref__")
    kind: type = int
    is_number = False
    is_symbol = False

    def __init__(self, symbols: frozenset):
        self.serial, self.symbols, self.text = _next_serial(), symbols, None

    @property
    def free_symbols(self) -> frozenset:
        return self.symbols

    @property
    def is_integer(self) -> bool:
        return self.kind is int

    def __repr__(self) -> str:
        if self.text is None:
            from .writing import write

            self.text = write(self)
        return self.text

    __str__ = __repr__

    def build(self, leaf: Callable, call: Callable):
        """Make the value again: `leaf(symbol)` gives a symbol's, `call(function, *values)` that of a call."""
        raise NotImplementedError

    def parts(self) -> Iterator:
        """The expressions and constants directly inside."""
        return iter(())

    def remake(self, change: Callable):
        """The same expression of changed parts, simplified anew."""
        return self

    def xreplace(self, mapping: Mapping):
        return substitute(self, mapping)

    subs = xreplace

    def __add__(self, other):
        return add(self, other)

    def __sub__(self, other):
        return subtract(self, other)

    def __rsub__(self, other):
        return subtract(other, self)

    def __mul__(self, other):
        return multiply(self, other)

    def __neg__(self):
        return multiply(self, -1)

    __radd__, __rmul__ = __add__, __mul__

    def __reduce__(self):
        raise TypeError("cannot pickle a symbolic expression: symbols belong to one ShapeEnv")


class Atom(Expr):
    """What a polynomial counts: a symbol or a function node. As a polynomial it is one times itself."""

    __slots__ = ("terms",)

    def __init__(self, symbols: frozenset):
        super().__init__(symbols)
        self.terms = {(self,): 1}


class Symbol(Atom):
    """An unknown number. One object per name."""

    __slots__ = ("name", "kind")
    is_symbol = True

    def __new__(cls, name: str, kind: type = int):
        result = _interned.get(name)
        if result is None:
            result = object.__new__(cls)
            result.name, result.kind = name, kind
            Atom.__init__(result, frozenset((result,)))
            _interned[name] = result
        return result

    def __init__(self, name: str, kind: type = int):
        pass

    def build(self, leaf, call):
        return leaf(self)

    @property
    def is_unbacked(self) -> bool:
        return self.name[0] == "u" or self.name.startswith("zuf")


class Apply(Atom):
    """A function of expressions, opaque to the polynomial around it."""

    __slots__ = ("function", "args", "kind")

    def build(self, leaf, call):
        return call(self.function.compute, *(build(a, leaf, call) for a in self.args))

    def parts(self):
        return iter(self.args)

    def remake(self, change):
        return self.function.make(*map(change, self.args))


class Sum(Expr):
    """A polynomial that is no single atom: {monomial: coefficient}, a monomial being atoms in order, repeated for powers."""

    __slots__ = ("terms",)

    def build(self, leaf, call):
        from .writing import ordered_terms

        total = None
        for monomial, coefficient in ordered_terms(self):
            value = _build_term(monomial, coefficient, leaf, call)
            total = value if total is None else call(operator.add, total, value)
        return total

    def parts(self):
        return iter(dict.fromkeys(a for m in self.terms for a in m))

    def remake(self, change):
        changed = {a: change(a) for a in self.parts()}
        total = 0
        for monomial, coefficient in self.terms.items():
            value = coefficient
            for atom in monomial:
                value = multiply(value, changed[atom])
            total = add(total, value)
        return total


def _build_term(monomial: tuple, coefficient: int, leaf: Callable, call: Callable):
    value = None
    for atom, times in itertools.groupby(monomial):
        one, power = atom.build(leaf, call), len(list(times))
        one = call(operator.pow, one, power) if power > 1 else one
        value = one if value is None else call(operator.mul, value, one)
    if value is None:
        return coefficient
    return value if coefficient == 1 else call(operator.mul, coefficient, value)


def intern(key: tuple, make: Callable) -> Expr:
    """The one object of this structure."""
    result = _interned.get(key)
    if result is None:
        result = _interned[key] = make()
    return result


def typed(value):
    """A key that tells 1, 1.0 and True apart, which Python counts as equal."""
    return value if isinstance(value, Expr) else (type(value), repr(value))


def apply_node(function, args: tuple, kind: type) -> Apply:
    """The node of a function call that did not simplify."""

    def make() -> Apply:
        node = Apply(symbols_of(*args))
        node.function, node.args, node.kind = function, args, kind
        return node

    return intern((function.name, *map(typed, args)), make)


def symbols_of(*values) -> frozenset:
    found = [v.symbols for v in values if isinstance(v, Expr)]
    return found[0] if len(found) == 1 else frozenset().union(*found)


def polynomial(terms: dict):
    """The expression of these terms: a constant, an atom, or the interned sum. Terms of zero are left out."""
    if 0 in terms.values():
        terms = {m: c for m, c in terms.items() if c}
    if len(terms) < 2:
        if not terms:
            return 0
        ((monomial, coefficient),) = terms.items()
        if not monomial:
            return coefficient
        if coefficient == 1 and len(monomial) == 1:
            return monomial[0]

    def make() -> Sum:
        node = Sum(symbols_of(*(a for m in terms for a in m)))
        node.terms = terms
        return node

    return intern((Sum, frozenset(terms.items())), make)


def terms_of(value) -> dict:
    """{monomial: coefficient} of a constant or an expression."""
    return ({(): value} if value else {}) if value.__class__ is int else value.terms


def remember(table: dict, key, value):
    if len(table) > MEMO_LIMIT:
        table.clear()
    table[key] = value
    return value


sums: dict = {}
products: dict = {}
differences: dict = {}


def add(a, b):
    """a + b of integers."""
    result = sums.get((a, b))
    return result if result is not None else remember(sums, (a, b), _add(a, b))


def _add(a, b):
    if a.__class__ is int:
        if b.__class__ is int:
            return a + b
        a, b = b, a
    terms = dict(a.terms)
    for monomial, coefficient in terms_of(b).items():
        terms[monomial] = terms.get(monomial, 0) + coefficient
    return polynomial(terms)


def subtract(a, b):
    """a - b of integers."""
    result = differences.get((a, b))
    return result if result is not None else remember(differences, (a, b), add(a, multiply(b, -1)))


def multiply(a, b):
    """a * b of integers, expanded."""
    result = products.get((a, b))
    return result if result is not None else remember(products, (a, b), _multiply(a, b))


def _multiply(a, b):
    if a.__class__ is int:
        if b.__class__ is int:
            return a * b
        a, b = b, a
    if b.__class__ is int:
        return polynomial({m: c * b for m, c in a.terms.items()}) if b else 0
    terms: dict = {}
    for left, c in a.terms.items():
        for right, d in b.terms.items():
            monomial = merge(left, right)
            terms[monomial] = terms.get(monomial, 0) + c * d
    return polynomial(terms)


def merge(left: tuple, right: tuple) -> tuple:
    """The product of two monomials."""
    if not left or not right:
        return left or right
    return tuple(sorted(left + right, key=_serial))


_serial = operator.attrgetter("serial")


def remove(monomial: tuple, factor: tuple) -> tuple | None:
    """monomial / factor, or None where it does not divide."""
    rest = list(monomial)
    for atom in factor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def divide_exactly(p, q):
    """p / q where that is a polynomial with integer coefficients, else None."""
    if q == 1:
        return p
    rest, quotient = dict(terms_of(p)), {}
    divisor = terms_of(q)
    if not divisor:
        return None
    lead = max(divisor, key=_leading)
    while rest:
        top = max(rest, key=_leading)
        monomial = remove(top, lead)
        coefficient, left = divmod(rest[top], divisor[lead])
        if monomial is None or left:
            return None
        quotient[monomial] = coefficient
        for m, c in divisor.items():
            at = merge(monomial, m)
            rest[at] = rest.get(at, 0) - coefficient * c
            if not rest[at]:
                del rest[at]
    return polynomial(quotient)


def _leading(monomial: tuple) -> tuple:
    """An order of monomials that products respect: by degree, then lexicographically by power."""
    powers: dict = {}
    for atom in monomial:
        powers[atom.serial] = powers.get(atom.serial, 0) + 1
    return (len(monomial), sorted(((-s, p) for s, p in powers.items()), reverse=True))


def build(value, leaf: Callable, call: Callable):
    """`Expr.build` that takes constants as well."""
    return value.build(leaf, call) if isinstance(value, Expr) else value


def walk(value) -> Iterator[Expr]:
    """All expressions inside, parts before wholes, each once."""
    seen: dict = {}

    def visit(e) -> None:
        if isinstance(e, Expr) and e not in seen:
            for part in e.parts():
                visit(part)
            seen[e] = None

    visit(value)
    return iter(seen)


def free_symbols(values) -> frozenset:
    """The symbols of an expression, or of several."""
    return symbols_of(*values) if isinstance(values, Iterable) else symbols_of(values)


def substitute(value, mapping: Mapping):
    """The expression with parts replaced: {part: what stands for it}, at once and not again in the result."""
    if not isinstance(value, Expr):
        return value
    done: dict = {}

    def change(e):
        if not isinstance(e, Expr):
            return e
        if e in mapping:
            return mapping[e]
        if e not in done:
            done[e] = e.remake(change)
        return done[e]

    return change(value)


def evaluate(value, numbers: Mapping):
    """The value where each symbol has the given number; KeyError where one has none."""
    return build(value, numbers.__getitem__, lambda function, *args: function(*args))
