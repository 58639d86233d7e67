"""Adam's update of many parameters at once: who takes part, and what the kernel is told. A stand-in computes it here."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import pullback as torch
from pullback.optim import adam
from pullback.runtime import updates


@pytest.fixture
def together(monkeypatch):
    """Tensors of the CPU take the way of a device; the kernel is NumPy's. Gives what it was called with."""
    calls = []

    def kernel(parameters, **n):
        calls.append(len(parameters))
        for p, mean, square, g in parameters:
            slope = g + n["decay"] * p
            mean += (slope - mean) * n["fresh"]
            square[...] = square * n["keep"] + slope * slope * n["news"]
            p[...] = p * n["shrink"] - n["rate"] * mean / (np.sqrt(square) / n["scale"] + n["eps"])

    monkeypatch.setattr(updates, "adam", kernel)
    monkeypatch.setattr(adam, "_on_device", lambda p: True)
    monkeypatch.setattr(adam, "CUDA", 0)
    return calls


def trained(make, steps=3):
    torch.manual_seed(0)
    params = [
        torch.randn(5, 3, requires_grad=True),
        torch.randn(7, requires_grad=True),
        torch.randn(2, 2).double().requires_grad_(),
    ]
    optimizer = make(params)
    for k in range(steps):
        for i, p in enumerate(params):
            p.grad = None if k == 0 and i == 1 else (p.detach() * 0.1 + i + k)
        optimizer.step()
    return params, optimizer


@pytest.mark.parametrize(
    "make",
    [lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.1), lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.1)],
)
def test_all_parameters_are_updated_as_one_by_one(make, together, monkeypatch):
    got, optimizer = trained(make)
    assert together == [1, 1, 1, 1, 1]  # the first step makes the state; the second parameter is one step behind
    steps = [optimizer.state[p]["step"].item() for p in got]
    versions = [p._version for p in got]
    monkeypatch.undo()
    want, optimizer = trained(make)
    assert steps == [optimizer.state[p]["step"].item() for p in want] == [3, 2, 3]
    assert versions == [p._version for p in want]
    for a, b in zip(got, want, strict=True):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("option", ["amsgrad", "maximize"])
def test_other_updates_are_made_one_by_one(option, together):
    trained(lambda p: torch.optim.Adam(p, 0.1, **{option: True}), 2)
    assert together == []


def test_arrays_of_one_order_without_gaps_fit():
    a = np.zeros((4, 6))
    assert updates.applies(a, a, a, a) and updates.applies(a.T, a.T, a.T, a.T)
    assert not updates.applies(a, a, a, np.zeros((4, 6), order="F"))
    assert not updates.applies(a[:, ::2], *[a[:, ::2]] * 3)
    assert not updates.applies(a, a, a, a.astype(np.float32))


def test_the_table_fits_into_the_arguments_of_a_launch():
    arrays = [SimpleNamespace(data=SimpleNamespace(ptr=k), size=9) for k in range(4)]
    given = updates.arguments_of([tuple(arrays)] * 3, 7, np.arange(8.0))
    table, rest = np.frombuffer(given[: 40 * updates.MANY], np.int64).reshape(5, -1), given[40 * updates.MANY :]
    assert table[:, 2].tolist() == [0, 1, 2, 3, 9] and not table[:, 3:].any()
    assert np.frombuffer(rest[:8], np.int64) == 7 and np.frombuffer(rest[8:]).tolist() == list(range(8))
    assert len(given) <= 4096
