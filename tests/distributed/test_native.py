"""Collectives that native code calls without Python in between."""

from .ranks import needs_mpi, run_ranks


@needs_mpi
def test_native_code_calls_mpi():
    out = run_ranks("native.py", 2)
    assert "rank 0 is done" in out and "rank 1 is done" in out
