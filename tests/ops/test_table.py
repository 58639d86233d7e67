"""Every operator through every check: metadata, derivatives, transforms, in-place and `out=`, memory layout, values.

Comes in: the registry and `samples`. Always holds: an operator has samples or a reason to have none; a check that an
operator does not pass stands in XFAIL with the reason in words, and fails the day it passes.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pullback as torch
from pullback.ops.system.dispatch import dispatch
from pullback.ops.system.operator import Missing
from pullback.ops.system.record import plan_of
from tests.ops.checks import CHECKS, check_vmap, results, same, to_numpy
from tests.ops.references import REFERENCES
from tests.ops.samples import EXEMPT, exempt, functional_operators, key_of, samples_of
from tests.ops.xfail import XFAIL

DERIVATIVES = ("gradient", "second_gradient", "forward", "batched_gradient")
OPERATORS = {key_of(op): op for op in functional_operators()}
WRITERS = {k for k in OPERATORS if k.startswith("_foreach_") and OPERATORS[k].name.endswith("_")}
TABLE = {k: op for k, op in OPERATORS.items() if not exempt(k) and k not in WRITERS}


def applies(op, check: str) -> bool:
    """Whether a check can find anything at all."""
    if check in DERIVATIVES:
        return op.body is not None or op.differentiable and not _unwritten(op)
    if check == "inplace":
        return bool(op.declared.inplace)
    if check == "out":
        return not op.is_view and op.declared.out and getattr(op, "function", None) is not None
    return check != "vmap" or bool(op.tensor_positions)


def _unwritten(op) -> bool:
    return all(isinstance(r.function, Missing) for r in plan_of(op).rules)


def cases() -> list:
    result = []
    for key, op in TABLE.items():
        for check in CHECKS:
            if applies(op, check):
                reason = XFAIL.get((key, check))
                marks = [pytest.mark.xfail(reason=reason)] if reason else []
                result.append(pytest.param(key, check, id=f"{key}-{check}", marks=marks))
    return result


@pytest.mark.parametrize(("key", "check"), cases())
def test_operator(key: str, check: str) -> None:
    op = TABLE[key]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)  # what PyTorch says of deprecated forms
        for i, (args, other) in enumerate(samples_of(op)):
            try:
                check_vmap(op, args, other) if check == "vmap" else CHECKS[check](op, args)
            except Exception as error:
                error.add_note(f"{key}, sample {i}: {describe(args)}")
                raise


def describe(args) -> str:
    def one(a) -> str:
        if isinstance(a, torch.Tensor):
            return f"{str(a.dtype).removeprefix('torch.')}{tuple(a.shape)}"
        return f"({', '.join(map(one, a))})" if isinstance(a, tuple) else repr(a)

    return ", ".join(map(one, args))


@pytest.mark.parametrize("key", sorted(k for k in REFERENCES if k in TABLE))
def test_reference(key: str) -> None:
    """Values are those of NumPy and SciPy."""
    op = TABLE[key]
    names = [a.name for a in op.schema.arguments]
    for args, _ in samples_of(op):
        arrays = {n: arrays_of(a) for n, a in zip(names, args, strict=True)}
        wanted = REFERENCES[key](*arrays.values())
        got = results(dispatch(op, args))
        for g, w in zip(got, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            assert tuple(g.shape) == np.shape(w), (
                f"{key}({describe(args)}): shape {tuple(g.shape)}, expected {np.shape(w)}"
            )
            np.testing.assert_allclose(to_numpy(g), w, rtol=1e-9, atol=1e-11, err_msg=f"{key}({describe(args)})")


def arrays_of(a):
    if isinstance(a, torch.Tensor):
        return to_numpy(a)
    return tuple(map(arrays_of, a)) if isinstance(a, tuple) else a


@pytest.mark.parametrize("key", sorted(WRITERS - {"_foreach_copy_", "_foreach_zero_"}))
def test_writers_over_lists(key: str) -> None:
    """`_foreach_add_` stores what `_foreach_add` returns."""
    op = OPERATORS[key]
    args, _ = samples_of(op)[0]
    wanted = dispatch(OPERATORS[key.replace("_.", ".") if "_." in key else key[:-1]], args)
    targets = tuple(t.clone() for t in args[0])
    dispatch(op, (targets, *args[1:]))
    for t, w in zip(targets, wanted, strict=True):
        same(t, w, key)


def test_every_operator_has_samples_or_a_reason() -> None:
    missing = [k for k, op in OPERATORS.items() if not exempt(k) and not samples_of(op)]
    assert not missing, f"no samples, and no reason in EXEMPT: {missing}"


def test_every_exception_is_of_an_operator_and_a_check() -> None:
    stale = [k for k in EXEMPT if k not in OPERATORS]
    stale += [f"{k}-{c}" for k, c in XFAIL if k not in TABLE or c not in CHECKS or not applies(TABLE[k], c)]
    assert not stale, f"exceptions for what is not there: {stale}"
