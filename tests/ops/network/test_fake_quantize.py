"""Fake quantization: what PyTorch rounds to, where gradients pass, and ranges that move. Numbers recorded from PyTorch."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.testing import assert_close

X = [-1.2, -0.84, -0.06, 0.0, 0.25, 0.349, 0.41, 2.0]


def leaf(dtype=torch.float32):
    return torch.tensor(X, dtype=dtype, requires_grad=True)


def test_numbers_are_rounded_within_the_limits_and_gradients_pass_there():
    x = leaf()
    y = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7)
    assert_close(y, torch.tensor([-1.1, -0.8, -0.1, 0.0, 0.2, 0.3, 0.4, 0.4]))
    y.sum().backward()
    assert x.grad.tolist() == [0, 1, 1, 1, 1, 1, 1, 0]
    assert type(y.grad_fn).__name__ == "FakeQuantizePerTensorAffineCachemaskBackward0"


def test_scale_and_zero_point_may_be_tensors():
    x = leaf()
    y = torch.fake_quantize_per_tensor_affine(x, torch.tensor([0.1]), torch.tensor([3], dtype=torch.int32), -8, 7)
    assert torch.equal(y, torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7))
    assert type(y.grad_fn).__name__ == "FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_floats_keep_their_dtype(dtype):
    y = torch.fake_quantize_per_tensor_affine(leaf(dtype), 0.1, 3, -8, 7)
    assert y.dtype is dtype
    assert_close(y.float(), torch.tensor([-1.1, -0.8, -0.1, 0.0, 0.2, 0.3, 0.4, 0.4]), atol=5e-3, rtol=1e-2)


def test_each_channel_has_its_own_scale():
    x = torch.tensor(X).reshape(2, 4).requires_grad_()
    scale = torch.tensor([0.1, 0.5])
    y = torch.fake_quantize_per_channel_affine(x, scale, torch.tensor([0, 1], dtype=torch.int32), 0, -4, 3)
    assert_close(y, torch.tensor([[-0.4, -0.4, -0.1, 0.0], [0.0, 0.5, 0.5, 1.0]]))
    y.sum().backward()
    assert x.grad.tolist() == [[0, 0, 1, 1], [1, 1, 1, 0]]
    z = torch.fake_quantize_per_channel_affine(x, scale, torch.tensor([0.0, 1.3]), 0, -4, 3)  # added before rounding
    assert_close(z[1], torch.tensor([0.35, 0.35, 0.35, 0.85]))


def test_memory_order_stays():
    x = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert torch.fake_quantize_per_tensor_affine(x, 0.1, 0, 0, 255).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 30, -8, 7),
            RuntimeError,
            "`zero_point` must be between",
        ),
        (lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 7, 8, 7), RuntimeError, "`quant_min` should be less"),
        (lambda x: torch.fake_quantize_per_tensor_affine(x.int(), 0.1, 3, -8, 7), NotImplementedError, "for 'Int'"),
        (
            lambda x: torch.fake_quantize_per_channel_affine(
                x, torch.ones(2), torch.zeros(2, dtype=torch.int32), 0, -8, 7
            ),
            RuntimeError,
            "not consistent with input tensor",
        ),
        (
            lambda x: torch.fake_quantize_per_channel_affine(x, torch.ones(8), torch.zeros(8).long(), 0, -8, 7),
            RuntimeError,
            "Zero-point must be Int32, Float or Half, found Long",
        ),
    ],
)
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call(torch.tensor(X))


def test_learned_scale_and_zero_point_have_gradients():
    x = leaf()
    scale, point = (torch.tensor([v], requires_grad=True) for v in (0.13, 1.2))
    y = torch._fake_quantize_learnable_per_tensor_affine(x, scale, point, -4, 3, 0.5)
    assert_close(y, torch.tensor([-0.65, -0.65, 0.0, 0.0, 0.26, 0.26, 0.26, 0.26]))
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 1, 1, 1, 0, 0, 0]
    assert_close((scale.grad, point.grad), (torch.tensor([-1.7307692]), torch.tensor([-0.325])))
    s2, p2 = (torch.tensor([v], requires_grad=True) for v in (0.13, 1.2))
    rows = x.detach().reshape(1, -1)
    torch._fake_quantize_learnable_per_channel_affine(rows, s2, p2, 0, -4, 3, 0.5).sum().backward()
    assert_close(s2.grad, scale.grad)
    assert_close(p2.grad, point.grad)


def watched(x, state, *, on=1, fake=1, symmetric=False, low=0, high=255, rows=False):
    return torch.fused_moving_avg_obs_fake_quant(
        x, torch.tensor([on]), torch.tensor([fake]), *state, 0.1, low, high, 0, rows, symmetric
    )


def fresh(n=1):
    inf = float("inf")
    return [torch.full((n,), inf), torch.full((n,), -inf), torch.ones(n), torch.zeros(n, dtype=torch.int32)]


def test_a_range_is_taken_first_and_moved_after():
    state, x = fresh(), torch.tensor([-6.0, 4.0, 1.03])
    y = watched(x, state)
    assert_close(state[2], torch.tensor([10 / 255]))
    assert state[3].item() == 153
    assert_close(y, torch.tensor([-6.0, 4.0, 26 * 10 / 255]))
    watched(x * 2, state)
    assert_close(torch.cat(state[:2]), torch.tensor([-6.6, 4.4]))
    before = [s.clone() for s in state]
    assert torch.equal(watched(x * 9, state, on=0, fake=0), x * 9)
    assert all(torch.equal(a, b) for a, b in zip(before, state, strict=True))


def test_a_symmetric_range_keeps_zero_in_the_middle():
    state = fresh()
    watched(torch.tensor([-6.0, 4.0]), state, symmetric=True)
    assert state[3].item() == 128
    assert_close(state[2], torch.tensor([12 / 256]))
    state = fresh(2)
    watched(torch.tensor([[-6.0, 4.0], [1.0, -2.0]]), state, symmetric=True, low=-128, high=127, rows=True)
    assert state[3].tolist() == [0, 0]
    assert_close(state[2], torch.tensor([6 / 128, 2 / 128]))
