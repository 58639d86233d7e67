"""Random programs of every kind of statement, on a device and compiled there, are what they are on the CPU. More of them by hand: `beside`."""

from __future__ import annotations

import time
import warnings
from collections import Counter

import pytest

from tests.cuda.beside import run

SECONDS = 20  # however many programs that is


@pytest.mark.parametrize("compiled", [0, 6])
def test_programs_are_what_they_are_on_the_cpu(cuda, compiled):
    counts: Counter = Counter()
    started, seed = time.time(), 7_000_000 + compiled
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.time() - started < SECONDS and counts["programs"] < 300:
            words = run(seed, "cuda", counts, compiled=compiled)
            assert words is None, words
            seed += 10
            counts["programs"] += 1
    assert counts["statements"] > 2 * counts["programs"]
