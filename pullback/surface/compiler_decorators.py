"""Marks on functions and blocks that say how `compile` takes them: `torch._dynamo.decorators`.

In: a function, or nothing (a block). Out: the function, marked or wrapped, or a context. A block of `set_stance` or
`error_on_graph_break` inside a compiled function means what it means outside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..capture.bytecode.calls import nonstrict_functions
from ..capture.bytecode.signals import BREAKS
from ..capture.front.config import config
from ..capture.front.stance import STANCES, Stance, state
from ..capture.trace.program import Unsupported
from ..core.modes import ambient


class StateChange:
    """A change of what compiled functions do: from now on, for a block, or around a function that it decorates."""

    home: Any
    name: str

    def __init__(self, value: Any):
        self.value = value
        self.before: list = []

    def __enter__(self) -> None:
        self.before.append(getattr(self.home, self.name))
        setattr(self.home, self.name, self.value)

    def __exit__(self, *exc: object) -> None:
        setattr(self.home, self.name, self.before.pop())

    def again(self) -> StateChange:
        """The same change, for one call of a decorated function."""
        return type(self)(self.value)

    def __call__(self, fn: Callable) -> Callable:
        if not callable(fn):
            raise RuntimeError("a function is expected that is to be decorated")

        @functools.wraps(fn)
        def inner(*args, **kwargs):
            with self.again():
                return fn(*args, **kwargs)

        return inner


class set_stance(StateChange):
    """What compiled functions do: "default", "force_eager" (run uncompiled), "fail_on_recompile", "eager_on_recompile",
    "eager_then_compile" (each runs uncompiled once). As a call, it holds from then on. `force_backend` compiles new graphs
    in the place of the backend that was named. Guards are evaluated whatever `skip_guard_eval_unsafe` says."""

    home, name = state, "stance"

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend=None):
        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance '{stance}', must be one of {', '.join(STANCES)}")
        if force_backend is not None and stance != "default":
            raise RuntimeError("force_backend cannot be used together with a stance other than 'default'")
        if ambient.captures:
            raise Unsupported("it calls set_stance, which says how compiled functions run")
        super().__init__(Stance(stance, force_backend))
        self.outer, state.stance = state.stance, self.value

    def __enter__(self) -> None:
        self.before.append(self.outer)
        self.outer, state.stance = state.stance, self.value

    def __call__(self, fn: Callable) -> Callable:
        state.stance = self.outer  # a decorator says nothing of what is not decorated
        return super().__call__(fn)

    def again(self) -> set_stance:
        return set_stance(self.value.name, force_backend=self.value.backend)


def run(fn: Callable | None = None):
    """A function in which compiled functions make no new graphs: where none fits, they run uncompiled."""
    if fn is None:
        return run

    @functools.wraps(fn)
    def inner(*args, **kwargs):
        if ambient.captures:  # the graph that is being made is another's
            return fn(*args, **kwargs)
        with set_stance("eager_on_recompile"):
            return fn(*args, **kwargs)

    return inner


class error_on_graph_break(StateChange):
    """Whether a graph that ends early is an error, in a block or function, whatever `fullgraph` says."""

    home, name = BREAKS, "error"


def nonstrict_trace(fn: Callable) -> Callable:
    """A function that is traced rather than interpreted: graphs have what it computes, whatever Python does that."""
    if not callable(fn):
        raise AssertionError("nonstrict_trace expects a callable")

    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs)

    nonstrict_functions.add(inner)
    return inner


def dont_skip_tracing(fn: Callable | None = None):
    """A function that is captured wherever its module is from."""
    if fn is None:
        return dont_skip_tracing
    inner: Any = getattr(fn, "__func__", fn)
    inner._torchdynamo_captured = True
    return fn


def patch_dynamo_config(changes: Any = None, value: Any = None, /, **named: Any):
    """Settings of the compiler, for a block or a function."""
    return config.patch(changes, value, **named)
