"""jacobian, hessian and products: values against each other, forms of results, strictness."""

import pytest

import pullback as torch
from pullback.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

A = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
B = torch.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=torch.float64)


def two(x, y):
    return x.sum() * y, x * x


def scalar(x, y):
    return (x**3).sum() * y.sin().sum()


@pytest.mark.parametrize("options", [{}, dict(vectorize=True), dict(vectorize=True, strategy="forward-mode"), dict(create_graph=True)])  # fmt: skip
def test_jacobian(options):
    result = jacobian(two, (A, B), **options)
    assert [[tuple(m.shape) for m in row] for row in result] == [[(2, 2, 3), (2, 2, 2, 2)], [(3, 3), (3, 2, 2)]]
    assert torch.allclose(result[0][0], B[..., None].expand(2, 2, 3)) and torch.equal(result[1][0], torch.diag(2 * A))
    assert torch.allclose(result[0][1].reshape(4, 4), 6 * torch.eye(4, dtype=torch.float64))
    assert jacobian(torch.exp, A, **options).shape == (3, 3)


@pytest.mark.parametrize("options", [{}, dict(vectorize=True), dict(vectorize=True, outer_jacobian_strategy="forward-mode")])  # fmt: skip
def test_hessian_and_its_products(options):
    h = hessian(scalar, (A, B), **options)
    assert torch.allclose(h[0][0], torch.diag(6 * A) * B.sin().sum())
    v = (torch.ones_like(A), torch.ones_like(B))
    for product in (hvp, vhp):
        out, result = product(scalar, (A, B), v)
        assert torch.allclose(out, scalar(A, B))
        assert torch.allclose(result[0], h[0][0].sum(1) + h[0][1].sum((1, 2)))
    assert hessian(lambda x: (x**2).sum(), A, **options).shape == (3, 3)


def test_products_agree_with_the_jacobian():
    j = jacobian(lambda x: x.exp() * x.sum(), A)
    v = torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64)
    assert torch.allclose(vjp(lambda x: x.exp() * x.sum(), A, v)[1], v @ j)
    assert torch.allclose(jvp(lambda x: x.exp() * x.sum(), A, v)[1], j @ v)


def test_create_graph():
    x = A.clone().requires_grad_()
    jacobian(lambda x: x**3, x, create_graph=True).sum().backward()
    assert torch.allclose(x.grad, 6 * A)
    assert not jacobian(lambda x: x**3, x).requires_grad


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jacobian(torch.exp, 3), TypeError, "The inputs given to jacobian must be either a Tensor"),
        (lambda: jacobian(lambda x: 3, A), TypeError, "outputs of the user-provided function given to jacobian"),
        (lambda: jacobian(lambda x: torch.ones(2), A, strict=True), RuntimeError, "does not require gradients"),
        (lambda: jacobian(lambda x, y: x, (A, B), strict=True), RuntimeError, "Output 0 of the user-provided function is independent of input 1"),
        (lambda: jacobian(torch.exp, A, strategy="x"), AssertionError, "Expected strategy to be either"),
        (lambda: jacobian(torch.exp, A, strategy="forward-mode"), NotImplementedError, "vectorize=True"),
        (lambda: hessian(torch.exp, A), RuntimeError, "should contain a single element"),
        (lambda: hessian(lambda x: (x.sum(),), A), RuntimeError, "should return a single Tensor"),
        (lambda: vjp(torch.exp, A), RuntimeError, "The vector v can only be None if"),
        (lambda: vjp(torch.exp, A, B), RuntimeError, "v has invalid size: should be"),
        (lambda: vjp(two, (A, B), (A,)), RuntimeError, "v is a tuple of invalid length: should be 2 but got 1"),
        (lambda: hvp(lambda x: x.sum(), A, A, strict=True), RuntimeError, "the jacobian of the user-provided function"),
    ],
)  # fmt: skip
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()
