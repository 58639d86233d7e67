"""The tests of this folder on a stand-in for CuPy: all that `torch.cuda` and tensors on devices do besides running kernels.

Another process runs them, in which `stand_in/` comes first on the path. Tests that need a kernel in CUDA C are skipped there.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pullback as torch

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# Tests that look at what kernels, run again by a graph, have written.
OF_KERNELS = ("test_graphs.py::test_a_replay_computes_on_new_inputs", "test_native.py")


FILES = (
    "test_runtime.py",
    "test_graphs.py",
    "test_tensors.py",
    "test_training.py",
    "test_transforms.py",
    "test_distributed.py",
    "device_names.py",
)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device: the tests run on it")
@pytest.mark.parametrize("file", FILES)
def test_on_the_stand_in(file):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE / "stand_in"), str(ROOT)])}
    left_out = [f"--deselect=tests/cuda/{name}" for name in OF_KERNELS]
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *left_out, f"tests/cuda/{file}"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed and int(passed[1]) >= 3, done.stdout[-500:]  # and not all of them skipped
