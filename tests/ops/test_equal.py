"""Every operator of the table where all its numbers are zero, or one: what is pushed through it is what is pulled back.

In: the first differentiable sample of each operator, in double precision, real and complex. Always holds: cotangents times what
tangents become is tangents times what cotangents become; where one of both is not a number, so is the other. Kinks and ties are where rules differ.
"""

from __future__ import annotations

import math
import warnings

import pytest

import pullback as torch
from pullback.autograd import forward_ad
from pullback.ops.system.dispatch import dispatch
from tests.ops.checks import rebuild, results, tensors_in
from tests.ops.samples import samples_of
from tests.ops.test_table import TABLE

REFUSALS = (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError)
UNTRUE = {
    "embedding": "gradients leave out the row for padding, and are divided by how often a row stands there",
    "as_strided_scatter": "PyTorch's gradient is that of what was replaced",
    "_as_strided_write": "PyTorch's gradient is that of what was replaced",
    "poisson_nll_loss": "zero times the slope of a logarithm at zero",
    "_cdist_backward": "second derivatives at a kink",
    "_pdist_backward": "second derivatives at a kink",
    "logit_backward": "second derivatives at the ends of the interval",
    "corrcoef": "zero by zero",
    "linalg_cond": "of singular matrices",
    "linalg_cond.p_str": "of singular matrices",
    "linalg_norm.ord_str": "the nuclear norm of a singular matrix: slopes depend on vectors that its values leave open",
}
FILLED = {"zeros": torch.zeros_like, "ones": torch.ones_like}


def waves(t, phase: float):
    real = torch.cos(torch.arange(t.numel(), dtype=torch.float64) + phase).reshape(t.shape)
    return torch.complex(real, real.flip(-1) if t.ndim else real) if t.dtype.is_complex else real


def doubles(out) -> list:
    return [o for o in results(out) if o.dtype in (torch.float64, torch.complex128)]


def product(a, b) -> float:
    return float((a.conj() * b).real.sum())


def pulled_and_pushed(op, args: tuple, fill, dtype=torch.float64) -> tuple[float, float] | None:
    """Both products; None where an operator has no gradient, or other results with tangents than with history."""
    given = [fill(t.detach()) if t.dtype is dtype else t.detach() for t in tensors_in(args)]
    at = [i for i, t in enumerate(given) if t.dtype is dtype and t.numel()]
    leaves = [t.clone().requires_grad_() if i in at else t for i, t in enumerate(given)]
    tangents = {i: waves(given[i], 0.3) for i in at}
    torch.manual_seed(0)
    out = doubles(dispatch(op, rebuild(args, leaves)))
    if not at or not out or not all(o.requires_grad for o in out):
        return None
    cotangents = [waves(o, 0.7) for o in out]
    grads = torch.autograd.grad(out, [leaves[i] for i in at], cotangents, allow_unused=True)
    with forward_ad.dual_level():
        dual = [forward_ad.make_dual(t.clone(), tangents[i]) if i in at else t for i, t in enumerate(given)]
        torch.manual_seed(0)
        pushed = [forward_ad.unpack_dual(o).tangent for o in doubles(dispatch(op, rebuild(args, dual)))]
    back = sum(product(g, tangents[i]) for i, g in zip(at, grads, strict=True) if g is not None)
    return back, sum(product(c, t) for c, t in zip(cotangents, pushed, strict=True) if t is not None)


def is_same(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-7, abs_tol=1e-7) or not math.isfinite(a) and not math.isfinite(b)


@pytest.mark.parametrize("share", range(2))
@pytest.mark.parametrize("name", sorted(FILLED))
@pytest.mark.parametrize(("dtype", "many"), [(torch.float64, 150), (torch.complex128, 50)])
def test_what_is_pushed_is_what_is_pulled(dtype, many, name, share):
    wrong, seen = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key in [k for k in sorted(TABLE)[share::2] if k not in UNTRUE]:
            for args, _ in samples_of(TABLE[key]):
                try:
                    found = pulled_and_pushed(TABLE[key], args, FILLED[name], dtype)
                except REFUSALS:
                    continue
                if found is None:
                    continue
                seen += 1
                if not is_same(*found):
                    wrong.append(f"{key}: {found[0]} pulled, {found[1]} pushed")
                break
    assert not wrong and seen > many, wrong


def test_a_difference_is_seen():
    assert pulled_and_pushed(TABLE["embedding"], samples_of(TABLE["embedding"])[0][0], torch.ones_like) is not None
    assert is_same(math.nan, math.inf) and not is_same(0.0, math.nan) and not is_same(1.0, 1.1)
