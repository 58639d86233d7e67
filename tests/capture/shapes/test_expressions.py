"""The algebra: one object per value, constants fold, text as PyTorch's."""

from __future__ import annotations

import gc
import operator

import pytest

from pullback.capture.shapes import expressions, functions
from pullback.capture.shapes.expressions import Symbol, divide_exactly, evaluate, substitute, walk
from pullback.capture.shapes.functions import (
    absolute,
    ceil,
    choice,
    float_add,
    float_mul,
    floor,
    floordiv,
    int_truediv,
    maximum,
    minimum,
    mod,
    power,
    round_to_int,
    to_float,
    trunc,
)
from pullback.capture.shapes.relations import compare, logic, negate
from pullback.capture.shapes.writing import write_python

a, b, c = Symbol("s68"), Symbol("s79"), Symbol("s80")

PRINTED = [  # what PyTorch 2.13 prints
    (a + b, "s68 + s79"),
    (2 * a, "2*s68"),
    (2 * a + 1, "2*s68 + 1"),
    (a - b, "s68 - s79"),
    (a * b * 2, "2*s68*s79"),
    (floordiv(a, 2), "(s68//2)"),
    (mod(a, 2), "Mod(s68, 2)"),
    (a * a, "s68**2"),
    (int_truediv(a, 2), "IntTrueDiv(s68, 2)"),
    (maximum(1, a), "Max(1, s68)"),
    (minimum(a, b), "Min(s68, s79)"),
    (to_float(a), "ToFloat(s68)"),
    (functions.UNARY["sqrt"](to_float(a)), "OpaqueUnaryFn_sqrt(ToFloat(s68))"),
    (-a, "-s68"),
    (a * a + a * b + 1, "s68**2 + s68*s79 + 1"),
    (2 * floordiv(a + 1, 2), "2*(((s68 + 1)//2))"),
    (floordiv(a - 1, 2) + 1, "(((s68 - 1)//2)) + 1"),
    (-floordiv(a, 2), "-((s68//2))"),
    (floordiv(a, b), "(s68//s79)"),
    (floordiv(4 * a, 6), "((2*s68)//3)"),
    (float_mul(to_float(a), 1.5), "1.5*ToFloat(s68)"),
    (float_add(to_float(a), 0.5), "ToFloat(s68) + 0.5"),
    (1 - a, "1 - s68"),
    (3 - 2 * a + b, "-2*s68 + s79 + 3"),
    (round_to_int(int_truediv(a, 2)), "RoundToInt(IntTrueDiv(s68, 2))"),
    (trunc(int_truediv(a, 2)), "TruncToInt(IntTrueDiv(s68, 2))"),
    (b * floordiv(a, 2), "s79*((s68//2))"),
    (choice(compare("==", a, b), a, b), "Piecewise((s68, Eq(s68, s79)), (s79, True))"),
    (power(2, a), "PowByNatural(2, s68)"),
    (mod(a, b + 1), "Mod(s68, s79 + 1)"),
    (compare("==", a, b), "Eq(s68, s79)"),
    (compare("!=", a, b), "Ne(s68, s79)"),
    (compare(">", a - b, 0), "s68 - s79 > 0"),
    (logic("and", compare(">", a, 2), compare(">", b, 2)), "(s68 > 2) & (s79 > 2)"),
    (logic("or", compare(">", a, 2), compare(">", b, 2)), "(s68 > 2) | (s79 > 2)"),
]


@pytest.mark.parametrize(("expr", "text"), PRINTED, ids=[text for _, text in PRINTED])
def test_text_is_pytorchs(expr, text):
    assert str(expr) == text


SAME = [
    ((a + b) * (a - b), a * a - b * b),
    (floordiv(a * b, b), a),
    (floordiv(2 * a + 4, 2), a + 2),
    (floordiv(a * (b + 1), b + 1), a),
    (floordiv(a * b * c, 2 * a * c), floordiv(b, 2)),
    (floordiv(floordiv(a, 2), 3), floordiv(a, 6)),
    (mod(a * b, 2 * a), a * mod(b, 2)),
    (mod(4 * a + b, 2), mod(b, 2)),
    (maximum(a, maximum(b, 1)), maximum(1, a, b)),
    (maximum(a, a + 1), a + 1),
    (minimum(a, a + 1), a),
    (power(a, 3), a * a * a),
    (floor(float_mul(to_float(a), 2.0)), 2 * a),
    (trunc(to_float(a)), a),
    (negate(compare("<", a, b)), compare(">=", a, b)),
    (logic("and", compare(">", a, 2), compare(">", a, 2)), compare(">", a, 2)),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=[str(other) for _, other in SAME])
def test_equal_expressions_are_one_object(one, other):
    assert one is other


def test_constants_are_numbers():
    assert a - a == 0 and type(a - a) is int
    assert type(floordiv(7, 2)) is int and floordiv(7, 2) == 3
    assert mod(2 * a, 2) == 0
    assert compare("<", a, a + 1) is True
    assert compare("==", 2 * a, 2 * a + 1) is False
    assert logic("and", compare("<", a, b), False) is False
    assert logic("or", compare("<", a, b), compare(">=", a, b)) is True


def test_one_and_true_and_float_one_are_kept_apart():
    assert float_add(to_float(a), 1.0) is not float_add(to_float(a), 2.0)
    assert str(compare("==", to_float(a), 1.0)) == "Eq(ToFloat(s68), 1.0)"
    assert str(compare("==", to_float(b), 1)) == "Eq(ToFloat(s79), 1)"


def test_division_by_zero_raises():
    with pytest.raises(ZeroDivisionError):
        floordiv(a, 0)
    with pytest.raises(ZeroDivisionError):
        mod(a, 0)


def test_exact_division():
    assert divide_exactly((a + b) * (a + 2 * c), a + b) is a + 2 * c
    assert divide_exactly(a * b + 1, a) is None
    assert divide_exactly(a, 0) is None


def test_substitution_is_at_once():
    assert substitute(a + 2 * b, {a: b, b: a}) is b + 2 * a
    assert substitute(floordiv(a, 2) + b, {a: 9}) is b + 4
    assert substitute(compare("<", a, b), {a: 1, b: 2}) is True


def test_build_names_the_functions_that_make_the_value():
    calls = []

    def call(function, *parts):
        calls.append(function)
        return function(*parts)

    e = floordiv(2 * a + 1, 3) * b
    assert e.build({a: 7, b: 5}.__getitem__, call) == 25
    assert operator.floordiv in calls and operator.mul in calls and operator.add in calls
    assert [str(p) for p in walk(floordiv(a + 1, 2))] == ["s68", "s68 + 1", "((s68 + 1)//2)"]


def test_python_text_evaluates_to_the_value():
    values = {a: 7, b: 5}
    for e in (floordiv(a, 2) * b - 3, mod(a, b), maximum(a, b + 3), -a, (a + b) * (a - 2), ceil(int_truediv(a, 2)),
              choice(compare("<", a, b), a, b), absolute(b - a), power(2, b), compare("<=", a - b, 2 * b)):  # fmt: skip
        text = write_python(e, lambda s: {a: "x", b: "y"}[s])
        assert eval(text, {"x": 7, "y": 5, "math": __import__("math")}) == evaluate(e, values), text


def test_what_is_no_longer_used_is_forgotten():
    before = len(expressions._interned)
    result = [Symbol(f"s_gone{i}") * 2 + 1 for i in range(50)]
    assert len(expressions._interned) >= before + 50
    del result
    for table in (expressions.sums, expressions.products, expressions.differences):
        table.clear()
    gc.collect()
    assert len(expressions._interned) < before + 50
