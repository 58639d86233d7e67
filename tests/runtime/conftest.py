"""What tests of kernels in C share."""

from __future__ import annotations

import pytest

from pullback.runtime import network


@pytest.fixture(params=[0, 1, 2], ids=["any machine", "avx2", "avx512"])
def instructions(request):
    kernels = network.kernels()
    before = kernels.instructions(request.param)
    if kernels.instructions(-1) != request.param:
        pytest.skip("this machine does not have them")
    yield
    kernels.instructions(before)
