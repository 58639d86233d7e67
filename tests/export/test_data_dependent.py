"""Exported programs with sizes and positions that data decides."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import nn
from pullback.core.tree import tree_leaves

PROGRAMS = {
    "slice": lambda x, y: y[: x[0].item()],
    "slice from": lambda x, y: y[x[0].item() : x[1].item()],
    "view": lambda x, y: torch.ones(x[0].item() * 4).view(-1, 4),
    "view of both": lambda x, y: torch.ones(x[0].item() * x[1].item()).view(*x.tolist()),
    "max": lambda x, y: torch.ones(max(x[0].item(), 3)) * min(x[1].item(), 2),
    "pad": lambda x, y: nn.functional.pad(y, (x[0].item(), x[1].item())),
    "contiguous": lambda x, y: torch.zeros(1, x[0].item() + x[1].item()).contiguous(),
    "split": lambda x, y: torch.split(y, x.tolist()),
    "select": lambda x, y: y[x[0].item()],
    "a tensor as a size": lambda x, y: torch.zeros([x[0], 2]),
    "a tensor of numbers": lambda x, y: torch.tensor([x[0].item(), 7]),
    "cat": lambda x, y: torch.cat([y, torch.ones(x[1].item())]),
    "masked": lambda x, y: y[y > x[0]].reshape(-1, 1) * 2,
}


class Program(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.run = PROGRAMS[name]

    def forward(self, x, y):
        return self.run(x, y)


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_data_gives_what_the_program_gives(name: str) -> None:
    y = torch.arange(6.0)
    run = torch.export.export(Program(name), (torch.tensor([2, 4]), y)).module()
    others = [(1, 5), (4, 2)] + ([(-2, 5), (-4, -1), (9, 9)] if name.startswith("slice") else [])
    others += [(-3, 5)] if name == "select" else []
    for pair in others:
        x = torch.tensor(pair)
        for a, b in zip(tree_leaves(run(x, y)), tree_leaves(PROGRAMS[name](x, y)), strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("name", "pair"), [("select", (6, 0)), ("split", (2, 3)), ("pad", (-9, 0)), ("contiguous", (-3, 1))]
)
def test_data_that_does_not_fit_is_refused_when_run(name: str, pair: tuple) -> None:
    y = torch.arange(6.0)
    run = torch.export.export(Program(name), (torch.tensor([2, 4]), y)).module()
    with pytest.raises((RuntimeError, IndexError)):
        run(torch.tensor(pair), y)
