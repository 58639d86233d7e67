"""What must hold of any expression and any program of shapes, found by random search.

Always holds: symbolic arithmetic gives what Python gives on the same numbers; rewriting keeps values; bounds contain values; and
inputs satisfy the guards of a trace exactly where every question asked on the way has the same answer.
"""

from __future__ import annotations

import operator

from hypothesis import example, given
from hypothesis import strategies as st

from pullback.capture.shapes import ShapeEnv
from pullback.capture.shapes.expressions import Expr, evaluate
from pullback.capture.shapes.facts import normalize
from pullback.core.symbolic import sym_max, sym_min

NAMES = ("a", "b", "c")
BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "max": sym_max, "min": sym_min,
    "//": lambda x, y: x // (y * y + 1), "%": lambda x, y: x % (y * y + 1),
}  # fmt: skip
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
SIZES = st.tuples(*(st.integers(2, 12) for _ in NAMES))
ANY_SIZES = st.tuples(*(st.integers(0, 12) for _ in NAMES))

leaves = st.sampled_from(NAMES) | st.integers(-6, 6)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.tuples(st.sampled_from(sorted(BINARY)), inner, inner)
        | st.tuples(st.sampled_from(("//k", "%k")), inner, st.integers(1, 6))
    ),
    max_leaves=7,
)
questions = st.tuples(st.sampled_from(sorted(COMPARE)), trees, trees)


def calculate(tree, numbers: dict):
    if isinstance(tree, str):
        return numbers[tree]
    if isinstance(tree, int):
        return tree
    op, left, right = tree
    x = calculate(left, numbers)
    if op in ("//k", "%k"):
        return x // right if op == "//k" else x % right
    return BINARY[op](x, calculate(right, numbers))


def ask(question, numbers: dict):
    op, left, right = question
    return COMPARE[op](calculate(left, numbers), calculate(right, numbers))


def symbolic(values, **options) -> tuple[ShapeEnv, dict]:
    env = ShapeEnv(duck_shape=False, **options)
    result = [env.create_symintnode(env.create_symbol(v, n)) for n, v in zip(NAMES, values, strict=True)]
    return env, dict(zip(NAMES, result, strict=True))


def values_of(numbers: dict, values) -> dict:
    return {numbers[n].node._expr: v for n, v in zip(NAMES, values, strict=True)}


def plain(values) -> dict:
    return dict(zip(NAMES, values, strict=True))


@example(("%", "a", ("-", "a", "b")), (2, 2, 2), (2, 2, 2))
@given(trees, SIZES, SIZES)
def test_arithmetic_is_pythons(tree, hints, others):
    env, numbers = symbolic(hints)
    result = calculate(tree, numbers)
    expr = result.node.expr if hasattr(result, "node") else result
    assert evaluate(expr, values_of(numbers, hints)) == calculate(tree, plain(hints))
    assert evaluate(expr, values_of(numbers, others)) == calculate(tree, plain(others))
    for (
        guard
    ) in env.guards:  # none but that a divisor is not zero, where no rule sees that a sum of squares is positive
        assert evaluate(guard.expr, values_of(numbers, others))
        assert guard.expr.operator == "!="
    if isinstance(expr, Expr):
        assert result.node.hint == calculate(tree, plain(hints))


@given(trees, SIZES)
def test_the_normal_form_of_proofs_keeps_values(tree, sizes):
    env, numbers = symbolic(sizes)
    result = calculate(tree, numbers)
    if hasattr(result, "node"):
        assert evaluate(normalize(result.node.expr), values_of(numbers, sizes)) == calculate(tree, plain(sizes))


@given(trees, SIZES, SIZES)
def test_bounds_contain_every_value(tree, hints, others):
    env, numbers = symbolic(hints)
    result = calculate(tree, numbers)
    if hasattr(result, "node"):
        low, high = env.bounds(result.node.expr)
        assert low <= calculate(tree, plain(others)) <= high


@given(trees, SIZES)
def test_building_an_expression_again_gives_its_value(tree, sizes):
    _, numbers = symbolic(sizes)
    result = calculate(tree, numbers)
    if hasattr(result, "node"):
        values = values_of(numbers, sizes)
        again = result.node.expr.build(values.__getitem__, lambda function, *parts: function(*parts))
        assert again == calculate(tree, plain(sizes))


def trace(program, values) -> tuple[ShapeEnv, dict, list]:
    env, numbers = symbolic(values)
    return env, numbers, [bool(ask(q, numbers)) for q in program]


@example(
    [("==", "a", ("-", ("*", 2, "b"), "c"))], (5, 4, 3), [(1, 2, 3)]
)  # a is written by the others, and still a size
@given(st.lists(questions, min_size=1, max_size=5), SIZES, st.lists(ANY_SIZES, min_size=1, max_size=8))
def test_guards_hold_exactly_where_the_path_is_the_same(program, hints, others):
    guards_are_exact(program, hints, others)


def guards_are_exact(program, hints, others) -> None:
    env, numbers, path = trace(program, hints)
    assert path == [ask(q, plain(hints)) for q in program]
    check = env.compile_guards([numbers[n] for n in NAMES], NAMES)
    for values in [hints, *others]:
        same = min(values) >= 2 and path == [ask(q, plain(values)) for q in program]
        assert check(*values) == same, (
            f"{check.code}\n{values}: guards {[g.expr for g in env.guards]}, same path {same}"
        )
        assert (check.explain(*values) is None) == same


NEAR = st.lists(
    st.tuples(st.sampled_from(sorted(COMPARE)), st.integers(-2, 2), st.integers(1, 2)), min_size=2, max_size=5
)


@given(trees, trees, NEAR, SIZES, st.lists(ANY_SIZES, min_size=1, max_size=8))
def test_questions_that_bear_on_one_another(left, right, variations, hints, others):
    """The same two sides again and again, a little apart: what follows from the first must not be asked, nor guessed."""
    program = [(op, ("*", left, k), ("+", ("*", right, k), shift)) for op, shift, k in variations]
    guards_are_exact(program, hints, others)


@given(st.lists(questions, min_size=1, max_size=4), SIZES, trees)
def test_what_guards_rewrite_keeps_its_value(program, hints, tree):
    env, numbers, _ = trace(program, hints)
    result = calculate(tree, numbers)
    expr = result.node.expr if hasattr(result, "node") else result
    assert evaluate(expr, values_of(numbers, hints)) == calculate(tree, plain(hints))
    before = len(env.guards)
    for q in program:
        bool(ask(q, numbers))
    assert len(env.guards) == before, "asking again records nothing"


@given(questions, SIZES, SIZES)
def test_a_static_answer_is_right_everywhere(question, hints, others):
    env, numbers = symbolic(hints)
    asked = ask(question, numbers)
    if hasattr(asked, "node"):
        answer = env.statically(asked.node.expr)
        assert answer is None or answer == ask(question, plain(others))
    else:
        assert asked == ask(question, plain(others))
