"""An LSTM that learns to spell numbers in words, one character at a time, and then writes some."""

import argparse

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

UNITS = "one two three four five six seven eight nine".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
TEXT = "\n".join(f"{ten} {unit}" for ten in TENS for unit in UNITS) + "\n"
SYMBOLS = sorted(set(TEXT))
INDEX = {symbol: i for i, symbol in enumerate(SYMBOLS)}


class CharRNN(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.embedding = nn.Embedding(len(SYMBOLS), 16)
        self.rnn = nn.LSTM(16, hidden, num_layers=1, batch_first=True)
        self.decoder = nn.Linear(hidden, len(SYMBOLS))

    def forward(self, x, state=None):
        out, state = self.rnn(self.embedding(x), state)
        return self.decoder(out), state


def batches(data, batch, length):
    """Consecutive pieces of `batch` parallel streams: the state of one piece is where the next begins."""
    streams = data[: len(data) // batch * batch].view(batch, -1)
    for start in range(0, streams.size(1) - 1, length):
        piece = streams[:, start : start + length + 1]
        yield piece[:, :-1], piece[:, 1:]


@torch.no_grad()
def generate(model, length):
    model.eval()
    symbol, state, written = torch.tensor([[INDEX["\n"]]]), None, []
    for _ in range(length):
        scores, state = model(symbol, state)
        symbol = torch.distributions.Categorical(logits=scores[:, -1] / 0.7).sample().unsqueeze(0)
        written.append(SYMBOLS[symbol.item()])
    return "".join(written)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=25)
    args = parser.parse_args()
    torch.manual_seed(1)
    data = torch.tensor([INDEX[symbol] for symbol in TEXT])
    model = CharRNN()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        model.train()
        state, total, count = None, 0.0, 0
        for x, y in batches(data, batch=8, length=24):
            if state is not None:
                state = tuple(part.detach() for part in state)
            scores, state = model(x, state)
            loss = criterion(scores.reshape(-1, len(SYMBOLS)), y.reshape(-1))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total, count = total + loss.item(), count + 1
        if epoch % 5 == 4 or epoch == args.epochs - 1:
            print(f"epoch {epoch} loss {total / count:.4f}")
    print(generate(model, 80))


if __name__ == "__main__":
    main()
