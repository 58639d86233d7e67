"""The programs that are run beside another library, beside pullback itself: what is compiled is what is not, and nothing depends
on what ran before. Beside PyTorch they are run by hand, `python -m tests.laws.beside torch`."""

from __future__ import annotations

import warnings
from collections import Counter

import pytest

from tests.laws.beside.__main__ import run
from tests.laws.beside.pair import Different, Pair
from tests.laws.programs import EXAMPLES


def test_programs_give_what_they_give() -> None:
    counts: Counter = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        different = [words for seed in range(15 * EXAMPLES) if (words := run(seed, "pullback", counts))]
    assert not different, different[0]
    assert counts["statements"] > 40 * EXAMPLES and counts["raised"] < counts["statements"] / 5


@pytest.mark.parametrize(
    "line",
    [
        "x = torch.ones(3) * side",
        "x = torch.ones(3, dtype=torch.float64 if side > 1 else torch.float32)",
        "x = torch.ones(3, requires_grad=side > 1)",
        "x = torch.ones(2 + side)",
        "x = torch.ones(2, 2).t() if side > 1 else [1, 2]",
        "x = torch.zeros(side - 1).sum() / 0 if side > 1 else missing",
        "torch.ones(0 if side > 1 else 2).max()",
        "log.append(side)",
    ],
)
def test_differences_are_seen(line) -> None:
    pair = Pair("pullback", [])
    pair.ours["side"], pair.theirs["side"] = 1, 2
    with pytest.raises(Different):
        pair.run(line, "x" if line.startswith("x") else "")


@pytest.mark.parametrize(
    "write", ["x.add_(1)", "x.add_(0)", "x.requires_grad_()", "x.grad = torch.ones(3)", "x.unsqueeze_(0)"]
)
def test_writes_on_one_side_are_seen(write) -> None:
    pair = Pair("pullback", [])
    pair.run("x = torch.zeros(3, requires_grad=True)" if "grad =" in write else "x = torch.zeros(3)", "x")
    pair.ours["side"], pair.theirs["side"] = 1, 2
    with pytest.raises(Different):
        pair.run(f"if side > 1: {write}")
