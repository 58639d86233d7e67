"""Tests of tensors on CUDA devices: without a device they are skipped."""

from __future__ import annotations

import traceback

import pytest

import pullback as torch


@pytest.fixture
def cuda():
    if not torch.cuda.is_available():
        pytest.skip("needs CuPy and a CUDA device")
    torch.manual_seed(0)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):  # results are compared with the CPU's
        yield torch.device("cuda", 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A test that fails for a kernel which the stand-in for CuPy cannot run is skipped (see `test_stand_in`)."""
    try:
        return (yield)
    except Exception as error:
        if "NotImplementedError: kernels in CUDA C need a device" in "".join(traceback.format_exception(error)):
            pytest.skip("the stand-in for CuPy runs no kernels")
        raise
