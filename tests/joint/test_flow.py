"""Minimum cuts: held to SciPy's flows, on random networks."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pullback.joint.flow import Flow, minimum_cut


def pipes(rng: random.Random, count: int) -> tuple[list[int], list[int], list[int], int]:
    """A random network without cycles: some pipes are fed, some lead to the end, and what joins them is too wide to cut."""
    widths = [rng.randint(1, 40) for _ in range(count)]
    wide = sum(widths) + 1
    begins, ends, caps = [], [], []

    def join(begin: int, end: int, width: int) -> None:
        begins.append(begin)
        ends.append(end)
        caps.append(width)

    for i, width in enumerate(widths):
        join(2 * i + 2, 2 * i + 3, width)
        for j in rng.sample(range(i + 1, count), min(count - i - 1, rng.randint(0, 3))):
            join(2 * i + 3, 2 * j + 2, wide)
        if i == 0 or rng.random() < 0.2:
            join(0, 2 * i + 2, wide)
        if i == count - 1 or rng.random() < 0.2:
            join(2 * i + 3, 1, wide)
    return begins, ends, caps, 2 * count + 2


def reached(begins: list[int], ends: list[int], without: set[int], size: int) -> set[int]:
    """The vertices to which water gets, where some pipes are cut."""
    found = {0}
    for _ in range(size):
        found |= {
            e
            for b, e in zip(begins, ends)
            if b in found and not (e == b + 1 and b % 2 == 0 and (b - 2) // 2 in without)
        }
    return found


@pytest.mark.parametrize("seed", range(20))
def test_cuts_cost_what_flows_and_let_nothing_through(seed):
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    rng = random.Random(seed)
    begins, ends, caps, size = pipes(rng, rng.randint(1, 40))
    cut = minimum_cut(begins, ends, caps, size)
    network = csr_array((np.array(caps, np.int32), (begins, ends)), shape=(size, size))
    width = {(b - 2) // 2: c for b, e, c in zip(begins, ends, caps) if e == b + 1 and b % 2 == 0 and b}
    assert sum(width[i] for i in cut) == maximum_flow(network, 0, 1).flow_value
    assert 1 not in reached(begins, ends, set(cut), size)


def test_of_equal_cuts_the_one_nearer_to_the_end_is_taken():
    # begin -> pipe 0 -> pipe 1 -> pipe 2 -> end, equally wide
    assert minimum_cut([0, 2, 3, 4, 5, 6, 7], [2, 3, 4, 5, 6, 7, 1], [100, 5, 100, 5, 100, 5, 100], 8) == [2]
    assert minimum_cut([0, 2, 3, 4, 5, 6, 7], [2, 3, 4, 5, 6, 7, 1], [100, 5, 100, 4, 100, 5, 100], 8) == [1]


def test_what_was_sent_one_way_is_taken_back_for_another():
    # Ways over 2 alone and over 3 alone take 1 each; the first way that is found goes over both.
    flow = Flow([0, 0, 2, 2, 3], [2, 3, 3, 1, 1], [1, 1, 1, 1, 1], 4)
    flow.fill()
    assert flow.flow == 2


def test_widths_may_be_larger_than_any_fixed_integer():
    wide = 10**30
    assert minimum_cut([0, 2, 3, 4, 5], [2, 3, 4, 5, 1], [3 * wide, wide + 1, 3 * wide, wide, 3 * wide], 6) == [1]


def test_a_network_that_cannot_be_cut_says_what_that_means():
    with pytest.raises(RuntimeError, match="failed to partition the joint forward-backward graph"):
        minimum_cut([0, 2, 3], [2, 3, 1], [7, 7, 7], 4)
