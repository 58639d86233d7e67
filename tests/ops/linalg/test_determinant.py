"""Derivatives of determinants of every rank, in every order of modes, against those of the polynomial that they are."""

import itertools

import numpy as np
import pytest

import pullback as torch
from pullback.func import grad, jvp, vmap

L = torch.linalg


def polynomial(a):
    """The determinant by its definition: sums of products have derivatives everywhere."""
    total = 0
    for order in itertools.permutations(range(a.shape[-1])):
        sign = (-1) ** sum(order[j] > order[i] for i in range(len(order)) for j in range(i))
        product = a[0, order[0]]
        for i in range(1, len(order)):
            product = product * a[i, order[i]]
        total = total + sign * product
    return total


def numbers(seed: int, *shape, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if dtype.is_complex:
        values = values + 1j * rng.standard_normal(shape)
    return torch.tensor(values, dtype=dtype)


def of_rank(n: int, rank: int, dtype):
    if not rank:
        return torch.zeros(n, n, dtype=dtype)
    return numbers(n, n, rank, dtype=dtype) @ numbers(rank, rank, n, dtype=dtype)


ORDERS = {
    "grad": lambda f, a, t, v: grad(f)(a),
    "jvp": lambda f, a, t, v: jvp(f, (a,), (t,))[1],
    "forward over reverse": lambda f, a, t, v: jvp(grad(f), (a,), (t,))[1],
    "reverse over forward": lambda f, a, t, v: grad(lambda m: jvp(f, (m,), (t,))[1])(a),
    "reverse over reverse": lambda f, a, t, v: grad(lambda m: (grad(f)(m) * t.conj()).sum().real)(a),
    "forward over forward": lambda f, a, t, v: jvp(lambda m: jvp(f, (m,), (t,))[1], (a,), (v,))[1],
    "of a batch": lambda f, a, t, v: vmap(grad(lambda m: jvp(f, (m,), (t,))[1]))(torch.stack([a, v])),
}


def squared(det):
    return lambda a: (lambda d: (d * d.conj()).real + 2 * d.real if a.is_complex() else d * d + 2 * d)(det(a))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("order", ORDERS)
def test_derivatives_are_those_of_the_polynomial(order, dtype):
    for n, rank in [(k, r) for k in (1, 2, 3, 4) for r in range(k + 1)]:
        given = (of_rank(n, rank, dtype), numbers(7, n, n, dtype=dtype), numbers(8, n, n, dtype=dtype))
        expected = ORDERS[order](squared(polynomial), *given)
        found = ORDERS[order](squared(L.det), *given)
        assert torch.allclose(found, expected, rtol=1e-5, atol=1e-5), (n, rank, found, expected)


@pytest.mark.parametrize("order", ORDERS)
def test_equal_singular_values_have_derivatives(order):
    for values in ((1.0, 1.0, 0.0), (1.0, 1.0, 1.0), (2.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0)):
        n = len(values)
        given = (torch.diag(torch.tensor(values, dtype=torch.float64)), numbers(7, n, n), numbers(8, n, n))
        assert torch.allclose(ORDERS[order](squared(L.det), *given), ORDERS[order](squared(polynomial), *given))


def test_a_recorded_gradient_of_a_nearly_singular_matrix_keeps_its_digits():
    for n, scale in ((4, 1.0), (5, 1e3), (5, 1e-3)):
        a = (of_rank(n, n - 1, torch.float64) * scale).requires_grad_()
        (recorded,) = torch.autograd.grad(L.det(a), a, create_graph=True)
        assert torch.allclose(recorded, grad(polynomial)(a.detach()), rtol=1e-8, atol=1e-8 * scale ** (n - 1))


def test_the_slope_of_what_is_not_finite_is_not_a_number_and_spoils_no_other_matrix():
    a = torch.stack([torch.full((2, 2), float("nan")), torch.tensor([[1.0, 2.0], [2.0, 4.0]])])
    found = vmap(grad(L.det))(a)
    assert found[0].isnan().all() and torch.allclose(found[1], torch.tensor([[4.0, -2.0], [-2.0, 1.0]]), atol=1e-5)


def test_matrices_without_elements_have_the_determinant_one_and_an_empty_slope():
    a = torch.zeros(2, 0, 0, requires_grad=True)
    (found,) = torch.autograd.grad(L.det(a).sum(), a, create_graph=True)
    assert L.det(a).tolist() == [1, 1] and found.shape == (2, 0, 0)
