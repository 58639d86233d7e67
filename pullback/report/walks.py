"""Backwards that the engine walked: node after node, with the hooks of each in the order in which they are called.

In: the nodes of a backward, in order (`events`: `walked`). Out: `Walk`s, text and numbers alone. Backwards of one structure are one
walk that was made several times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..core.node import AccumulateGrad, Node

MOST = 8  # walks of different structure that are kept; of those that come after them, only how many they are


@dataclass
class Step:
    """A node that runs, and its hooks: those called before its rule, then those after it."""

    node: str
    before: list[str]
    after: list[str]


@dataclass
class Walk:
    steps: list[Step]
    times: int = 1


@dataclass
class Walks:
    """All backwards of a program, by structure."""

    known: list[Walk] = field(default_factory=list)
    more: int = 0

    def add(self, nodes: Iterable[Node]) -> None:
        steps = [step_of(node) for node in nodes]
        same = next((w for w in self.known if w.steps == steps), None)
        if same is not None:
            same.times += 1
        elif len(self.known) < MOST:
            self.known.append(Walk(steps))
        else:
            self.more += 1


def step_of(node: Node) -> Step:
    """What is called for a node, in the order of the engine (see `autograd.engine`)."""
    before = [
        f"hook of output {n}: {named(h)}" for n, hooks in (node.tensor_pre_hooks or {}).items() for h in hooks.values()
    ]
    before += [f"keeps the gradient of output {n}" for n in node.retain_grad_hooks or ()]
    before += [f"pre-hook: {named(h)}" for h in (node.pre_hooks or {}).values()]
    after = [f"hook: {named(h)}" for h in (node.post_hooks or {}).values()]
    name = node.name()
    if isinstance(node, AccumulateGrad):
        leaf = node.variable._autograd
        hooks = leaf.post_accumulate_hooks if leaf is not None else None
        after += [f"hook after accumulation: {named(h)}" for h in (hooks or {}).values()]
        name = f"{name} of a leaf {tuple(node.variable.shape)}"
    return Step(name, before, after)


def named(hook: Callable | Any) -> str:
    """A hook as people find it: its name, and where it is written."""
    hook = getattr(hook, "func", hook)  # of a partial
    code = getattr(getattr(hook, "__func__", hook), "__code__", None)
    name = getattr(hook, "__qualname__", type(hook).__qualname__)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"
