"""Compiled autograd on and off, and what was compiled.

Inside `enable(compiler_fn)`, backwards of the thread run as graphs that `compiler_fn(graph_module)` compiled; inside
`disable()`, in the engine. A `Compiler` keeps what was compiled, by the structure of a backward (`Backward.key`), until
`reset`. Contexts end in the order in which they began.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
from collections.abc import Callable

from ..capture.front.compile import counters
from ..capture.front.guards import same_function
from ..core.events import publish, stage
from ..core.logs import artifacts, logger
from ..core.modes import ambient
from .build import Backward
from .module import inlined

COMPILE_COUNTER = itertools.count()
compiled_autograd_enabled = False  # whether the thread that switched last runs backwards compiled
verbose_logger: Callable[[str, str], None] | None = None  # called with (event, words) when a graph is made


class Kept:
    """A compiled backward, and the sizes it served."""

    def __init__(self, run: Callable, sizes: list[int], moving: set[int]):
        self.run, self.sizes = run, sizes
        self.moving = moving  # places of sizes that changed, or are known to


class Compiler:
    """A compiler of backwards and what it has compiled, by structure.

    With `dynamic`, sizes are inputs of the graphs from the start; without, from when they change: that makes the graph again.
    """

    def __init__(self, compile: Callable, dynamic: bool):
        self.compile, self.dynamic = compile, dynamic
        self.known: dict[tuple, Kept] = {}

    def made_for(self, backward: Backward) -> Callable:
        """What runs a backward; compiled now where none like it was."""
        kept, sizes = self.known.get(backward.key), backward.inputs.sizes
        if kept is None:
            kept = self.known[backward.key] = Kept(
                self._capture(backward, missing_node(self.known, backward)), list(sizes), set(backward.inputs.moving)
            )
        elif not self.dynamic and sizes != kept.sizes:
            moved = {i for i, (a, b) in enumerate(zip(sizes, kept.sizes, strict=True)) if a != b}
            kept.sizes = list(sizes)
            if not moved <= kept.moving:
                kept.moving |= moved
                kept.run = self._capture(
                    backward, f"Cache miss due to changed shapes: marking size idx {sorted(moved)} as dynamic"
                )
        return kept.run

    def _capture(self, backward: Backward, why: str) -> Callable:
        counters["compiled_autograd"]["captures"] += 1
        number = next(COMPILE_COUNTER)
        with stage("backward"):
            module = inlined(backward.graph())
        publish("backward", graph=module, reason=why)
        say("compiled_autograd_verbose", "cache_miss", why)
        if artifacts["compiled_autograd"]:
            say("compiled_autograd", "graph", f"Compiled autograd graph {number}:\n{module.print_readable(False)}")
        return self.compile(module)


def say(artifact: str, event: str, words: str) -> None:
    """Tell those who listen why and what is compiled."""
    if artifacts[artifact]:
        logger(artifact).log(logging.DEBUG, words)
    if verbose_logger is not None:
        verbose_logger(event, words)


def missing_node(known: dict, backward: Backward) -> str:
    """Which node made a backward another than those known: the first that no known one has after the same nodes before it."""
    steps = backward.key[1]
    candidates = [key[1] for key in known]
    for i, step in enumerate(steps):
        candidates = [c for c in candidates if len(c) > i and c[i] == step]
        if not candidates:
            return f"Cache miss due to new autograd node: {backward.order[i].name()} (NodeCall {i})"
    return "Cache miss due to other roots or inputs"


# ---- switching
class Place(threading.local):
    """Where the thread is among contexts."""

    depth = 0  # of `enable` contexts
    disabled = 0  # of `disable` contexts


here = Place()
compilers: list[Compiler] = []  # those in use, so that leaving and entering again keeps what was compiled


def kept(compiler_fn: Callable, dynamic: bool) -> Compiler:
    """The compiler of a function; the same function, made again, is the same compiler."""
    for known in compilers:
        if known.dynamic == dynamic and same_function(known.compile, compiler_fn):
            return known
    compilers.append(Compiler(compiler_fn, dynamic))
    return compilers[-1]


def switch_to(compiler: Compiler | None) -> Compiler | None:
    """Make a compiler that of the thread's backwards (None: the engine runs them); gives the one before."""
    global compiled_autograd_enabled
    before, ambient.backward_compiler = ambient.backward_compiler, compiler
    compiled_autograd_enabled = compiler is not None
    return before


class enable(contextlib.ContextDecorator):
    """Backwards of this thread inside run as graphs that `compiler_fn(graph_module)` compiled.

    Where `ignore_active_disable_ctx` is False, a `disable()` around it goes first.
    """

    def __init__(self, compiler_fn: Callable, dynamic: bool = True, ignore_active_disable_ctx: bool = True):
        self.compiler_fn, self.dynamic, self.insists = compiler_fn, dynamic, ignore_active_disable_ctx
        self.entered: list[tuple[int, Compiler | None]] = []

    def __enter__(self) -> None:
        here.depth += 1
        off = here.disabled and not self.insists
        before = ambient.backward_compiler if off else switch_to(kept(self.compiler_fn, self.dynamic))
        self.entered.append((here.depth, before))

    def __exit__(self, *exc) -> None:
        depth, before = self.entered.pop()
        if here.depth != depth:
            raise AssertionError("Nested Compiled Autograd Contexts must return before their parent context")
        here.depth -= 1
        switch_to(before)


@contextlib.contextmanager
def disable():
    """Backwards of this thread inside run in the engine."""
    before = switch_to(None)
    here.disabled += 1
    try:
        yield
    finally:
        here.disabled -= 1
        switch_to(before)


def clear_cache() -> None:
    """Forget all graphs."""
    for compiler in compilers:
        compiler.known.clear()
    compilers.clear()


def reset() -> None:
    """Forget all graphs, and switch off."""
    global COMPILE_COUNTER, verbose_logger
    clear_cache()
    switch_to(None)
    here.depth = here.disabled = 0
    verbose_logger = None
    COMPILE_COUNTER = itertools.count()


def set_autograd_compiler(compiler_fn: Callable | None, dynamic: bool) -> tuple[Callable | None, bool]:
    """Switch to a compiler, outside any context; gives (compiler, dynamic) of before."""
    before = switch_to(None if compiler_fn is None else kept(compiler_fn, dynamic))
    return (None, False) if before is None else (before.compile, before.dynamic)


def set_verbose_logger(listener: Callable[[str, str], None] | None) -> None:
    """Have a function called with (event, words) when a graph is made."""
    global verbose_logger
    verbose_logger = listener
