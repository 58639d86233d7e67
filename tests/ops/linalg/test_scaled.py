"""Products of scaled 8-bit floats: numbers recorded from PyTorch, and what is refused."""

import pytest

import pullback as torch
from pullback.nn import functional as F

TENSOR, ROW = F.ScalingType.TensorWise, F.ScalingType.RowWise


def operands():
    a = (torch.arange(16 * 32).reshape(16, 32) % 7 - 3).float()
    b = (torch.arange(16 * 32).reshape(16, 32) % 5 - 2).float()
    return a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t(), a @ b.t()


def test_one_scale_for_each_matrix():
    a, b, product = operands()
    half, two = torch.tensor(0.5), torch.tensor(2.0)
    assert torch.equal(torch._scaled_mm(a, b, half, half, out_dtype=torch.float32), product / 4)
    assert torch._scaled_mm(a, b, half, half).dtype is torch.float8_e4m3fn
    with_bias = torch._scaled_mm(a, b, half, two, bias=torch.ones(16), out_dtype=torch.float32)
    assert torch.equal(with_bias, product + 1)
    assert torch.equal(F.scaled_mm(a, b, half, TENSOR, [two], [TENSOR]), product.to(torch.bfloat16))


def test_a_scale_for_each_row_and_column():
    a, b, product = operands()
    rows, columns = torch.arange(1.0, 17.0)[:, None], torch.arange(1.0, 17.0)[None]
    found = F.scaled_mm(a, b, rows, ROW, columns, ROW, output_dtype=torch.float32)
    assert torch.equal(found, product * rows * columns)


def test_groups():
    a, b, product = operands()
    ends = torch.tensor([4, 16], dtype=torch.int32)
    right = torch.stack([b, b])
    found = F.scaled_grouped_mm(
        a, right, torch.full((16,), 2.0), ROW, torch.full((2, 16), 0.5), ROW, offs=ends, output_dtype=torch.float32
    )
    assert torch.equal(found, product)
    with pytest.raises(NotImplementedError, match="mat_b must be 3-D"):
        F.scaled_grouped_mm(a, b, torch.ones(16), ROW, torch.ones(16), ROW, offs=ends)


def test_refusals():
    a, b, _ = operands()
    one = torch.tensor(1.0)
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        torch._scaled_mm(a, b, one, torch.ones(3))
    with pytest.raises(ValueError, match="a and b should be float8"):
        torch._scaled_mm(a.float(), b.float(), one, one)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch._scaled_mm(a, b.t(), one, one)
    with pytest.raises(NotImplementedError, match="BlockWise1x32"):
        F.scaled_mm(a, b, one, F.ScalingType.BlockWise1x32, one, TENSOR)
    with pytest.raises(NotImplementedError, match="several levels"):
        F.scaled_mm(a, b, [one, one], TENSOR, one, TENSOR)
