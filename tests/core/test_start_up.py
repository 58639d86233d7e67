"""Importing leaves the collector as it was, and what it loads is what it needs."""

import gc
import subprocess
import sys

import pytest

import pullback as torch
from pullback.core.start_up import searched_later, uncollected


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled):
    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with uncollected():
            assert not gc.isenabled()
        assert gc.isenabled() is enabled
        with pytest.raises(ZeroDivisionError), uncollected():
            1 / 0
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


def test_importing_reads_no_schema_and_loads_no_stage_that_was_not_asked_for():
    code = """
import gc, sys
import pullback
from pullback.ops.system.operator import registry
assert gc.isenabled()
parsed = [k for k, op in registry.items() if "schema" in vars(op)]
assert len(parsed) < 20, parsed
stages = ("graph", "capture", "joint", "codegen", "distributed", "export", "nn", "optim")
assert not [s for s in stages if f"pullback.{s}" in sys.modules]
late = ("tempfile", "scipy", "rich", "optree", "importlib.resources")
assert not [m for m in late if m in sys.modules], [m for m in late if m in sys.modules]
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_compiling_is_not_disturbed_by_collections():
    seen = []

    def backend(module, inputs):
        seen.append(gc.isenabled())
        return module

    x = torch.ones(3)
    assert torch.compile(lambda x: x + 1, backend=backend)(x).tolist() == [2.0] * 3
    assert seen == [False] and gc.isenabled()
    gc.disable()
    try:
        with searched_later():
            pass
        assert not gc.isenabled()  # as the program had it
    finally:
        gc.enable()
