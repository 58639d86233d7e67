"""Rates that are tensors stay inputs of a compiled step: a schedule makes no further graph."""

import pytest

import pullback as torch
from pullback import optim
from pullback.capture.front.compile import counters


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "RMSprop", "Muon"])
def test_one_graph_whatever_the_rate(name):
    def train(compiled):
        torch.manual_seed(0)
        p = torch.randn(4, 3, requires_grad=True)
        optimizer = getattr(optim, name)([p], lr=torch.tensor(0.1), weight_decay=0.1)

        def step(x):
            loss = ((p * x) ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        run = torch.compile(step, fullgraph=True) if compiled else step
        for i in range(4):
            run(torch.full((4, 3), 0.5 + i))
            optimizer.param_groups[0]["lr"].mul_(0.5)
        return p.detach()

    expected = train(False)
    counters.clear()
    torch.testing.assert_close(train(True), expected)
    assert counters["stats"]["unique_graphs"] == 1  # its state is made ahead of it
