"""The count of threads reaches the BLAS that NumPy has loaded."""

import ctypes
import os
import subprocess
import sys

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


LATE = """
import ctypes, sys
import pullback as torch
from pullback.core import blas

def counts():
    found = {}
    for path in blas._loaded_libraries():
        getters = [getattr(ctypes.CDLL(path), n.replace("_set_", "_get_"), None) for n in blas._SETTERS]
        found.update({path: g() for g in getters if g is not None})
    return found

before = counts()
exec(sys.argv[1])
assert "scipy.linalg" not in sys.modules
torch.linalg.inv(torch.eye(3)), torch.matrix_exp(torch.eye(3))
assert "scipy.linalg" in sys.modules
print(torch.get_num_threads(), len(set(counts()) - set(before)), *sorted(set(counts().values())))
"""


@pytest.mark.parametrize(
    ("first", "environment", "expected"),
    [
        ("torch.set_num_threads(1)", {"OMP_NUM_THREADS": "2"}, (1, 1)),
        ("torch.set_num_threads(3)", {"OMP_NUM_THREADS": "1"}, (3, 3)),
        ("torch.use_deterministic_algorithms(True)", {"OMP_NUM_THREADS": "2"}, (2, 1)),
        ("", {"OMP_NUM_THREADS": "2"}, (2, 2)),
        ("", {}, None),
    ],
)
def test_a_library_that_is_loaded_later_has_the_same_count(first, environment, expected):
    clean = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    run = [sys.executable, "-c", LATE, first]
    words = subprocess.run(run, env=clean | environment, capture_output=True, text=True, check=True).stdout.split()
    threads, loaded, *counts = map(int, words)
    if not loaded:
        pytest.skip("SciPy has no OpenBLAS of its own")
    assert (threads, *counts) == (expected or (threads, threads))
