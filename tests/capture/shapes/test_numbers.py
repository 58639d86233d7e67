"""SymInt, SymFloat, SymBool: numbers that keep their expression, and say so when they must be definite."""

from __future__ import annotations

import copy
import math
import operator
import pickle

import numpy as np
import pytest

import pullback as torch
from pullback.capture.shapes import ShapeEnv, SymBool, SymFloat, SymInt
from pullback.core import symbolic


@pytest.fixture
def env():
    return ShapeEnv()


@pytest.fixture
def pair(env):
    result = [env.create_symbol(v, f"L['x'].size()[{d}]") for d, v in enumerate((7, 4))]
    return [env.create_symintnode(e) for e in result]


BINARY = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.truediv, operator.pow,
    operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor, divmod,
    symbolic.sym_max, symbolic.sym_min,
]  # fmt: skip


def hint(value):
    if isinstance(value, tuple):
        return tuple(map(hint, value))
    return value.node.hint if hasattr(value, "node") else value


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_arithmetic_gives_pythons_values_and_no_guard(function, pair, env):
    a, b = pair
    for x, y in ((a, b), (a, 3), (3, a), (a, np.int64(3)), (a, True)):
        want = function(*(int(hint(v)) if not isinstance(v, bool) else v for v in (x, y)))
        got = function(x, y)
        assert hint(got) == want, (x, y)
    assert not env.guards


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "mod", "floordiv", "pow"])
def test_floats_make_floats(name, pair, env):
    function = getattr(operator, name)
    for x, y in ((pair[0], 1.5), (1.5, pair[0]), (pair[0] / 2, 2), (pair[0] / 2, pair[1] / 3)):
        got = function(x, y)
        assert isinstance(got, SymFloat) and hint(got) == pytest.approx(function(hint(x), hint(y)))
    assert not env.guards


def test_constants_become_plain_numbers(pair):
    a, b = pair
    assert type(a - a) is int and type(a * 0) is int and a - a == 0
    assert (a == a) is True and (a < a) is False
    assert (a > 1) is not True  # a question: what is known of sizes is asked when it is decided


def test_unary_and_rounding(pair):
    a, _ = pair
    assert str(-a) == "-s77" and +a is a and abs(a) is a and ~a is not a and hint(~a) == ~7
    assert math.floor(a) is a and math.ceil(a) is a and round(a) is a and math.trunc(a) is a
    assert hint(math.floor(a / 2)) == 3 and hint(math.ceil(a / 2)) == 4 and hint(round(a / 4)) == 2
    assert hint(round(a / 4, 1)) == 1.8
    for name in ("sqrt", "cos", "sin", "tan", "cosh", "sinh", "tanh", "atan", "log2"):
        got = getattr(symbolic, f"sym_{name}")(a)
        assert isinstance(got, SymFloat) and hint(got) == getattr(math, name)(7)


def test_conversions_keep_symbols(pair):
    a, b = pair
    assert isinstance(torch.sym_float(a), SymFloat) and torch.sym_int(torch.sym_float(a)) is a
    assert isinstance(torch.sym_not(a < b), SymBool) and str(torch.sym_not(a < b)) == "s77 >= s27"
    picked = torch.sym_ite(a < b, a, b)
    assert isinstance(picked, SymInt) and hint(picked) == 4
    assert str(torch.sym_max(a, b)) == "Max(s27, s77)" and str(torch.sym_sum([a, b, 1])) == "s27 + s77 + 1"
    assert not a.node.shape_env.guards


def test_definite_numbers_are_guards(pair, env):
    a, b = pair
    assert int(a) == 7 and [str(g.expr) for g in env.guards] == ["Eq(s77, 7)"]
    assert str(a) == "7" and type(a + 1) is int and str(a + b) == "s27 + 7"
    assert list(range(b)) == [0, 1, 2, 3] and str(env.guards[-1].expr) == "Eq(s27, 4)"
    assert len(env.guards) == 2
    assert int(a * b) == 28 and len(env.guards) == 2


def test_hashing_and_float_fix_the_value(pair, env):
    a, b = pair
    assert hash(a) == hash(7) and len(env.guards) == 1
    assert float(b) == 4.0 and len(env.guards) == 2
    assert {7: "x"}[a] == "x"


def test_a_decision_names_the_users_line(pair, env):
    a, b = pair
    if a > b:  # the line that asked
        pass
    guard = env.guards[0]
    assert str(guard.expr) == "s77 > s27"
    assert guard.sloc.filename == __file__ and "the line that asked" in guard.reason


def test_numpy_does_not_swallow_them(pair):
    a, _ = pair
    with pytest.raises(TypeError, match="cannot make an array of the symbolic number s77"):
        np.asarray(a)
    with pytest.raises(TypeError):
        np.asarray([a, 1])
    assert str(np.int64(2) * a) == "2*s77"


def test_logic(pair, env):
    a, b = pair
    both, either = (a > 2) & (b > 2), (a > 2) | False
    assert str(both) == "(s77 > 2) & (s27 > 2)" and str(either) == "s77 > 2"
    assert bool(both) is True and bool((a > 2) & True) is True
    assert bool((a == b) == False) is True  # noqa: E712


def test_what_others_ask_of_them(pair, env):
    a, _ = pair
    assert a.is_symbolic and a.node.is_symbolic() and a.node.pytype is int and a.node.shape_env is env
    assert a.node.hint == 7 and a.node.maybe_as_int() is None and a.node.constant is None and a.node.has_hint()
    assert copy.deepcopy(a) is a and copy.copy(a) is a
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(a)
    assert f"{a:>5}" == "  s77" and repr(torch.Size([a, 2])) == "torch.Size([s77, 2])"
    assert isinstance(a, torch.SymInt) and not isinstance(3, torch.SymInt)


def test_no_answer_for_what_is_no_number(pair):
    a, _ = pair
    assert (a == "x") is False and (a != None) is True  # noqa: E711
    with pytest.raises(TypeError):
        a + "x"
