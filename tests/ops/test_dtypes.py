"""Every operator of the table in every dtype, on its first sample: what no dtype and no layout may change.

In: the samples of the table, cast. Always holds, for what an operator does not refuse: arguments are left as they were, results lie as tensors
without data say, and numbers do not depend on how the arguments lie in memory (turned, stepped, channels-last, negated when
they are read, expanded).
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import pullback as torch
from pullback.ops.system.dispatch import dispatch
from tests.ops.checks import check_meta, rebuild, results, reversed_memory, stepped_memory, tensors_in, to_numpy
from tests.ops.samples import samples_of
from tests.ops.test_table import TABLE, describe
from tests.ops.xfail import XFAIL

REFUSALS = (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError)
# How far results of two layouts may be apart, relative to the largest element: sums in another order.
TOLERANCE = {torch.float32: 2e-6, torch.complex64: 2e-6, torch.float16: 8e-3, torch.bfloat16: 6e-2}
DTYPES = (*TOLERANCE, torch.int64, torch.uint8, torch.bool)
# Parts of functions that cast before, or take other dtypes another way; and a view that no function makes of truths, which have no negative.
PARTS = ("_fft_r2c", "cumprod_backward", "_multilabel_margin_rows", "_multi_margin_rows", "_neg_view")
# Whose result has another dtype than what they compute in.
WIDER = ("_softmax_backward_data", "_log_softmax_backward_data")


def channels_last(t):
    return t.contiguous(memory_format=torch.channels_last) if t.ndim == 4 else t


def expanded(t):
    """The first of the first dimension, as often as it was long: other numbers, the same in all layouts of them."""
    return t[:1].expand(t.shape) if t.ndim and t.numel() else t


def lazy(t):
    """The same numbers, of which memory holds the negative or the conjugate."""
    if t.dtype.is_complex:
        return t.conj_physical().conj()
    return torch._neg_view(t.neg()) if t.dtype.is_floating_point else t


LAYOUTS = (reversed_memory, stepped_memory, channels_last, lazy)
# Views that read memory as another dtype, and refuse what is not what it holds.
AS_MEMORY = ("view.dtype", "view_as_real", "view_as_complex")


def in_dtype(t, d):
    """A sample's tensor in another dtype; None where it has none: what is complex stays complex."""
    if t.dtype.is_complex:
        return t.to(d) if d.is_complex else None
    return t.to(d) if t.dtype is torch.float64 and not d.is_complex else t


def first_sample(key: str, d):
    """The arguments of the first sample that there is in a dtype."""
    for args, _ in samples_of(TABLE[key]):
        tensors = [in_dtype(t.detach(), d) for t in tensors_in(args)]
        if all(t is not None for t in tensors) and any(t.dtype is d for t in tensors):
            return rebuild(args, tensors)
    return None


def unlike(found, expected) -> str | None:
    """What is different in a result, in words."""
    if found.dtype is not expected.dtype or found.shape != expected.shape:
        return f"{found.dtype}{tuple(found.shape)}, expected {expected.dtype}{tuple(expected.shape)}"
    if not found.dtype.is_floating_point and not found.dtype.is_complex:
        return None if torch.equal(found, expected) else "other numbers"
    a, b = to_numpy(found), to_numpy(expected)
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0))
    allowed = TOLERANCE.get(expected.dtype, 2e-6) * max(scale, 1e-3)
    return None if np.isclose(a, b, rtol=0, atol=allowed, equal_nan=True).all() else f"{a} but {b}"


def call(op, args) -> list:
    torch.manual_seed(0)
    return results(dispatch(op, args))


def faults(key: str, args: tuple) -> list[str]:
    """What is wrong with an operator's call, in every layout of its arguments."""
    op, tensors = TABLE[key], tensors_in(args)
    before = [(t.clone(), t._version) for t in tensors]
    try:
        expected = call(op, args)
    except REFUSALS:
        return []
    wrong = [
        "wrote its argument"
        for t, (old, version) in zip(tensors, before, strict=True)
        if t._version != version or not np.array_equal(bits(t), bits(old))
    ]
    if any((key, check) in XFAIL for check in ("meta", "layout")):
        return wrong
    for lay in LAYOUTS[: -1 if key in AS_MEMORY else None]:
        laid = rebuild(args, map(lay, tensors))
        found = [unlike(f, e) for f, e in zip(call(op, laid), expected, strict=True)]
        wrong += [f"{lay.__name__}: {f}" for f in found if f and key not in WIDER]
        check_meta(op, laid)
    repeated = rebuild(args, map(expanded, tensors))
    try:
        expected = call(op, rebuild(args, [expanded(t).contiguous() for t in tensors]))
    except REFUSALS:  # what is equal everywhere has no order, no inverse
        return wrong
    found = [unlike(f, e) for f, e in zip(call(op, repeated), expected, strict=True)]
    check_meta(op, repeated)
    return wrong + [f"expanded: {f}" for f in found if f and key not in WIDER]


def bits(t) -> np.ndarray:
    return np.frombuffer(to_numpy(t).tobytes(), np.uint8)


@pytest.mark.parametrize("share", range(4))
@pytest.mark.parametrize("d", DTYPES, ids=lambda d: str(d).removeprefix("torch."))
def test_dtypes_and_layouts(d, share: int) -> None:
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key in [k for k in sorted(TABLE)[share::4] if k not in PARTS]:
            args = first_sample(key, d)
            if args is None:
                continue
            try:
                wrong += [f"{key}({describe(args)}): {fault}" for fault in faults(key, args)]
            except (AssertionError, *REFUSALS) as error:
                wrong.append(f"{key}({describe(args)}): {error!r}")
    assert not wrong, f"{len(wrong)} faults:\n" + "\n".join(w[:300] for w in wrong[:30])


def test_a_fault_is_seen(monkeypatch) -> None:
    """The comparison itself can fail: of a kernel that writes what it is given, or reads memory as it lies."""
    args = (torch.arange(6.0).reshape(2, 3),)
    assert not faults("sin", args)
    for kernel in (lambda xp, x: xp.multiply(x, 2, out=x), lambda xp, x: x.ravel(order="K").reshape(x.shape) * 1):
        with monkeypatch.context() as patch:
            patch.setattr(
                "tests.ops.test_dtypes.call", lambda op, given, k=kernel: [torch.tensor(k(np, given[0]._array))]
            )
            assert faults("sin", (torch.arange(6.0).reshape(2, 3),))
