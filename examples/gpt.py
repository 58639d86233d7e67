"""A GPT that learns to sort, under autocast, with accumulated and clipped gradients and a warm-up of the rate."""

import argparse
import math

import torch
import torch.nn as nn
from torch.nn import functional as F

BLOCK, SYMBOLS, LAYERS, HEADS, WIDTH = 11, 4, 2, 2, 32


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.tril(torch.ones(BLOCK, BLOCK)).view(1, 1, BLOCK, BLOCK))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, HEADS, C // HEADS).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        scores = scores.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        return self.c_proj((F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(B, T, C))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.h = nn.ModuleList(
            nn.ModuleDict(dict(
                ln_1=nn.LayerNorm(WIDTH), attn=CausalSelfAttention(), ln_2=nn.LayerNorm(WIDTH),
                mlp=nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH)),
            )) for _ in range(LAYERS)
        )  # fmt: skip
        self.ln_f, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, SYMBOLS, bias=False)
        self.head.weight = self.wte.weight
        self.apply(self._init)

    def _init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.08)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device))
        for block in self.h:
            x = x + block["attn"](block["ln_1"](x))
            x = x + block["mlp"](block["ln_2"](x))
        logits = self.head(self.ln_f(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def batch(count):
    """Six symbols, then the same six in order; only the ordered half is asked for."""
    x = torch.randint(SYMBOLS, (count, 6))
    row = torch.cat([x, x.sort(1).values], 1)
    targets = row[:, 1:].clone()
    targets[:, :5] = -1
    return row[:, :-1], targets


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--accumulate", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = GPT()
    groups = [
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.95))
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=20)
    for step in range(args.steps):
        for _ in range(args.accumulate):
            x, y = batch(32)
            with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
                _, loss = model(x, y)
            (loss / args.accumulate).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        warm.step()
        if step % 50 == 0 or step == args.steps - 1:
            print(f"step {step} loss {loss.item():.4f} norm {norm.item():.3f}")
    x, y = batch(200)
    right = (model(x)[0].argmax(-1)[:, 5:] == y[:, 5:]).all(1).float().mean()
    print(f"sorted {right.item():.0%} of new rows")


if __name__ == "__main__":
    main()
