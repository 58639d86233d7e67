"""Modules made cheaper for evaluation."""

import pytest

import pullback as torch
from pullback import nn
from pullback.graph import symbolic_trace
from pullback.graph.passes.inference import fuse, remove_dropout


class Twice(nn.Module):
    """One convolution, called before two batch norms."""

    def __init__(self):
        super().__init__()
        self.conv, self.a, self.b = nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.BatchNorm2d(2)

    def forward(self, x):
        return self.b(self.conv(self.a(self.conv(x))))


class Used(nn.Module):
    """A convolution whose result is used beside the batch norm too."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2)

    def forward(self, x):
        y = self.conv(x)
        return self.norm(y) + y


def settled(model):
    """In evaluation, with statistics that are none of the first ones."""
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d) and m.running_mean is not None:
            m.running_mean.uniform_(-1, 1), m.running_var.uniform_(0.5, 2)
    return model.eval()


def norms(model):
    return sum(isinstance(m, nn.BatchNorm2d) for m in model.modules())


@pytest.mark.parametrize(
    ("make", "left"),
    [
        (
            lambda: nn.Sequential(
                nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2)
            ),
            0,
        ),
        (lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3, track_running_stats=False)), 1),
        (lambda: nn.Sequential(nn.BatchNorm2d(2), nn.Conv2d(2, 3, 3)), 1),
        (Twice, 2),
        (Used, 1),
    ],
)
def test_batch_norms_are_folded_where_that_changes_nothing(make, left):
    model, x = settled(make()), torch.randn(2, 2, 5, 5)
    before, expected = norms(model), model(x)
    for made in (fuse(model), fuse(symbolic_trace(model), no_trace=True)):
        torch.testing.assert_close(made(x), expected, atol=1e-5, rtol=1e-5)
        assert norms(made) == left
    assert norms(model) == before
    torch.testing.assert_close(model(x), expected)  # what was given is as it was


def test_in_training_nothing_is_folded():
    with pytest.raises(Exception, match="eval"):
        fuse(nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)))


def test_dropout_is_taken_out():
    made = remove_dropout(nn.Sequential(nn.Dropout(0.9), nn.Linear(2, 2), nn.Dropout2d(0.9)))
    assert [n.target for n in made.graph.nodes if n.op == "call_module"] == ["1"]
