"""Tests of tensors on CUDA devices: without a device they are skipped."""

from __future__ import annotations

import pytest

import pullback as torch


@pytest.fixture
def cuda():
    if not torch.cuda.is_available():
        pytest.skip("needs CuPy and a CUDA device")
    torch.manual_seed(0)
    return torch.device("cuda", 0)
