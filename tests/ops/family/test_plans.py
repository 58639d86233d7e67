"""Plans of element-wise calls: whatever the dtypes, shapes and order of memory, bits, strides and errors are those of `execute`.

In: every element-wise operator, with operands of two dtypes, rows and columns and Python numbers among them. Always holds: a plan that was
made by one call serves the next of its kind, with other values.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import pullback as torch
from pullback.ops.family.plans import plan_of
from pullback.ops.family.pointwise import POINTWISE
from pullback.ops.system.operator import registry

F, D, H, E = torch.float32, torch.float64, torch.bfloat16, torch.float16
PAIRS = [
    (F, F), (F, D), (F, torch.int64), (torch.int64, F), (torch.int32, torch.uint8), (torch.bool, torch.int64), (H, H), (H, F), (E, H),
    (H, torch.int64), (torch.complex64, F), (D, torch.complex64), (torch.bool, torch.bool), (D, E),
]  # fmt: skip
OPERATORS = [op for op in registry.values() if op.family is POINTWISE and op.body is None and op.tensor_positions]
NUMBERS = {"Scalar": 2, "float": 0.75, "int": 2, "bool": True}


def tensor(rng: np.random.Generator, shape: tuple, dtype: torch.dtype):
    values = torch.from_numpy(np.asarray(rng.integers(-8, 9, shape) / 4))
    if not dtype.is_floating_point and not dtype.is_complex:
        values = (values.abs() + 1).floor()
    return values.to(dtype)


def arguments(op, dtypes: tuple, seed: int, variant: str) -> tuple:
    """Operands of two dtypes in turn: row-major, transposed, a row among matrices, without dimensions, or numbers after the first."""
    rng, out, count = np.random.default_rng(seed), [], 0
    for argument in op.schema.arguments:
        if argument.is_tensor:
            shape = ((3, 4), (4,), ())[count if variant in ("rows", "dimensionless") else 0] if count < 3 else (3, 4)
            if variant == "dimensionless" and count:
                shape = ()
            made = tensor(rng, shape, dtypes[count % 2])
            if variant == "transposed" and made.ndim == 2:
                made = tensor(rng, (4, 3), dtypes[count % 2]).t()
            out.append(1.5 if variant == "numbers" and count and not argument.optional else made)
            count += 1
        elif argument.has_default:
            out.append(argument.default)
        else:
            out.append(NUMBERS.get(argument.base))
    return tuple(out)


def outcome(run, op, args: tuple):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = run(op, args)
        except Exception as error:
            return type(error), str(error)
    return found.dtype, found.shape, found.stride(), found._array.tobytes()


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.qualified_name)
def test_what_a_plan_gives_is_what_the_rules_give(op):
    for dtypes, variant, seed in itertools.product(
        PAIRS, ("plain", "rows", "transposed", "dimensionless", "numbers"), (0, 1)
    ):
        args = arguments(op, dtypes, seed, variant)
        expected = outcome(POINTWISE.execute, op, args)
        assert outcome(POINTWISE.execute_plain, op, args) == expected, (dtypes, variant, seed)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.qualified_name)
def test_results_without_dimensions_have_memory_that_can_be_written(op):
    for dtype in (E, H, F):
        args = [a.sum() if isinstance(a, torch.Tensor) else a for a in arguments(op, (dtype, dtype), 0, "plain")]
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                out = POINTWISE.execute(op, tuple(args))
            except (NotImplementedError, RuntimeError):  # of dtypes that it does not take
                continue
        assert isinstance(out._array, np.ndarray) and out.zero_().item() == 0, dtype


def test_plans_serve_calls_of_one_kind_alone():
    x, d, add = torch.ones(3), torch.ones(3, dtype=D), registry["add.Tensor"]
    plan = plan_of(POINTWISE, add, (x, d, 1))
    assert plan is plan_of(POINTWISE, add, (2 * x, 3 * d, 1))
    assert plan.run(add, (x, d, 2)).tolist() == [3.0] * 3
    assert plan_of(POINTWISE, add, (x, d[0], 1)) is not plan


def test_plans_know_the_default_dtype():
    i = torch.arange(3)
    assert i.sin().dtype is F
    torch.set_default_dtype(D)
    try:
        assert i.sin().dtype is D and (i * 1.5).dtype is D
    finally:
        torch.set_default_dtype(F)
    assert i.sin().dtype is F and (i * 1.5).dtype is F


# ---- in place
def test_writes_of_what_a_plan_gives_count_and_refuse_what_they_should():
    x, d = torch.zeros(3, 4), torch.ones(4, dtype=D)
    assert x.add_(d, alpha=0.5) is x and x._version == 1 and x.tolist() == [[0.5] * 4] * 3
    x[1].add_(d)
    assert x[1].tolist() == [1.5] * 4 and x[0].tolist() == [0.5] * 4 and x._version == 2
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.arange(3).add_(1.5)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.ones(3).add_(torch.ones(2, 3), alpha=2)
    with pytest.raises(RuntimeError, match="more than one element"):
        torch.ones(1).expand(3).add_(torch.ones(3, dtype=D))


def test_writes_through_views_read_what_was_there():
    x = torch.arange(6.0)
    x[1:].add_(x[1:].to(D), alpha=2)
    assert x.tolist() == [0.0, 3.0, 6.0, 9.0, 12.0, 15.0]
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].add_(x[:-1], alpha=2)


def test_writes_that_gradients_pass_are_recorded():
    w, x = torch.ones(3, dtype=D, requires_grad=True), torch.zeros(3)
    x.add_(w, alpha=3)
    x.sum().backward()
    assert w.grad.tolist() == [3.0] * 3
    leaf = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable"):
        leaf.add_(torch.ones(3, dtype=D))


def test_copies_from_another_dtype_are_writes_of_their_own():
    x = torch.zeros(3, 4)
    assert x.copy_(torch.arange(4)) is x and x._version == 1 and x.tolist() == [[0.0, 1.0, 2.0, 3.0]] * 3
    x[0].copy_(torch.ones(4, dtype=D))
    assert x[0].tolist() == [1.0] * 4 and x[1].tolist() == [0.0, 1.0, 2.0, 3.0] and x._version == 2
    i = torch.zeros(2, dtype=torch.uint8).copy_(torch.tensor([-1.5, 300.7]))
    assert i.tolist() == torch.tensor([-1.5, 300.7]).to(torch.uint8).tolist()
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        torch.zeros(3).copy_(torch.ones(2, 3, dtype=D))
    w = torch.ones(3, dtype=D, requires_grad=True)
    torch.zeros(3).copy_(w).sum().backward()
    assert w.grad.tolist() == [1.0] * 3


def test_parts_of_complex_numbers_are_replaced_one_by_one():
    inf, nan = float("inf"), float("nan")
    z = torch.tensor([[complex(nan, 1), complex(2, inf)], [complex(-inf, -0.0), complex(3, nan)]])
    for given in (z, z.t(), z[:, 0], z[0, 0]):
        found = torch.nan_to_num(given, 7.0, 8.0, 9.0)
        for part in ("real", "imag"):
            expected = torch.nan_to_num(getattr(given, part).clone(), 7.0, 8.0, 9.0)
            assert torch.equal(getattr(found, part).clone(), expected)
        assert found.stride() == given.clone().stride()
