"""Exported programs with sizes and positions that data decides."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback import nn
from pullback.core.tree import tree_leaves
from tests.capture.trace.asserting import asserting_bounds

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


def sized(f):
    """A module that makes a number of its last argument for `f`."""

    class Sized(torch.nn.Module):
        def forward(self, x, n):
            return f(x, n.item())

    return Sized()


@pytest.mark.parametrize(
    "f",
    [
        lambda x, n: torch.matmul(torch.ones(3, n // 2, 4), torch.ones(4, 5)),
        lambda x, n: torch.matmul(torch.ones(2, 3, n // 2, 4), torch.ones(4, 5)).reshape(-1, 5),
        lambda x, n: torch.ones(n + 1, 4).reshape(-1, 2) * 2,
        lambda x, n: torch.bincount(x.long(), minlength=n),
        lambda x, n: x.kthvalue(min(n, 128), dim=0).values,
        lambda x, n: (lambda found: found[torch.argsort(found)[:n]])(x.nonzero().squeeze(1)),
        lambda x, n: torch.nn.functional.layer_norm(torch.ones(3, n), (n,)),
        lambda x, n: torch.nn.functional.scaled_dot_product_attention(*[torch.ones(1, 2, n, 8)] * 3, is_causal=True),
        lambda x, n: x[n:],
        lambda x, n: x[:n],
    ],
)
def test_numbers_that_data_decides_in_sizes_and_arguments(f) -> None:
    x = torch.arange(9.0)
    run = torch.export.export(sized(f), (x, torch.tensor(6))).module()
    for n in (6, 4):
        torch.testing.assert_close(run(x, torch.tensor(n)), f(x, n))


def test_a_negative_start_counts_from_the_end() -> None:
    x = torch.arange(5.0)
    run = torch.export.export(sized(lambda x, n: x[n:]), (x, torch.tensor(2))).module()
    assert run(x, torch.tensor(-2)).tolist() == [3, 4]


def test_an_assert_of_the_program_about_data_is_one_of_the_graph() -> None:
    run = torch.export.export(sized(asserting_bounds), (torch.arange(9.0), torch.tensor(6))).module()
    assert run(torch.arange(9.0), torch.tensor(3)).tolist() == [0, 2, 4]
    for wrong in (2, 7):
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            run(torch.arange(9.0), torch.tensor(wrong))


def test_a_choice_by_data_stays_an_error() -> None:
    with pytest.raises(RuntimeError, match="data-dependent"):
        torch.export.export(sized(lambda x, n: x if n > 2 else -x), (torch.ones(2), torch.tensor(6)))


def test_a_number_that_branches_give_is_asserted_where_it_is_known() -> None:
    class Picks(torch.nn.Module):
        def forward(self, x):
            return x[torch.cond(x.sum() > 0, lambda x: 0, lambda x: 1, (x,))]

    x = torch.arange(6.0).reshape(3, 2)
    program = torch.export.export(Picks(), (x,))
    program.graph.lint()
    assert [program.module()(v).tolist() for v in (x, -x)] == [[0, 1], [-2, -3]]
