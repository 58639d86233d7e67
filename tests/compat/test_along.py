"""Modules that come with one of PyTorch's are there when only that one was imported."""

import subprocess
import sys

PROGRAM = """
import pullback.compat.torch
pullback.compat.torch.install()
import sys, unittest
import torch._dynamo
print(hasattr(unittest, "mock"))
"""


def test_mocks_come_with_dynamo():
    out = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["True"]
