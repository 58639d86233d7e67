"""Products with weights of four bits, against the products with the weights that these stand for."""

import numpy as np
import pytest

import pullback as torch

WEIGHT = torch.randint(0, 16, (16, 64), dtype=torch.int32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("group", [32, 64])
def test_int4(dtype, group):
    packed = torch._convert_weight_to_int4pack_for_cpu(WEIGHT, 2)
    assert packed.dtype is torch.uint8 and packed.shape == (16, 32)
    scales = torch.rand(64 // group, 16, 2).to(dtype)
    a = torch.rand(3, 64).to(dtype)
    rows = (WEIGHT.float() - 8).reshape(16, -1, group)
    by_group = scales.float().permute(2, 1, 0).unsqueeze(-1)
    expected = a.float() @ (rows * by_group[0] + by_group[1]).reshape(16, 64).T
    result = torch._weight_int4pack_mm_for_cpu(a, packed, group, scales)
    assert result.dtype is dtype and torch.allclose(result.float(), expected, rtol=1e-2 if dtype.itemsize < 4 else 1e-5)


def test_int4_refuses():
    pack, product = torch._convert_weight_to_int4pack_for_cpu, torch._weight_int4pack_mm_for_cpu
    with pytest.raises(RuntimeError, match="expect weight to be kInt"):
        pack(WEIGHT.float(), 2)
    with pytest.raises(RuntimeError, match="expect N to be dividable by 16"):
        pack(WEIGHT[:3], 2)
    packed, scales, a = pack(WEIGHT, 2), torch.ones(2, 16, 2), torch.ones(1, 64)
    for args, words in (
        ((a, packed, 16, scales), "expect qGroupSize to be 32, 64, 128 or 256, got 16"),
        ((a, packed, 128, scales), "expect K to be divisible by qGroupSize, got K:64, qGroupSize:128"),
        ((a, packed, 32, scales[:1]), r"3d tensor with sizes \[:, 16, 2\]"),
        ((a, packed.int(), 32, scales), "expect B to be uint8"),
        ((a.int(), packed, 32, scales), "32-bit or 16-bit float"),
        ((a.half(), packed, 32, scales), "expected scalar type Half but found Float"),
    ):
        with pytest.raises(RuntimeError, match=words):
            product(*args)


@pytest.mark.parametrize("with_bias", [False, True])
def test_dynamic_quantization(with_bias):
    weights = torch.tensor([[25, 38], [172, 123]], dtype=torch.uint8).repeat(1, 16)  # halves: 9 1 6 2 and 12 10 11 7
    scales, bias = torch.tensor([[0.5], [2.0]]), torch.tensor([1.0, -1.0]) if with_bias else None
    packed = torch._dyn_quant_pack_4bit_weight(weights, scales, bias, 64, 64, 2)
    x = torch.zeros(2, 64)
    x[0, 0], x[0, 1], x[1, 2] = 1.0, -1.0, 3.0
    result = torch._dyn_quant_matmul_4bit(x, packed, 64, 64, 2)
    expected = torch.tensor([[(1 + 7) * 0.5, (4 - 2) * 2.0], [-2 * 3 * 0.5, 3 * 3 * 2.0]])
    np.testing.assert_allclose(result.numpy(), (expected + bias if with_bias else expected).numpy(), rtol=2e-2)


def test_dynamic_quantization_rounds_its_input():
    weights, scales = torch.full((1, 16), 9 | 9 << 4, dtype=torch.uint8), torch.ones(1)
    packed = torch._dyn_quant_pack_4bit_weight(weights, scales, None, 32, 32, 1)
    x = torch.zeros(1, 32)
    x[0, 0], x[0, 1] = 255.0, 0.4  # steps of one: the small number is lost
    assert torch._dyn_quant_matmul_4bit(x, packed, 32, 32, 1).item() == 255.0
    with pytest.raises(RuntimeError, match="Group size should be multiple of 32"):
        torch._dyn_quant_pack_4bit_weight(weights, scales, None, 48, 32, 1)
    with pytest.raises(RuntimeError, match="expect weight to be kByte"):
        torch._dyn_quant_pack_4bit_weight(weights.int(), scales, None, 32, 32, 1)
    with pytest.raises(RuntimeError, match="float32 or bfloat16"):
        torch._dyn_quant_matmul_4bit(x.double(), packed, 32, 32, 1)
