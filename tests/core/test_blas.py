"""The count of threads reaches the BLAS that NumPy has loaded."""

import ctypes

import pytest

import pullback as torch
from pullback.core import blas


def blas_threads():
    for path in blas._loaded_libraries():
        library = ctypes.CDLL(path)
        for name in blas._SETTERS:
            getter = getattr(library, name.replace("_set_", "_get_"), None)
            if getter is not None:
                return getter()
    pytest.skip("NumPy's BLAS is not an OpenBLAS")


def test_set_num_threads_reaches_blas():
    threads, before = torch.get_num_threads(), blas_threads()
    try:
        torch.set_num_threads(1)
        assert torch.get_num_threads() == 1 and blas_threads() == 1
        with pytest.raises(RuntimeError, match="set_num_threads expects a positive integer"):
            torch.set_num_threads(0)
        assert blas_threads() == 1
    finally:
        torch.set_num_threads(threads)
        blas.set_blas_threads(before)


def test_a_machine_without_a_list_of_libraries(monkeypatch):
    monkeypatch.setattr(blas, "_loaded_libraries", set)
    assert blas.set_blas_threads(1) is False
