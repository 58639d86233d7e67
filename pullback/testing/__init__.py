"""Tools for tests: comparison of results, random tensors, patterns in text."""

from .comparison import assert_allclose, assert_close
from .creation import make_tensor
from .filecheck import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
