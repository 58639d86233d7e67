"""Plain parameters of the CPU are updated by one call of a loop in C, as one by one."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.core import elements

built = pytest.mark.skipif(not elements.table, reason="the extension is not built")
MAKERS = {
    "Adam": lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.1), "AdamW": lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.1),
    "SGD": lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.1), "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, dampening=0.1),
    "nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
}  # fmt: skip


def trained(make):
    torch.manual_seed(0)
    transposed = torch.randn(3, 4).t().detach().requires_grad_()  # memory that no loop takes
    params = [
        torch.randn(5, 3, requires_grad=True),
        torch.randn(7, requires_grad=True),
        torch.randn(2).double().requires_grad_(),
        transposed,
    ]
    optimizer = make(params)
    for k in range(3):
        for i, p in enumerate(params):
            p.grad = p.detach() * 0.1 + i + k
        optimizer.step()
    return params, optimizer


@built
@pytest.mark.parametrize("name", MAKERS)
def test_all_are_updated_as_one_by_one(name: str, monkeypatch):
    make, rows = MAKERS[name], []
    run = elements.update_all
    monkeypatch.setattr(
        elements, "update_all", lambda how, some, numbers: (rows.append(len(some)), run(how, some, numbers))
    )
    got, optimizer = trained(make)
    assert max(rows) >= 2 and len(rows) <= 6  # by dtype at most, not by parameter
    monkeypatch.setattr(type(optimizer), "update_together", lambda self, params, group: params)
    want, _ = trained(make)
    for g, w in zip(got, want, strict=True):
        assert torch.equal(g, w) and g._version == w._version
