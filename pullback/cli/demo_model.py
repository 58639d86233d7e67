"""A small language model over characters: what `pullback demo` trains, in the words a PyTorch user would write.

In: rows of character numbers. Out: for every place in a row, a score for each character that may come next; a place
never sees what stands after it.
"""

from __future__ import annotations

import pullback as torch
from pullback import nn
from pullback.nn import functional as F

__all__ = ["LanguageModel", "sample"]


class Block(nn.Module):
    """Attention over the places before, then a small network at each place; both are added to what came in."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.mix(seen.transpose(1, 2).reshape(batch, time, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.network(self.norm2(x))


class LanguageModel(nn.Module):
    def __init__(self, symbols: int, context: int = 48, width: int = 64, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.context = context
        self.symbol, self.place = nn.Embedding(symbols, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)
        for embedding in (self.symbol, self.place):
            nn.init.normal_(embedding.weight, std=0.1)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.symbol(text) + self.place(torch.arange(text.shape[1], device=text.device))
        return self.head(self.norm(self.blocks(x)))


@torch.no_grad()
def sample(model: LanguageModel, start: torch.Tensor, length: int, temperature: float = 0.5) -> torch.Tensor:
    """`start` (one row) continued by `length` characters, each drawn from what the model expects there."""
    text = start
    for _ in range(length):
        scores = model(text[:, -model.context :])[:, -1] / temperature
        text = torch.cat([text, torch.multinomial(scores.softmax(-1), 1)], 1)
    return text
