"""A training run gives the same bits each time; with deterministic algorithms, on any number of threads too, and compiled: see `test_exact`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import nn

THREADS = (1, 2, 3)
WAYS = ("eager", "compiled", "whole step")


def perceptron() -> tuple:
    model = nn.Sequential(
        nn.Linear(96, 160), nn.GELU(), nn.LayerNorm(160), nn.Linear(160, 70), nn.Tanh(), nn.Linear(70, 11)
    )
    x, y = torch.randn(130, 96), torch.randint(0, 11, (130,))
    return model, lambda: F.cross_entropy(model(x), y)


def language() -> tuple:
    table, head = nn.Embedding(50, 48), nn.Linear(48, 50)
    layer = nn.TransformerEncoderLayer(48, 3, 96, 0.0, "gelu", batch_first=True, norm_first=True)
    model, x = nn.ModuleList([table, layer, head]), torch.randint(0, 50, (9, 24))
    return model, lambda: F.cross_entropy(head(layer(table(x))).flatten(0, 1), x.flatten())


def recurrent(kind: str) -> Callable[[], tuple]:
    def make() -> tuple:
        inner, out = getattr(nn, kind)(24, 40, num_layers=2, batch_first=True), nn.Linear(40, 7)
        x, y = torch.randn(20, 12, 24), torch.randint(0, 7, (20,))
        return nn.ModuleList([inner, out]), lambda: F.cross_entropy(out(inner(x)[0][:, -1]), y)

    return make


def images() -> tuple:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 24, 3, 2, 1), nn.GroupNorm(4, 24),
        nn.SiLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(96, 10),
    )  # fmt: skip
    x, y = torch.randn(17, 3, 24, 24), torch.randint(0, 10, (17,))
    return model, lambda: F.cross_entropy(model(x), y)


def autoencoder() -> tuple:
    model = nn.Sequential(nn.Linear(300, 120), nn.ReLU(), nn.Linear(120, 300))
    x = torch.rand(64, 300)
    return model, lambda: F.binary_cross_entropy_with_logits(model(x), x, reduction="sum")


def elements() -> tuple:
    """Enough of them, and long enough rows, that threads share both."""
    model = nn.ParameterList([torch.randn(300_000), torch.randn(70, 3000)])
    return (
        model,
        lambda: (model[0].tanh() * model[0].exp()).mean() + torch.logsumexp(model[1], 1).sum() + model[1].std(),
    )


MODELS = {
    "perceptron": perceptron, "language": language, "LSTM": recurrent("LSTM"), "GRU": recurrent("GRU"), "images": images,
    "autoencoder": autoencoder, "elements": elements,
}  # fmt: skip


def run(make: Callable[[], tuple], way: str, threads: int) -> list:
    """Losses of some steps, and the parameters after them."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.manual_seed(0)
        model, loss = make()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        forward = torch.compile(loss) if way == "compiled" else loss

        def step():
            value = forward()
            value.backward()
            optimizer.step()
            optimizer.zero_grad()
            return value

        whole = torch.compile(step) if way == "whole step" else step
        return [*[whole().detach() for _ in range(3)], *[p.detach() for p in model.parameters()]]
    finally:
        torch.set_num_threads(before)


def bits(tensors: list) -> list[bytes]:
    return [t.numpy().tobytes() for t in tensors]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_a_run_gives_the_same_bits_each_time(name, way):
    for threads in THREADS[:2]:
        assert bits(run(MODELS[name], way, threads)) == bits(run(MODELS[name], way, threads))


@pytest.fixture
def deterministic():
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MODELS)
def test_deterministic_runs_do_not_depend_on_threads(name, way, deterministic):
    first, *others = (bits(run(MODELS[name], way, threads)) for threads in THREADS)
    assert all(other == first for other in others)
