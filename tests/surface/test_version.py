"""The version compares as versions do, with strings and with tuples."""

import pytest

import pullback as torch
from pullback.surface.version import TorchVersion


def test_comparisons():
    v = torch.__version__
    assert isinstance(v, str) and v >= (2, 4) and v >= "2.4" and v < "2.14" and v > "2.9.1" and v > (2, 13)
    assert v == "2.13.0+pullback" and v != "2.13.0" and hash(v) == hash("2.13.0+pullback")
    assert TorchVersion("2.4.0") == "2.4" and TorchVersion("2.4.0rc1") < "2.4.0" < TorchVersion("2.4.0.post1")
    assert TorchVersion("2.4.0.dev20240101") < TorchVersion("2.4.0a0") and not v >= "no version"
    with pytest.raises(TypeError):
        v > 2
