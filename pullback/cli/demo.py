"""`pullback demo`: a small network fits a noisy curve, with nothing but tensors and their gradients.

In: how many steps, and whether the terminal may be drawn on. Out: the loss, a plot of the data and the fit, and exit
status 0 when the fit is as close as the noise allows. Everything below is what a PyTorch user would write.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import pullback as torch

__all__ = ["demo"]

POINTS, HIDDEN, NOISE = 128, 32, 0.08


def curve(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(2.5 * x) * torch.exp(-0.3 * x * x)


class Network:
    """One hidden layer of tanh units, its weights plain tensors that require a gradient."""

    def __init__(self) -> None:
        self.w1 = torch.randn(1, HIDDEN) * 2.0
        self.b1 = torch.randn(HIDDEN)
        self.w2 = torch.randn(HIDDEN, 1) / math.sqrt(HIDDEN)
        self.b2 = torch.zeros(1)
        self.parameters = [p.requires_grad_() for p in (self.w1, self.b1, self.w2, self.b2)]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ self.w1 + self.b1) @ self.w2 + self.b2


class Adam:
    """Adam, written out: it shows that in-place updates without recording leave the next step's graph alone."""

    def __init__(self, parameters: list[torch.Tensor], rate: float) -> None:
        self.parameters, self.rate, self.step_count = parameters, rate, 0
        self.means = [torch.zeros_like(p) for p in parameters]
        self.squares = [torch.zeros_like(p) for p in parameters]

    def step(self) -> None:
        self.step_count += 1
        correct1, correct2 = 1 - 0.9**self.step_count, 1 - 0.99**self.step_count
        with torch.no_grad():
            for p, mean, square in zip(self.parameters, self.means, self.squares):
                assert p.grad is not None
                mean.mul_(0.9).add_(p.grad * 0.1)
                square.mul_(0.99).add_(p.grad * p.grad * 0.01)
                p.sub_(self.rate * (mean / correct1) / ((square / correct2).sqrt() + 1e-8))
                p.grad = None


def plot(x: list[float], data: list[float], fit: list[float], width: int = 72, height: int = 17) -> str:
    """The data as dots and the fit as a line of circles, on one small page of text."""
    low, high = min(data + fit), max(data + fit)
    page = [[" "] * width for _ in range(height)]
    for values, mark in ((data, "·"), (fit, "●")):
        for at, value in zip(x, values):
            column = round((at - x[0]) / (x[-1] - x[0]) * (width - 1))
            page[round((high - value) / (high - low) * (height - 1))][column] = mark
    return "\n".join("  " + "".join(row).rstrip() for row in page)


def train(steps: int, tick: Callable[[float], None]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, float]:
    """Fit the curve; gives the points, the data, the fit and the last loss."""
    torch.manual_seed(0)
    x = torch.linspace(-3.0, 3.0, POINTS).reshape(POINTS, 1)
    y = curve(x) + NOISE * torch.randn(POINTS, 1)
    network = Network()
    optimizer = Adam(network.parameters, rate=0.02)
    loss = torch.tensor(math.inf)
    for _ in range(steps):
        loss = ((network(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        tick(loss.item())
    with torch.no_grad():
        return x, y, network(x), loss.item()


def demo(steps: int = 400, plain: bool = False) -> int:
    """Run the demonstration; 0 when the fit reached the noise."""
    console = Console(no_color=plain, highlight=False)
    columns = (
        TextColumn("fitting a curve"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]:.5f}"),
        TimeElapsedColumn(),
    )
    began = time.perf_counter()
    with Progress(*columns, console=console, disable=plain, transient=True) as progress:
        task = progress.add_task("", total=steps, loss=math.inf)
        x, y, fit, loss = train(steps, lambda value: progress.update(task, advance=1, loss=value))
    seconds = time.perf_counter() - began
    console.print(plot(x.flatten().tolist(), y.flatten().tolist(), fit.flatten().tolist()))
    console.print(
        f"\n{steps} steps in {seconds:.2f} s ({1e6 * seconds / max(steps, 1):.0f} µs a step), loss {loss:.5f}"
    )
    console.print(f"the noise alone leaves {NOISE**2:.5f}")
    return 0 if loss < 2 * NOISE**2 else 1
