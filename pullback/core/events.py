"""What the compiler does, told to whoever listens.

In: `publish(kind, **facts)` and `stage(name)` from the stages of the compiler. Out: a call of every listener with the kind
and the facts. What always holds: where nobody listens, nothing is built and nothing is timed; a listener sees facts and
changes none of them.

| kind | facts | when |
|---|---|---|
| `captured` | `function`, `graph` | a graph of a function was captured and goes to its backend |
| `entered` | `function`, `conditions` | what a captured graph depends on, in words |
| `broke` | `function`, `reason`, `where` | a graph ended before the function did |
| `recompiled` | `function`, `reason` | no graph of a function fits a call |
| `refused` | `function`, `error` | a backend raised for a captured graph, or there may be no further one |
| `cut` | `joint`, `forward`, `backward` | a joint graph was cut into two |
| `lowered` | `program` | a graph became loops, as far as it has some; what has none is in its `reasons` |
| `native` | `program` | those loops became native code |
| `backward` | `graph`, `reason` | compiled autograd captured a backward |
| `walked` | `nodes` | the engine is about to walk these nodes, in this order |
| `stage` | `name`, `seconds` | a stage ended; the time of stages inside it is not counted again |
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

Listener = Callable[[str, dict[str, Any]], None]
listeners: list[Listener] = []
_inside: list[float] = []  # of the stages that are under way: the seconds that stages inside them took


def publish(kind: str, **facts: Any) -> None:
    for listener in listeners:
        listener(kind, facts)


def is_compiling() -> bool:
    """Whether a stage is under way, as far as somebody listens."""
    return bool(_inside)


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener(kind, facts)` for everything that happens inside."""
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)


@contextlib.contextmanager
def stage(name: str) -> Iterator[None]:
    """A stage of compiling: its own seconds are told when it ends."""
    if not listeners:
        yield
        return
    _inside.append(0.0)
    begun = time.perf_counter()
    try:
        yield
    finally:
        whole = time.perf_counter() - begun
        publish("stage", name=name, seconds=whole - _inside.pop())
        if _inside:
            _inside[-1] += whole
