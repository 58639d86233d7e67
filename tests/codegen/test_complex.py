"""Complex numbers in native code: arithmetic, parts, conjugates, sums, gradients; what comes out lazily stays lazy."""

from __future__ import annotations

import warnings

import pytest

import pullback as torch
from tests.codegen.test_program import check, native

INF, NAN = float("inf"), float("nan")


def numbers(*shape: int, d=torch.complex64) -> torch.Tensor:
    return torch.complex(torch.randn(*shape), torch.randn(*shape)).to(d)


@pytest.mark.parametrize("d", [torch.complex64, torch.complex128])
def test_arithmetic_parts_and_sums(d) -> None:
    x, y, r = numbers(6, 70, d=d), numbers(70, d=d), torch.randn(6, 70)

    def f(x, y, r):
        return (
            x * y + 2j, x / y - r, (x * x.conj()).real * 1, x.imag * 2, (x - 1).abs(), x.angle() + 1, x.exp() * r.sin(), -x.conj() * 1,
            torch.view_as_complex(torch.stack([r, r * 2], -1)) * x, torch.view_as_real(x * 2) + 1, torch.complex(r, r * 3) + x,
            x.sum(1), x.mean(), (x == y), x.t() * 1, torch.cat([x, x * 1j]), torch.where(r > 0, x, y), x.sgn(), x.reciprocal(),
        )  # fmt: skip

    result = native(f, x, y, r)
    for got, want in zip(result(x, y, r), f(x, y, r), strict=True):
        torch.testing.assert_close(got, want, rtol=2e-5, atol=1e-5)


def test_infinities_and_nan_are_those_of_operators() -> None:
    parts = torch.tensor([0.0, -0.0, 1.0, -2.0, INF, -INF, NAN])
    x = torch.complex(*(p.flatten() for p in torch.meshgrid(parts, parts, indexing="ij")))
    y = x.flip(0) * 1
    f = lambda x, y: (x * y, x / y, x + y, x.abs(), x.isnan(), x.isinf(), x.isfinite(), x != y)  # noqa: E731
    for got, want in zip(native(f, x, y)(x, y), f(x, y), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-6, atol=0, equal_nan=True)


def test_gradients() -> None:
    def loss(z, w):
        return ((z * w.conj()).abs() + (z / w).real * z.imag + (z * 2j).exp().imag).sum()

    z, w = (numbers(5, 8, d=torch.complex128).requires_grad_() for _ in range(2))
    got = torch.autograd.grad(torch.compile(loss, backend="inductor")(z, w), (z, w))
    for a, b in zip(got, torch.autograd.grad(loss(z, w), (z, w)), strict=True):
        torch.testing.assert_close(a, b)


def test_views_that_come_out_share_memory() -> None:
    x = numbers(4, 5)
    for f in (lambda x: x.conj(), lambda x: x.real, lambda x: x.conj().t(), lambda x: torch.view_as_real(x)[0]):
        got, want = torch.compile(lambda x, f=f: (f(x), x * 2), backend="inductor")(x)[0], f(x)
        assert got.is_conj() == want.is_conj() and got.stride() == want.stride()
        assert got.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_rules_that_do_not_know_complex_numbers_are_not_asked() -> None:
    result = check(lambda x: (x * 2).prod().abs() + 1, numbers(5), whole=False)
    assert any("complex numbers" in reason for reason in result.reasons.values())


def test_complex_numbers_that_are_in_no_buffer():
    def radius(x, y):
        return torch.complex(x, y).abs() + 1

    x, y = torch.randn(7), torch.randn(7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a graph that does not compile runs operator by operator, and says so
        found = torch.compile(radius)(x, y)
    assert torch.allclose(found, radius(x, y))
