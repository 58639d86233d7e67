"""Numbers near the ends of what float32 holds: norms and their kin lose nothing where what they give is inside it.

Each function is compared with itself in float64, for every layout, few elements and many, as it is and compiled. What never leaves
the range of its results (a norm, a spread, a logarithm of a sum) may not do so on the way.
"""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch

L = torch.linalg
FUNCTIONS = {
    "norm": lambda x: L.vector_norm(x),
    "norms of rows": lambda x: L.vector_norm(x, dim=-1),
    "norms of columns": lambda x: L.vector_norm(x, 2, 0, True),
    "largest": lambda x: L.vector_norm(x, float("inf"), 0),
    "frobenius": lambda x: L.matrix_norm(x),
    "distance": lambda x: torch.dist(x, -x / 4),
    "spread": lambda x: x.std(),
    "spreads of rows": lambda x: x.std(-1, correction=0),
    "spreads of columns": lambda x: torch.std_mean(x, 0)[0],
    "hypot": lambda x: torch.hypot(x, x / 2),
    "absolute": lambda x: torch.complex(x, x / 2).abs(),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "logaddexp": lambda x: torch.logaddexp(x, x / 2),
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(0),
    "asinh": torch.asinh,
    "sigmoid": torch.sigmoid,
}
LAYOUTS = {
    "row-major": lambda x: x,
    "turned": lambda x: x.t().contiguous().t(),
    "stepped": lambda x: torch.stack([x, x], -1).flatten(-2)[:, ::2],
}
SCALES = (1e30, 1e37, 1e19, 1e-20, 1e-30, 1e-37)
SHAPES = ((4, 6), (3, 40_000))


def numbers(shape: tuple, scale: float):
    rng = np.random.default_rng(3)
    size = rng.uniform(0.5, 1.0, shape) * np.sign(rng.standard_normal(shape))
    return torch.tensor((size * (scale / max(1.0, scale / 1e37 * 300))).astype(np.float32))


def close(found, x, name: str) -> None:
    expected = FUNCTIONS[name](x.double())
    assert found.dtype is torch.float32
    np.testing.assert_allclose(found.double().numpy(), expected.numpy(), rtol=2e-5, atol=3e-45)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_keep_the_range_of_their_results(name, layout, shape):
    for scale in SCALES:
        x = LAYOUTS[layout](numbers(shape, scale))
        close(FUNCTIONS[name](x), x, name)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_compiled_functions_keep_it_too(shape):
    compiled = torch.compile(lambda x: [f(x) for f in FUNCTIONS.values()])
    for scale in SCALES:
        x = numbers(shape, scale)
        for name, found in zip(FUNCTIONS, compiled(x), strict=True):
            close(found, x, name)


FLAT = ("hypot", "absolute", "logaddexp", "asinh", "sigmoid")  # slopes of another size, or of one that is lost by right


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in FLAT])
def test_slopes_keep_it_where_they_are_of_size_one(name):
    for scale in (1e30, 1e-30):
        x = numbers((4, 6), scale).requires_grad_()
        wide = x.detach().double().requires_grad_()
        (found,) = torch.autograd.grad(FUNCTIONS[name](x).sum(), x)
        (expected,) = torch.autograd.grad(FUNCTIONS[name](wide).sum(), wide)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-4, atol=1e-6)


def test_complex_numbers_spread_as_far():
    for scale in (1e30, 1e-30):
        x = torch.complex(numbers((4, 6), scale), numbers((4, 6), scale) / 2)
        for found, expected in ((x.std(), x.to(torch.complex128).std()), (x.std(0), x.to(torch.complex128).std(0))):
            np.testing.assert_allclose(found.double().numpy(), expected.numpy(), rtol=2e-5)
