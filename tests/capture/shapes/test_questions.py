"""Functions that ask of a number, symbolic or plain."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.shapes import ShapeEnv, questions
from pullback.capture.shapes.config import config
from pullback.core.tensor import wrap_meta


@pytest.fixture
def env():
    return ShapeEnv()


@pytest.fixture
def a(env):
    return env.create_symintnode(env.create_symbol(6, "L['x'].size()[0]"))


@pytest.fixture
def u(env):
    return env.create_unbacked_symint()


def test_careful_questions(env, a, u):
    assert questions.guard_or_false(u == 7) is False and questions.guard_or_true(u == 7) is True
    assert questions.guard_or_false(a == 6) is True and len(env.guards) == 1
    assert questions.guard_or_false(True) is True and questions.guard_or_true(False) is False


def test_static_questions_never_guard(env, a, u):
    assert questions.statically_known_true(a > 1) and not questions.statically_known_true(a > 5)
    assert questions.statically_known_false(a < 2) and not questions.statically_known_false(u < 2)
    assert questions.statically_known_true(True) and questions.statically_known_false(False)
    assert not env.guards


def test_definite_numbers(env, a):
    assert questions.guard_int(a) == 6 and questions.guard_int(5) == 5 and questions.guard_scalar(2.5) == 2.5
    assert questions.hint_int(a * 2) == 12 and questions.hint_int(3) == 3
    with pytest.raises(AssertionError):
        questions.guard_int(2.5)


def test_symbols_in_things(env, a, u):
    t = wrap_meta((a, 2), torch.float32)
    assert {str(s) for s in questions.free_symbols([t, {"k": u}, 3])} == {"s77", "u0"}
    assert {str(s) for s in questions.free_unbacked_symbols((a, u))} == {"u0"}
    assert questions.has_free_symbols(t) and not questions.has_free_symbols(wrap_meta((2,), torch.float32))
    assert questions.has_symbolic_sizes_strides(t) and not questions.has_symbolic_sizes_strides(torch.zeros(2))
    assert questions.is_symbolic(a) and not questions.is_symbolic(3) and questions.is_concrete_int(3)
    assert questions.is_expr_static(3) and not questions.is_expr_static(a)


def test_ranges(env, u):
    questions.constrain_range(u, min=3, max=5)
    assert env.bounds(u.node.expr) == (3, 5) and not questions.has_static_value(u)
    questions.constrain_range(u, min=5)
    assert questions.has_static_value(u)
    with pytest.raises(ValueError, match="Invalid value 7 for range"):
        questions.constrain_range(7, min=0, max=5)


def test_unify(env, a, u):
    questions.constrain_unify(u, a)
    assert str(u) == "s77"
    with pytest.raises(AssertionError):
        questions.constrain_unify(1, 2)


def test_logic_over_sequences(env, a, u):
    assert questions.sym_eq((a, 2), (a, 2)) is True and questions.sym_eq((a,), (a, 2)) is False
    assert str(questions.sym_and(a > 7, u > 2)) == "(s77 > 7) & (u0 > 2)" and questions.sym_or(False, True) is True
    assert not env.guards


def test_keys_by_expression(env, a):
    one, two = questions.SymIntEqByExpr(a * 2), questions.SymIntEqByExpr(a + a)
    assert one == two and hash(one) == hash(two) and one != questions.SymIntEqByExpr(a)
    assert questions.SymIntEqByExpr(4) == questions.SymIntEqByExpr(4)
    assert not env.guards


def test_the_names_of_torch():
    from pullback.compat.shape_rows import ROWS
    from pullback.compat.torch import _resolve

    for rows in ROWS.values():
        for name, home in rows.items():
            if name != "*" and not home.startswith("torch."):
                assert _resolve(home) is not None


def test_careful_questions_may_look_at_no_example():
    env = ShapeEnv()
    number = env.create_symint(9, "s")
    with config.patch(backed_size_oblivious=True):
        assert questions.guard_or_false(number == 9) is False and questions.guard_or_true(number != 9) is True
        assert questions.guard_or_false(number == number) is True and not env.guards
    assert questions.guard_or_false(number == 9) is True and len(env.guards) == 1
