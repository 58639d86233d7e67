"""Autograd, modules and optimizers on a CUDA device: what they compute on the CPU, they compute there."""

from __future__ import annotations

import copy

import pytest

import pullback as torch
from pullback import nn
from pullback.nn import functional as F


def close(a, b, tolerance=1e-4):
    assert a.is_cuda, a.device
    assert torch.allclose(a.cpu(), b, rtol=tolerance, atol=tolerance), (a, b)


def test_gradients(cuda):
    for where in (cuda, torch.device("cpu")):
        x = torch.linspace(0.1, 2, 12).reshape(3, 4).to(where).requires_grad_()
        y = (x.sin() * x.exp()).sum(1).log_softmax(0)[1] + x[:, 1:].cumsum(1).max() + (x.T @ x).trace()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        g.square().sum().backward()
        if where is cuda:
            first, second = g.detach(), x.grad
            assert x.grad.device is cuda
    close(first, g.detach())
    close(second, x.grad)


def net():
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 16),
        nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 5),
    )  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: torch.optim.Adam(p, 1e-2),
        lambda p: torch.optim.AdamW(p, 1e-2),
        lambda p: torch.optim.RMSprop(p, 1e-2),
    ],
)
def test_training_is_that_of_the_cpu(cuda, make):
    torch.manual_seed(0)
    ours = net()
    theirs = copy.deepcopy(ours).cuda()
    assert all(type(p) is nn.Parameter and p.is_cuda and p.is_leaf for p in theirs.parameters())
    x, y = torch.randn(8, 2, 8, 8), torch.randint(0, 5, (8,))
    optimizers = [make(m.parameters()) for m in (ours, theirs)]
    for _ in range(4):
        losses = []
        for model, optimizer, where in zip((ours, theirs), optimizers, ("cpu", cuda), strict=True):
            loss = F.cross_entropy(model(x.to(where)), y.to(where))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        close(losses[1], losses[0], 1e-3)


def test_attention_and_state(cuda):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    x = torch.randn(2, 5, 16)
    want = layer(x)
    layer.to("cuda")
    close(layer(x.cuda()).detach(), want.detach())
    state = {k: v.cpu() for k, v in layer.state_dict().items()}
    layer.load_state_dict(state)
    assert next(layer.parameters()).is_cuda
    q = torch.randn(2, 2, 5, 8)
    close(
        F.scaled_dot_product_attention(*[q.cuda()] * 3, is_causal=True),
        F.scaled_dot_product_attention(q, q, q, is_causal=True),
    )


def test_autocast_and_scaler(cuda):
    w, x = torch.randn(8, 8, device=cuda, requires_grad=True), torch.randn(4, 8, device=cuda)
    with torch.autocast("cuda"):
        y = x @ w
        assert y.dtype is torch.float16 and y.exp().dtype is torch.float32
    scaler, optimizer = torch.amp.GradScaler("cuda", 128.0), torch.optim.SGD([w], 0.1)
    assert scaler.is_enabled()
    scaler.scale(y.float().square().mean()).backward()
    before = w.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert not w.equal(before) and w.isfinite().all()


def test_the_demonstration_learns_the_same(cuda):
    from pullback.cli.demo import SYMBOLS, encode
    from pullback.cli.demo_model import LanguageModel
    from pullback.cli.demo_text import TEXT

    torch.manual_seed(0)
    ours = LanguageModel(len(SYMBOLS))
    theirs = copy.deepcopy(ours).cuda()
    windows = encode(TEXT).unfold(0, ours.context + 1, 1)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=3e-3) for m in (ours, theirs)]
    curves: tuple[list, list] = ([], [])
    for _ in range(30):
        rows = windows[torch.randint(len(windows), (8,))]
        for model, optimizer, curve, where in zip((ours, theirs), optimizers, curves, ("cpu", cuda), strict=True):
            given = rows.to(where)
            loss = F.cross_entropy(model(given[:, :-1]).flatten(0, 1), given[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            curve.append(loss.item())
    assert curves[0][-1] < curves[0][0] - 0.5
    assert all(abs(a - b) < 1e-3 * a for a, b in zip(*curves, strict=True)), curves


def test_narrow_products(cuda):
    for d in (torch.bfloat16, torch.float16):
        a, b = torch.randn(2, 3, 5, 4).to(d), torch.randn(2, 3, 4, 6).to(d)
        for x, y in ((a, b), (a[0, 0], b[0, 0]), (a, b[0, 0]), (a[0], b[0]), (a[0, 0, 0], b[0, 0])):
            got = x.cuda() @ y.cuda()
            assert got.dtype is d and torch.allclose(got.cpu().float(), (x.float() @ y.float()), rtol=0.02, atol=0.02)
