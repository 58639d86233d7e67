"""Forward mode through in-place writes: tangents follow what is written, in views, bases and recorded results."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch
from pullback.func import hessian, jacfwd, jacrev, jvp


def close(a, b, rtol: float = 1e-10, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=rtol, atol=atol)


X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
ONES = torch.ones(3, dtype=torch.float64)


def whole(x):
    y = x.clone()
    return y.mul_(x)


def by_item(x):
    y = x.clone().mul_(3)
    y[0] = 0
    return y


def into_zeros(x):
    y = torch.zeros(3, dtype=torch.float64)
    y.add_(x)
    y[1:].mul_(2)
    return y


def older_view(x):
    """The view was made before its base had a tangent."""
    y = torch.zeros(3, dtype=torch.float64)
    view = y[1:]
    y[:2].copy_(x[:2] * x[1:])
    return view * 2


def sibling_views(x):
    y = x.clone()
    y[1:].mul_(x[1:])
    y[:2].exp_()
    return y


def overwritten(x):
    return x.clone().copy_(torch.zeros(3))


def aliased_tangent(x):
    """`x + 0` has the tangent of `x`, and a write to the one must not reach the other."""
    y = x + 0
    y.mul_(x)
    return x * 1


CASES = {
    whole: [2, 4, 6], by_item: [0, 3, 3], into_zeros: [1, 2, 2], older_view: [10, 0], aliased_tangent: [1, 1, 1],
    overwritten: [0, 0, 0],
}  # fmt: skip


@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_tangent_follows_the_write(function) -> None:
    _, tangent = jvp(function, (X,), (ONES,))
    assert tangent.tolist() == CASES[function]


def test_views_of_one_base_see_each_others_writes() -> None:
    out, tangent = jvp(sibling_views, (X,), (ONES,))
    close(tangent, torch.stack([X[0].exp(), 4 * (X[1] ** 2).exp(), 2 * X[2]]))
    close(out, torch.stack([X[0].exp(), (X[1] ** 2).exp(), X[2] ** 2]))


def written_view(x):
    y = x.clone()
    y[1:].mul_(x[:2])
    y.exp_()
    return (y * x).sum()


def saved_result_of_a_view(x):
    y = x.clone()
    y[1:].exp_()
    return (y * y).sum()


@pytest.mark.parametrize("function", [written_view, saved_result_of_a_view])
@pytest.mark.parametrize("second", [hessian, lambda f: jacrev(jacfwd(f)), lambda f: jacrev(jacrev(f))])
def test_second_derivatives_agree_in_every_mode(function, second) -> None:
    close(second(function)(X), jacfwd(jacfwd(function))(X))
    eps = 1e-5
    rows = [
        (jacrev(function)(X + eps * e) - jacrev(function)(X - eps * e)) / (2 * eps)
        for e in torch.eye(3, dtype=torch.float64)
    ]
    close(second(function)(X), torch.stack(rows), rtol=1e-6, atol=1e-5)


def test_transposing_in_place_transposes_the_tangent() -> None:
    t = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    _, tangent = jvp(lambda x: x.clone().t_(), (t * 2,), (t,))
    assert tangent.tolist() == t.t().tolist()


@pytest.mark.parametrize("function", [written_view, saved_result_of_a_view, lambda x: x.clone().mul_(x).exp_().sum()])
def test_reverse_mode_runs_over_the_tangent_of_a_write(function) -> None:
    slope = torch.func.grad(lambda x: jvp(function, (x,), (ONES,))[1])(X)
    close(slope, jacfwd(jacfwd(function))(X).sum(0))


def _tangent(f, x, t, dual):
    if not dual:
        return torch.func.jvp(f, (x,), (t,))[1]
    with torch.autograd.forward_ad.dual_level():
        return torch.autograd.forward_ad.unpack_dual(f(torch.autograd.forward_ad.make_dual(x, t))).tangent


@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda v: v[..., 0].as_strided((2,), (1,), 1), [2.0, 3.0]),
        (lambda v: v[1:].as_strided((2,), (2,), 0), [1.0, 3.0]),
        (lambda v: v.view(2, 2)[0].as_strided((2,), (1,), 2), [3.0, 4.0]),
        (lambda v: v.view(2, 2).fill_diagonal_(1)[-1:], [[3.0, 0.0]]),
        (lambda v: (v[0].as_strided((2,), (1,), 2).zero_(), v * 1)[1], [1.0, 2.0, 0.0, 0.0]),
    ],
)
def test_windows_on_the_memory_of_a_dual_tensor_show_its_tangent(f, expected, dual) -> None:
    assert _tangent(f, torch.arange(4.0), torch.tensor([1.0, 2.0, 3.0, 4.0]), dual).tolist() == expected
    turned = torch.arange(6.0).view(3, 2).t()  # the tangent lies otherwise
    assert _tangent(lambda v: v.fill_diagonal_(1)[-1:], turned, torch.ones(2, 3), dual).tolist() == [[1.0, 0.0, 1.0]]


def test_tangents_of_what_reads_its_own_result_are_found_in_inference_mode() -> None:
    """The rule of a Cholesky factor reads the factor, which was made in inference mode."""
    matrix = torch.tensor([[2.0, 0.3], [0.3, 1.5]])
    expected = _tangent(torch.linalg.cholesky, matrix, torch.ones(2, 2), True)
    with torch.inference_mode():
        assert torch.equal(_tangent(torch.linalg.cholesky, matrix, torch.ones(2, 2), True), expected)
