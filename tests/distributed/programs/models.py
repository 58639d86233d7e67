"""Small models that the programs train, and one loop that trains them in several ways."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(self.n1(x)).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class GPT(nn.Module):
    """A language model whose head shares the embedding's weight."""

    def __init__(self, words=17, d=8, layers=2, heads=2, length=8):
        super().__init__()
        self.words, self.places = nn.Embedding(words, d), nn.Embedding(length, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, i):
        x = self.words(i) + self.places(torch.arange(i.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4)
        self.c2, self.b2 = nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        x = F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x))))))
        return self.head(x.mean((2, 3)))


def gpt_batch(n=8):
    i = torch.randint(0, 17, (n, 7), generator=torch.Generator().manual_seed(1))
    return i[:, :-1], i[:, 1:]


def image_batch(n=8):
    g = torch.Generator().manual_seed(2)
    return torch.randn(n, 2, 8, 8, generator=g), torch.randint(0, 3, (n,), generator=g)


def loss_of(model, x, y):
    out = model(x)
    return F.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))


def train(model, x, y, how="eager", steps=3):
    """The losses of some steps, by one of the ways to run them."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)

    def step(x, y):
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    if how == "whole step":
        step = torch.compile(step, fullgraph=True)
    elif how == "compiled":
        inner = model
        model = torch.compile(inner)
    losses = []
    for _ in range(steps):
        if how == "compiled autograd":
            with torch._dynamo.compiled_autograd._enable(torch.compile):
                losses.append(step(x, y).item())
        else:
            losses.append(step(x, y).item())
    return losses
