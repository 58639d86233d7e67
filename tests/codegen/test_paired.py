"""Products of bfloat16 in compiled functions: read as they are where the processor multiplies pairs, and equal to eager ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
import pullback.nn.functional as F
from pullback.codegen import Native
from pullback.runtime import paired
from pullback.runtime.build import NoCompiler, compiler

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

needs_pairs = pytest.mark.skipif(not paired.address(), reason="the processor does not multiply pairs of bfloat16")


def narrow(*shape: int) -> torch.Tensor:
    return torch.randn(*shape).bfloat16()


def agree(f, *args) -> None:
    """Sums are of single precision in both, and rounded once: at most one place apart where they were added in another order."""
    found, expected = torch.compile(f)(*args), f(*args)
    assert found.dtype is expected.dtype and found.stride() == expected.stride()
    torch.testing.assert_close(found.float(), expected.float(), rtol=2**-7, atol=2**-7)


@needs_pairs
def test_products_read_bfloat16(made: list[Native]) -> None:
    torch.compile(lambda x, w, b: F.gelu(F.linear(x, w, b)))(narrow(6, 40), narrow(9, 40), narrow(9))
    (segment,) = made[-1].segments
    rows = segment.source.text.split("steps[] = {")[1].split("};")[0].strip().splitlines()
    assert "paired_task" in rows[0] and len(rows) == 2  # the product with its bias, and what follows


def test_with_deterministic_algorithms_they_are_eager_ones() -> None:
    torch.use_deterministic_algorithms(True)
    try:
        x, w = narrow(33, 70), narrow(70, 20)
        assert torch.equal(torch.compile(lambda x, w: (x @ w) * 2)(x, w), (x @ w) * 2)
    finally:
        torch.use_deterministic_algorithms(False)


@settings(max_examples=12, deadline=None)
@given(
    st.tuples(*[st.integers(1, 90)] * 3),
    st.lists(st.integers(1, 3), max_size=2),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 3]),
)
def test_products_of_any_layout(sizes, batch, turn_a, turn_b, threads) -> None:
    (m, k, n), before = sizes, torch.get_num_threads()
    torch.manual_seed(0)
    a = narrow(*batch, k, m).mT if turn_a else narrow(*batch, m, k)
    b = narrow(*batch, n, k).mT if turn_b else narrow(*batch, k, n)
    torch.set_num_threads(threads)
    try:
        agree(lambda a, b: torch.matmul(a, b) + 1, a, b)
        agree(lambda a, b: torch.matmul(a[..., 1:], b[..., 1:, :]).relu() if k > 1 else a * 2, a, b)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("shape", [(3, 5, 7), (64, 64, 64), (400, 300, 70)], ids=str)
def test_layers_and_their_gradients(shape: tuple) -> None:
    m, k, n = shape
    torch.manual_seed(0)
    x, w, b = narrow(m, k), narrow(n, k), narrow(n)

    def gradients(x, w, b):
        x, w, b = (t.detach().requires_grad_() for t in (x, w, b))
        loss = F.gelu(F.linear(x, w, b)).float().square().mean()
        return torch.autograd.grad(loss, (x, w, b))

    for found, expected in zip(torch.compile(gradients)(x, w, b), gradients(x, w, b), strict=True):
        torch.testing.assert_close(
            found.float(), expected.float(), rtol=0.03, atol=0.03 * expected.float().abs().max().item()
        )


def test_attention() -> None:
    q, k, v = (narrow(2, 3, 20, 16) for _ in range(3))
    agree(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True) * 1, q, k, v)


def test_special_numbers() -> None:
    x = torch.tensor([[float("nan"), 1.0], [float("inf"), 1.0], [3e38, 3e38]]).bfloat16()
    ones = torch.ones(2, 2).bfloat16()
    found = torch.compile(lambda x, y: (x @ y) * 1)(x, ones)
    assert found[0].isnan().all() and found[1:].isinf().all()
