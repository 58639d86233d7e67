"""Modules that the tests of exporting share."""

from __future__ import annotations

import pullback as torch
from pullback import nn


class Net(nn.Module):
    """Parameters, a buffer that is written, a constant, a region without recording, nested outputs."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(4, 3), nn.BatchNorm1d(3)
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("shift", torch.ones(3), persistent=False)
        self.scale = torch.full((3,), 2.0)

    def forward(self, x, y, *, k=2):
        self.calls.add_(1)
        with torch.no_grad():
            z = x.reshape(-1) * x.shape[0]
        return {"a": self.norm(self.layer(x)) * self.scale + self.shift, "b": x + k + y, "z": z}, 3, None


class Add(nn.Module):
    def forward(self, x, y):
        return x + y
