"""Sobol points: the numbers that PyTorch 2.13 draws."""

import pytest

import pullback as torch
from pullback.surface.quasirandom import SobolEngine

PLAIN = [[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625]]
SCRAMBLED = [
    [0.19947312772274017, 0.17093220353126526, 0.7493569254875183, 0.18431377410888672],
    [0.7161996364593506, 0.5627339482307434, 0.22931800782680511, 0.6249820590019226],
    [0.8995790481567383, 0.4217311441898346, 0.8244073390960693, 0.4667873680591583],
]


def test_points():
    assert SobolEngine(3).draw(5).tolist() == PLAIN
    engine = SobolEngine(3)
    assert engine.draw(2).tolist() + engine.draw(3).tolist() == PLAIN
    assert SobolEngine(4, scramble=True, seed=7).draw(3).tolist() == SCRAMBLED


def test_skipping_and_starting_again():
    engine = SobolEngine(4, scramble=True, seed=7)
    assert engine.fast_forward(2).draw(1).tolist() == SCRAMBLED[2:] and engine.reset().draw(3).tolist() == SCRAMBLED
    many = SobolEngine(2).draw(9)
    assert torch.equal(SobolEngine(2).fast_forward(4).fast_forward(1).draw(4), many[5:])
    assert repr(engine) == "SobolEngine(dimension=4, scramble=True, seed=7)"


def test_options():
    out = torch.empty(0, dtype=torch.float64)
    assert SobolEngine(3).draw(2, out=out, dtype=torch.float64) is out and out.shape == (2, 3)
    assert SobolEngine(2).draw_base2(2).shape == (4, 2)
    with pytest.raises(ValueError, match="require n to be a power of 2"):
        SobolEngine(2).fast_forward(1).draw_base2(1)
    with pytest.raises(ValueError, match="Supported range of dimensionality"):
        SobolEngine(0)
