"""Fakes that a module keeps beyond its export."""

from __future__ import annotations

import warnings

import pytest

import pullback as torch
from pullback import nn
from pullback.export import export
from pullback.export.config import config


class Keeps(nn.Module):
    def __init__(self, kept: list, count: int) -> None:
        super().__init__()
        self.kept, self.count = [kept], count  # in a list, so that no attribute changes

    def forward(self, x):
        for _ in range(self.count):
            y = x.clone()
            self.kept[0].append(lambda y=y: y)
        return x + 1


def test_fakes_that_are_kept_are_counted() -> None:
    kept: list = []
    with config.patch(detect_non_strict_fake_tensor_leaks=True), pytest.warns(UserWarning) as found:
        export(Keeps(kept, 3), (torch.ones(2),))
    (words,) = [str(w.message) for w in found]
    assert words.startswith("Detected 3 fake tensors that are still alive after export") and "y = x.clone()" in words


def test_nothing_is_said_where_nothing_is_kept() -> None:
    with config.patch(detect_non_strict_fake_tensor_leaks=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        export(nn.Linear(2, 2), (torch.ones(2, 2),))
