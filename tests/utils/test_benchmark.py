"""Timing statements."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.utils.benchmark import Compare, Measurement, TaskSpec, Timer


class Clock:
    """Ten milliseconds pass each time somebody looks."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 0.01
        return self.now


def test_a_run_is_divided_by_its_calls():
    m = Timer("x + 1", globals={"x": torch.ones(2)}, timer=Clock()).timeit(10)
    assert m.number_per_run == 10 and m.times == [pytest.approx(0.001)] and m.median == m.mean
    assert "Time: 1.00 ms" in repr(m) and "1 measurement, 10 runs" in repr(m)


def test_runs_go_on_until_the_time_is_over_with_the_threads_asked_for():
    before = torch.get_num_threads()
    seen = []
    m = Timer("seen.append(threads())", globals={"seen": seen, "threads": torch.get_num_threads}, num_threads=1)
    result = m.blocked_autorange(min_run_time=0.02)
    assert sum(result.raw_times) >= 0.02 and set(seen) == {1} and torch.get_num_threads() == before


def test_numbers_that_describe_runs():
    m = Measurement(2, [2.0, 4.0, 6.0, 8.0], TaskSpec("pass", "pass", label="a", sub_label="b"))
    assert (
        m.times == [1, 2, 3, 4] and m.median == 2.5 and m.iqr == 1.5 and m.has_warnings and m.significant_figures == 1
    )
    assert m.title == "a: b" and m.label == "a" and m.as_row_name == "b"
    (merged,) = Measurement.merge([m, m])
    assert sorted(merged.times) == [1, 1, 2, 2, 3, 3, 4, 4]


def test_a_table():
    rows = [(1e-3, "ours", "small"), (2e-3, "theirs", "small"), (5e-3, "ours", "large")]
    table = str(Compare([Measurement(1, [t], TaskSpec("f()", "", "", "f", sub, who)) for t, who, sub in rows]))
    assert "Times are in ms." in table
    assert [line.split() for line in table.splitlines() if line.startswith("  ")][1:] == [
        ["small", "|", "1.0", "|", "2.0"],
        ["large", "|", "5.0", "|"],
    ]


def test_other_languages_are_refused():
    with pytest.raises(ValueError, match="only in Python"):
        Timer("x", language="c++")
