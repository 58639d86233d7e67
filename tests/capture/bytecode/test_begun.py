"""Work that is done once is done ahead of the graph: the first step of an optimizer is captured as all others are."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.report import collecting

OPTIMIZERS = {
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1, amsgrad=True),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.1, momentum=0.5, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, initial_accumulator_value=0.5),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.1),
    "Rprop, a tensor": lambda p: torch.optim.Rprop(p, lr=torch.tensor(0.1)),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=0.1),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.1),
    "ASGD, averaging": lambda p: torch.optim.ASGD(p, lr=torch.tensor(0.1), t0=1),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.1),
}


def step_of(optimizer, model, data, more=None):
    def step():
        optimizer.zero_grad()
        loss = model(data).square().sum()
        if more is not None:
            more(optimizer, model)
        loss.backward()
        optimizer.step()
        return loss

    return step


def trained(make, compiled: bool, more=None, times: int = 3) -> tuple:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)).double()
    optimizer = make(model.parameters())
    step = step_of(optimizer, model, torch.randn(5, 4, dtype=torch.float64), more)
    run = torch.compile(step) if compiled else step
    losses = [run().detach() for _ in range(times)]
    return losses, [p.detach() for p in model.parameters()], optimizer.state_dict()["state"]


def agree(make, more=None, times: int = 3) -> None:
    expected = trained(make, False, more, times)
    torch.testing.assert_close(trained(make, True, more, times), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_first_step_is_that_of_eager_mode(name: str) -> None:
    agree(OPTIMIZERS[name])


@pytest.mark.parametrize("name", ["RAdam", "ASGD, averaging", "Adafactor"])
def test_what_depends_on_the_count_changes_within_one_graph(name: str) -> None:
    """RAdam adapts from the sixth step on, an average starts after `t0`."""
    agree(OPTIMIZERS[name], times=9)


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name != "Rprop, a tensor"])
def test_there_is_one_graph_for_the_first_step_and_the_others(name: str) -> None:
    with collecting() as account:
        trained(OPTIMIZERS[name], True)
    assert sum(graph.kind == "captured" for graph in account.graphs) == 1


def look(optimizer, model) -> None:
    if not optimizer.state:
        for p in model.parameters():
            p.data.mul_(2)


def freeze(optimizer, model) -> None:
    model[0].bias.requires_grad_(False)


def another_rate(optimizer, model) -> None:
    optimizer.param_groups[0]["lr"] = optimizer.param_groups[0]["lr"] * 0.5


def forget(optimizer, model) -> None:
    optimizer.state.clear()


def write_rate(optimizer, model) -> None:
    lr = optimizer.param_groups[0]["lr"]
    if isinstance(lr, torch.Tensor):
        lr.mul_(0.5)


@pytest.mark.parametrize("more", [look, freeze, another_rate, forget, write_rate])
@pytest.mark.parametrize("name", ["Adam", "Rprop", "Rprop, a tensor"])
def test_what_the_program_does_before_counts(name: str, more) -> None:
    agree(OPTIMIZERS[name], more)


def test_parameters_without_gradients_have_no_state() -> None:
    used, unused = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([used, unused])

    @torch.compile
    def step():
        (used * 2).sum().backward()
        optimizer.step()

    step()
    assert list(optimizer.state) == [used]


def test_an_optimizer_that_the_program_makes() -> None:
    w = torch.nn.Parameter(torch.ones(2))

    def step():
        optimizer = torch.optim.Adam([w], lr=0.5)
        (w * w).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    torch.compile(step)()
    got = w.detach().clone()
    with torch.no_grad():
        w.fill_(1)
    step()
    torch.testing.assert_close(got, w.detach())


def test_errors_of_the_first_step_are_its_own() -> None:
    w = torch.nn.Parameter(torch.ones(3, 2))
    optimizer = torch.optim.Adam([w])
    w.grad = torch.ones(3, 2).to_sparse()
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients"):
        torch.compile(optimizer.step)()
    assert not optimizer.state
