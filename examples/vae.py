"""A variational autoencoder of small pictures of bars, its loss as it falls and one drawn from the prior."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIZE = 8


def bars(count):
    """Pictures with one bright row and one bright column."""
    pictures = torch.zeros(count, SIZE, SIZE)
    row, column, each = torch.randint(SIZE, (count,)), torch.randint(SIZE, (count,)), torch.arange(count)
    pictures[each, row] = 1
    pictures[each, :, column] = 1
    return pictures.view(count, -1)


class VAE(nn.Module):
    def __init__(self, latent=6, hidden=96):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Linear(SIZE * SIZE, hidden), nn.ReLU())
        self.mean, self.log_variance = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, SIZE * SIZE))

    def reparameterize(self, mean, log_variance):
        std = torch.exp(0.5 * log_variance)
        return mean + torch.randn_like(std) * std

    def forward(self, x):
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        return self.decoder(self.reparameterize(mean, log_variance)), mean, log_variance


def loss_function(scores, x, mean, log_variance):
    reconstruction = F.binary_cross_entropy_with_logits(scores, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    return reconstruction / len(x), divergence / len(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    args = parser.parse_args()
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(bars(1024)), batch_size=64, shuffle=True, drop_last=True)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.epochs):
        sums = torch.zeros(2)
        for (x,) in loader:
            optimizer.zero_grad()
            scores, mean, log_variance = model(x)
            reconstruction, divergence = loss_function(scores, x, mean, log_variance)
            (reconstruction + divergence).backward()
            optimizer.step()
            sums += torch.stack([reconstruction, divergence]).detach()
        if epoch % 5 == 4 or epoch == args.epochs - 1:
            reconstruction, divergence = (sums / len(loader)).tolist()
            print(f"epoch {epoch} loss {reconstruction + divergence:.3f} of it divergence {divergence:.3f}")
    with torch.no_grad():
        picture = torch.sigmoid(model.decoder(torch.randn(1, model.latent))).view(SIZE, SIZE)
    print("\n".join("".join(" .:#"[min(int(4 * value), 3)] for value in row) for row in picture.tolist()))


if __name__ == "__main__":
    main()
