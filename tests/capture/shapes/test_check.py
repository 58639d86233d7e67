"""Guards as text over sources, as a compiled function, and the words for the one that fails."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.shapes import ConstraintViolationError, DimDynamic, ShapeEnv, StatelessSymbolicContext
from pullback.capture.shapes.contexts import RelaxedUnspecConstraint, StrictMinMaxConstraint, ValueRanges
from pullback.core.tensor import wrap_meta


def fake(env, t, name, context=None):
    shape, stride, _ = env.create_symbolic_sizes_strides_storage_offset(t, name, symbolic_context=context)
    return wrap_meta(shape, t.dtype, stride)


@pytest.fixture
def traced():
    """Two inputs, and what PyTorch 2.13 says of the same program."""
    env = ShapeEnv()
    x, y = fake(env, torch.zeros(6, 4, 2, 1), "L['x']"), fake(env, torch.zeros(5, 4, 1, 1)[::2], "L['y']")
    a, b, c, _ = x.shape
    assert a > b and a == 6 and b * c == 8 and b % 2 == 0 and (b // 2) * 2 == b
    return env, x, y


def test_texts(traced):
    env, x, y = traced
    assert env.produce_guards([x, y], ["L['x']", "L['y']"]) == [
        "L['x'].stride()[0] == L['x'].size()[1]*L['x'].size()[2]",
        "L['x'].stride()[1] == L['x'].size()[2]",
        "L['y'].size()[1] == L['x'].size()[1]",
        "(L['x'].size()[1]*L['x'].size()[2]) == 8",
        "(L['x'].size()[1] % 2) == 0",
        "2 <= L['x'].size()[1] and L['x'].size()[1] <= 5",
        "2 <= L['x'].size()[2]",
        "2 <= L['y'].size()[0]",
        "2 <= L['y'].stride()[0]",
    ]


def test_the_function_and_its_words(traced):
    env, x, y = traced
    check = env.compile_guards([x, y], ["L['x']", "L['y']"])
    good = torch.zeros(6, 2, 4, 1), torch.zeros(9, 2, 1, 1)[::2]
    assert check(*good) is True and check.explain(*good) is None
    bad = torch.zeros(6, 4, 3, 1), torch.zeros(9, 4, 1, 1)[::2]
    assert check(*bad) is False
    assert check.explain(*bad) == "(L['x'].size()[1]*L['x'].size()[2]) == 8 does not hold: 12 == 8"
    assert check.explain(torch.zeros(6), good[1]) == "len(L['x'].size()) == 4 does not hold: 1 == 4"
    assert "L['x'].size()[0] == 6 does not hold: 7 == 6" in check.explain(torch.zeros(7, 2, 4, 1), good[1])


def test_the_expression_is_evaluated_for_other_arguments(traced):
    env, x, y = traced
    code = env.produce_guards_expression([x, y])
    good, bad = (
        (torch.zeros(6, 2, 4, 1), torch.zeros(9, 2, 1, 1)[::2]),
        (torch.zeros(6, 4, 3, 1), torch.zeros(9, 4, 1, 1)),
    )
    assert env.evaluate_guards_expression(code, good) and not env.evaluate_guards_expression(code, bad)
    assert env.evaluate_guards_for_args([x, y], good) and not env.evaluate_guards_for_args([x, y], bad)


def test_symbols_are_bound():
    env = ShapeEnv()
    x = fake(env, torch.zeros(6, 4), "L['x']")
    bound = env.bind_symbols([x], [torch.zeros(9, 5)])
    assert {str(s): v for s, v in bound.items()} == {"s77": 9, "s27": 5}


def test_a_symbol_that_only_a_multiple_shows():
    env = ShapeEnv()
    (s,) = fake(env, torch.zeros(6), "L['x']").shape
    check = env.compile_guards([wrap_meta((s * 2,), torch.float32)], ["L['y']"])
    assert check(torch.zeros(8)) and not check(torch.zeros(7)) and not check(torch.zeros(2))


CONSTRAINED = [
    (RelaxedUnspecConstraint(), lambda a, b: a == 4, r"You marked L\['x'\].size\(\)\[0\] as dynamic but your code specialized it to be a constant \(4\)"),
    (RelaxedUnspecConstraint(), lambda a, b: a > 3, None),
    (RelaxedUnspecConstraint(), lambda a, b: a == b, None),
    (StrictMinMaxConstraint(vr=ValueRanges(2, 10)), lambda a, b: a > 3, "Not all values of"),
    (StrictMinMaxConstraint(vr=ValueRanges(2, 10)), lambda a, b: a < 20, None),
]  # fmt: skip


@pytest.mark.parametrize(("constraint", "ask", "words"), CONSTRAINED)
def test_promises_of_the_user(constraint, ask, words):
    env = ShapeEnv()
    context = StatelessSymbolicContext([DimDynamic.DYNAMIC] * 2, constraint_sizes=[constraint, None])
    x = fake(env, torch.zeros(4, 4), "L['x']", context)
    assert ask(*x.shape)
    if words is None:
        env.produce_guards([x], ["L['x']"])
    else:
        with pytest.raises(ConstraintViolationError, match=words):
            env.produce_guards([x], ["L['x']"])
