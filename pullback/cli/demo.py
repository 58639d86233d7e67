"""`pullback demo`: a small language model learns, character by character, to write like a short story.

In: how many steps, a seed, and whether the terminal may be drawn on. Out: the curve of the loss (in the terminal, and
as a file), a few lines the model wrote, and exit status 0 when it predicts the text better than counting pairs of letters.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
import webbrowser
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

import pullback as torch
from pullback import nn, optim
from pullback.capture.front.compile import compile as compile_function
from pullback.nn import functional as F

from ..report import collecting
from .demo_model import LanguageModel, sample
from .demo_text import TEXT
from .loss_curve import as_svg, as_text

__all__ = ["demo"]

BATCH, RATE, WARM = 16, 3e-3, 20
EAGER = 10  # steps that run operator by operator, to compare with
SYMBOLS = sorted(set(TEXT))


def encode(text: str) -> torch.Tensor:
    return torch.tensor([SYMBOLS.index(symbol) for symbol in text])


def decode(numbers: torch.Tensor) -> str:
    return "".join(SYMBOLS[number] for number in numbers.tolist())


def pair_entropy(text: str) -> float:
    """What is left to guess (nats a character) for one who knows how often each letter follows each other one."""
    pairs, firsts = Counter(zip(text, text[1:])), Counter(text[:-1])
    return -sum(n * math.log(n / firsts[first]) for (first, _), n in pairs.items()) / (len(text) - 1)


def train(
    model: LanguageModel, steps: int, tick: Callable[[int, float], None], compiled: bool = False
) -> tuple[list[float], list[float]]:
    """Fit the model to the text; gives the loss and the seconds of every step. The first `EAGER` are never compiled."""
    text = encode(TEXT)
    windows = text.unfold(0, model.context + 1, 1)
    rate = torch.tensor(RATE)  # a tensor: one graph serves whatever the schedule makes of it
    optimizer = optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    fall = optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARM, 0.1 + 0.45 * (1 + math.cos(math.pi * step / max(steps, 1))))
    )

    def learn(rows: torch.Tensor) -> torch.Tensor:
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    whole_step = compile_function(learn) if compiled else learn  # forward, backward and optimizer: one graph
    losses, seconds = [], []
    for step in range(steps):
        began = time.perf_counter()
        rows = windows[torch.randint(len(windows), (BATCH,))]
        loss = (learn if step < EAGER else whole_step)(rows)
        fall.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - began)
        tick(step + 1, losses[-1])
    return losses, seconds


def speedup(seconds: list[float]) -> str | None:
    """How much faster compiled steps were than the first, eager ones, in words; None where too few were timed."""
    eager, native = seconds[1:EAGER], seconds[EAGER + 2 :]  # without what warms up and compiles
    if len(native) < EAGER:
        return None
    before, after = statistics.median(eager), statistics.median(native)
    compiling = sum(seconds[EAGER : EAGER + 2]) - 2 * after
    return (
        f"compiled, a step takes {1e3 * after:.1f} ms; the first {EAGER}, operator by operator, took {1e3 * before:.1f} ms: "
        f"{before / after:.1f} times as fast, after {compiling:.1f} s of compiling"
    )


def _train_and_show(
    model: LanguageModel, steps: int, console: Console, plain: bool, compiled: bool
) -> tuple[list[float], list[float]]:
    """Train under a progress bar; on a plain terminal a line now and then says the same."""
    loss_shown = TextColumn("loss {task.fields[loss]:.3f}")
    bar = (TextColumn("learning to spell"), BarColumn(), loss_shown, TimeElapsedColumn())
    every = max(steps // 10, 1)
    with Progress(*bar, console=console, disable=plain, transient=True) as progress:
        task = progress.add_task("", total=steps, loss=math.inf)

        def tick(step: int, loss: float) -> None:
            progress.update(task, advance=1, loss=loss)
            if plain and step % every == 0:
                console.print(f"step {step:4d}  loss {loss:.3f}")

        return train(model, steps, tick, compiled)


def demo(
    steps: int = 600,
    plain: bool = False,
    seed: int = 0,
    picture: str | None = None,
    compiled: bool = True,
    html: str | None = None,
) -> int:
    """Run the demonstration; 0 when the model beats the count of letter pairs. `picture`: where the SVG goes; `html`: where
    the account of what was compiled goes."""
    console = Console(no_color=plain, highlight=False, soft_wrap=True)
    torch.manual_seed(seed)
    model = LanguageModel(len(SYMBOLS))
    weights = sum(p.numel() for p in model.parameters())
    console.print(f"{len(TEXT)} characters of text, {len(SYMBOLS)} different; a transformer of {weights} weights")
    began = time.perf_counter()
    with collecting() if html else contextlib.nullcontext() as account:
        losses, each = _train_and_show(model, steps, console, plain, compiled)
    seconds = time.perf_counter() - began
    level, last = pair_entropy(TEXT), sum(losses[-10:]) / len(losses[-10:])
    console.print(as_text(losses))
    if picture:
        Path(picture).write_text(as_svg(losses, level, "counting pairs of letters"), encoding="utf-8")
        console.print(f"the same curve as a picture: {picture}", markup=False)
    console.print(f"\n{steps} steps in {seconds:.1f} s ({1e3 * seconds / steps:.1f} ms a step), loss {last:.3f}")
    if compiled and (faster := speedup(each)) is not None:
        console.print(faster)
    console.print(f"counting pairs of letters would leave {level:.3f}; the model now writes:\n")
    written = decode(sample(model, encode("The keeper ").unsqueeze(0), 300)[0])
    console.print(written, markup=False)
    if account is not None and html:
        Path(html).write_text(account.html("pullback demo: what the compiler did"), encoding="utf-8")
        console.print(f"\nwhat the compiler made of the step: {html}", markup=False)
        if console.is_terminal and not plain:
            webbrowser.open(Path(html).resolve().as_uri())
    console.print(
        "\nnext: `pullback run train.py` runs a program of yours, `pullback explain --html report.html train.py` shows"
    )
    console.print("what the compiler makes of it, `pullback profile train.py` where its time goes")
    return 0 if last < level else 1
