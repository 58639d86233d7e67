"""ShapeEnv: symbols from sources, guards only where something new was decided, errors in PyTorch's words."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.shapes import ConstraintViolationError, DimDynamic, GuardOnDataDependentSymNode, ShapeEnv
from pullback.capture.shapes.expressions import Symbol
from pullback.core import symbolic


def sizes(env, *values, name="x"):
    return [env.create_symintnode(env.create_symbol(v, f"L['{name}'].size()[{d}]")) for d, v in enumerate(values)]


def guards(env) -> list[str]:
    return [str(g.expr) for g in env.guards]


def test_implied_questions_record_nothing():
    env = ShapeEnv()
    a, b = sizes(env, 6, 4)
    for question in (a > 1, a >= 2, a != 0, a != 1, 2 * a > a, a * b > a, a * b >= 4, a + b > b, a // 2 >= 1, a % 3 < 3,
                     (a + 1) // 2 <= a, a - a // 2 == (a + 1) // 2, symbolic.sym_max(a, b) >= b):  # fmt: skip
        assert bool(question) is True
    for question in (a < 2, a == 0, a == 1, a * b < a, 2 * a == 2 * b + 1, a < a // 2):
        assert bool(question) is False
    assert not env.guards


def test_what_was_decided_is_known():
    env = ShapeEnv()
    a, b, c = sizes(env, 6, 4, 9)
    assert a > b and c > a
    before = len(env.guards)
    assert c > b and a >= b and a != b and not b >= c and a + 1 > b and 2 * c > 2 * b
    assert len(env.guards) == before == 2
    assert a < 10 and a < 11 and a <= 9 and len(env.guards) == 3


def test_equal_symbols_are_unified():
    env = ShapeEnv(duck_shape=False)
    a, b, c = sizes(env, 6, 6, 12)
    assert a == b
    assert str(a) == str(b) and a - b == 0 and str(a + b) == f"2*{a}"
    assert c == a + b and str(c) == f"2*{a}" and str(c // 2) == str(a)
    assert len(env.guards) == 2


def test_a_fixed_symbol_prints_as_its_value():
    env = ShapeEnv()
    a, b = sizes(env, 6, 4)
    assert a * b == 24 and a == 6
    assert str(a) == "6" and str(a * b) == "24" and str(a + b) == "10", "6*b == 24 fixes the other one as well"


def test_divisibility_is_known():
    env = ShapeEnv()
    (a,) = sizes(env, 12)
    assert a % 4 == 0
    assert a % 2 == 0 and 4 * (a // 4) == a and (a // 4) * 4 == a and a >= 4
    assert guards(env) == ["Eq(Mod(s77, 4), 0)"]


def test_names_follow_from_sources_as_in_pytorch():
    env = ShapeEnv()
    x = env.create_symbolic_sizes_strides_storage_offset(torch.zeros(6, 4, 2, 1), "L['x']")
    assert str(x[0]) == "(s77, s27, s53, 1)" and str(x[1]) == "(s27*s53, s53, 1, 1)" and x[2] == 0
    y = env.create_symbolic_sizes_strides_storage_offset(torch.zeros(5, 4, 1, 1)[::2], "L['y']")
    assert str(y[0]) == "(s17, s27, 1, 1)" and str(y[1]) == "(s97, 1, 1, 1)"
    z = env.create_symbolic_sizes_strides_storage_offset(torch.zeros(60).as_strided((5, 3), (7, 2), 3), "L['z']")
    assert str(z) == "((s68, s17), (s91, s53), s17)", "duck shaping: 3 was s17, 2 was s53"


def test_duck_shaping_can_be_off():
    shapes = {}
    for duck in (True, False):
        env = ShapeEnv(duck_shape=duck)
        a, b = sizes(env, 5, 5)
        shapes[duck] = a is b
    assert shapes == {True: True, False: False}


def test_marks_and_defaults():
    t = torch.zeros(5, 5, 3)
    t._dynamo_dynamic_indices, t._dynamo_static_indices = {0}, {2}
    env = ShapeEnv()
    assert str(env.create_symbolic_sizes_strides_storage_offset(t, "L['x']")[0]) == "(s77, s27, 3)"
    env = ShapeEnv(assume_static_by_default=True)
    assert str(env.create_symbolic_sizes_strides_storage_offset(t, "L['x']")[0]) == "(s77, 5, 3)"
    env = ShapeEnv(specialize_zero_one=False)
    assert isinstance(env.create_symbol(1, "L['n']"), Symbol)
    assert ShapeEnv().create_symbol(1, "L['n']") == 1
    assert ShapeEnv().create_symbol(5, "L['n']", DimDynamic.STATIC) == 5


def test_numbers_as_inputs_have_any_sign():
    env = ShapeEnv()
    n = env.create_unspecified_symint_and_symbol(-3, "L['n']", DimDynamic.DYNAMIC)
    assert n < 0 and guards(env) == [f"{n} < 0"]
    f = env.create_symfloatnode(env.create_symbol(0.5, "L['f']", positive=None), hint=0.5)
    assert str(f).startswith("zf") and f < 1.0 and f * 2 == 1.0 and len(env.guards) == 3


def test_data_dependent_decisions_raise_in_pytorchs_words():
    env = ShapeEnv()
    u = env.create_unbacked_symint()
    with pytest.raises(
        GuardOnDataDependentSymNode, match=r"Could not guard on data-dependent expression u0 > 5 \(unhinted: u0 > 5\)"
    ):
        bool(u > 5)
    with pytest.raises(
        GuardOnDataDependentSymNode, match="Could not extract specialized integer from data-dependent expression u0"
    ):
        int(u)
    assert (
        str(u) == "u0" and str(env.create_unbacked_symint()) == "u1" and str(env.create_unbacked_symfloat()) == "zuf0"
    )


def test_checks_teach():
    env = ShapeEnv()
    u, (a,) = env.create_unbacked_symint(), sizes(env, 6)
    torch._check(u >= 3)
    torch._check(u < 10)
    assert u >= 2 and u != 11 and not u > 9
    assert [str(r.expr) for r in env.deferred_runtime_asserts[Symbol("u0")]] == ["u0 >= 3", "u0 < 10"]
    torch._check(u == a)
    assert str(u) == "s77" and not env.guards
    with pytest.raises(RuntimeError, match="too many"):
        torch._check(env.create_unbacked_symint() * 0 == 1, lambda: "too many")


def test_sizes_from_data():
    env = ShapeEnv()
    u = env.create_unbacked_symint()
    torch._check_is_size(u)
    assert u >= 0 and u + 1 > 0
    with pytest.raises(GuardOnDataDependentSymNode, match="Size-like symbols: u0"):
        bool(u == 0)
    assert (u == 0).node.guard_size_oblivious() is False and (u == 1).node.guard_size_oblivious() is False
    torch._check_is_size(u, max=8)
    assert env.bounds(u.node.expr) == (0, 8)


def test_contradictions_are_found():
    env = ShapeEnv()
    u, v = env.create_unbacked_symint(), env.create_unbacked_symint()
    torch._check(u > v)
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        torch._check(v > u)
    env.constrain_symbol_range(u.node.expr, 2, 5)
    with pytest.raises(ValueError, match="Invalid ranges"):
        env.constrain_symbol_range(u.node.expr, 7, 9)
    with pytest.raises(ConstraintViolationError, match="Static shape constraint of 4 does not match input size of 5"):
        from pullback.capture.shapes.contexts import StrictMinMaxConstraint, ValueRanges

        env.create_symbol(5, "L['n']", constraint_dim=StrictMinMaxConstraint(vr=ValueRanges(4, 4)))


def test_frozen_suppressed_refused():
    env = ShapeEnv()
    a, b = sizes(env, 6, 4)
    with env.suppress_guards():
        assert a > b
    assert not env.guards
    with env.error_on_new_guards(), pytest.raises(RuntimeError, match="a new guard s77 > s27 was not expected here"):
        bool(a > b)
    assert not env.guards
    env.freeze()
    with pytest.warns(UserWarning, match="Ignored guard s77 > s27"):
        assert a > b
    assert not env.guards


def test_open_questions_are_asked_again_when_more_is_known():
    env = ShapeEnv()
    u = env.create_unbacked_symint()
    assert env.statically((u > 3).node.expr) is None
    env.constrain_symbol_range(u.node.expr, 5, None)
    assert env.statically((u > 3).node.expr) is True


def test_hints():
    env = ShapeEnv()
    (a,) = sizes(env, 6)
    u = env.create_unbacked_symint()
    assert env.size_hint((a * 2).node.expr) == 12 and env.size_hint(u.node.expr, allow_none=True) is None
    assert env.optimization_hint((a + u).node.expr, fallback=100) == 100
    with pytest.raises(GuardOnDataDependentSymNode):
        env.size_hint(u.node.expr)


def test_importing_the_package_does_not_load_this():
    import subprocess
    import sys

    code = "import sys, pullback; assert 'pullback.capture' not in sys.modules; pullback.SymInt; assert 'pullback.capture.shapes' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
