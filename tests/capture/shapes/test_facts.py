"""Proofs from what is known: bounds, inequalities combined, equalities solved."""

from __future__ import annotations

import math

import pytest

from pullback.capture.shapes.expressions import Symbol
from pullback.capture.shapes.facts import Contradiction, Facts, normalize, solve, tidy
from pullback.capture.shapes.functions import floordiv, maximum, minimum, mod
from pullback.capture.shapes.relations import compare, logic

a, b, c = Symbol("s1"), Symbol("s2"), Symbol("s3")


@pytest.fixture
def facts():
    result = Facts()
    for s in (a, b, c):
        result.set_range(s, 2, math.inf)
    return result


BOUNDS = [
    (a, (2, math.inf)),
    (a * b, (4, math.inf)),
    (a * b - a, (2, math.inf)),
    (-a, (-math.inf, -2)),
    (floordiv(a, 3), (0, math.inf)),
    (mod(a, 3), (0, 2)),
    (maximum(a, 5), (5, math.inf)),
    (minimum(a, 5), (2, 5)),
    (a - b, (-math.inf, math.inf)),
]


@pytest.mark.parametrize(("expr", "bounds"), BOUNDS, ids=[str(e) for e, _ in BOUNDS])
def test_bounds(facts, expr, bounds):
    assert facts.bounds(expr) == bounds


def test_inequalities_are_combined(facts):
    facts.learn(compare("<", a, b))
    facts.learn(compare("<=", b, c))
    assert facts.decide(compare("<", a, c)) is True and facts.decide(compare(">=", a, c)) is False
    assert facts.decide(compare("==", a, c)) is False and facts.decide(compare("<", a + 1, c)) is None


def test_an_extreme_is_the_argument_that_ranges_choose(facts):
    assert facts.decide(compare("==", maximum(1, a), a)) is True
    assert facts.decide(compare("==", minimum(1, a), 1)) is True
    assert facts.decide(compare("==", maximum(3, a), a)) is None


def test_a_positive_factor_does_not_matter(facts):
    facts.learn(compare("<", a * c, b * c))
    assert facts.decide(compare("<", a, b)) is True


def test_what_is_not_zero_moves_a_bound(facts):
    facts.learn(compare("!=", a, 2))
    assert facts.range_of(a) == (3, math.inf)
    facts.learn(compare("!=", a, 7))
    assert facts.decide(compare("==", a, 7)) is False and facts.decide(compare("==", a, 8)) is None


def test_logic(facts):
    facts.learn(logic("or", compare("<", a, 2), compare(">", b, 4)))  # the first cannot be
    assert facts.decide(compare(">=", b, 5)) is True
    assert facts.decide(logic("and", compare(">", b, 3), compare(">", a, 1))) is True
    assert facts.decide(logic("or", compare("<", b, 3), compare("<", a, 1))) is False


def test_contradictions(facts):
    with pytest.raises(Contradiction):
        facts.learn(compare("<", a, 2))
    facts.learn(compare("<", a, b))
    with pytest.raises(Contradiction):
        facts.learn(compare("<", b, a))


def test_replacing_keeps_what_is_known(facts):
    facts.learn(compare("<", b, c))
    facts.learn(compare(">=", b, 7))
    facts.replace(b, 2 * a)
    assert facts.decide(compare("<", 2 * a, c)) is True and facts.range_of(a) == (4, math.inf)


def test_remainders_are_divisions():
    assert normalize(mod(a, 2)) is a - 2 * floordiv(a, 2)
    assert normalize(floordiv(a + 5, 2)) is floordiv(a + 1, 2) + 2


def test_equalities_are_solved():
    assert solve(compare("==", 2 * a, 2 * b + 4), [a, b]) == (a, b + 2)
    assert solve(compare("==", a * b, 4), [a, b]) is None
    assert solve(compare("==", a + floordiv(a, 2), b), [a, b]) == (b, a + floordiv(a, 2))


def test_tidy_drops_common_factors(facts):
    assert tidy(compare("==", 24 * a * b, c * a * b), facts) is compare("==", c, 24)
    assert tidy(compare("==", a, b), facts) is compare("==", a, b)
