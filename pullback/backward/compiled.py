"""Running backwards through compiled autograd.

Where it is on (`switch`), a backward is taken apart (`build.Backward`); its graph is made once for each structure and
handed to `compiler(graph_module)`, which gives a callable of the same arguments; later backwards of that structure call
it with their own values. Counters say how many graphs were captured.

The engine itself runs a backward where somebody looks at each of its steps (anomaly mode, the profiler, dispatch modes,
transforms, forward mode, a capture), where something saved is freed or was written (it raises when it comes there), and
inside another compiled backward. Hooks are those registered when the backward begins; of those that come while it runs,
a node's own post-hooks run, and one that would have to run further on is an error (`replay.Running.finish`).
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

from ..autograd import engine
from ..capture.front.stance import state
from ..core import modes
from ..core.layers import above
from ..core.modes import ambient
from ..core.node import SavedError
from .build import Backward
from .replay import Running
from .switch import clear_cache, disable, enable, reset, set_autograd_compiler, switch_to

__all__ = ["disable", "enable", "reset", "run_compiled", "set_autograd_compiler"]

UNCOMPILED = modes.CAPTURE | modes.TRANSFORM | modes.DISPATCH | modes.ANOMALY | modes.PROFILE | modes.FORWARD


def run_compiled(roots, grads, keep_graph, create_graph, inputs, accumulate_inputs, needed) -> list | None:
    """A backward by a compiled graph; None where somebody listens to each step of the engine, which then runs it."""
    compiler = ambient.backward_compiler
    if compiler is None or ambient.mode & UNCOMPILED:
        return None
    switch_to(None)  # what the user's Python differentiates meanwhile is no part of this graph
    try:
        try:
            backward = Backward(roots, grads, inputs, accumulate_inputs, create_graph, needed)
        except SavedError as error:
            result = engine.run_graph(roots, grads, keep_graph, create_graph, inputs, accumulate_inputs)
            say_uncompiled(str(error))
            return result
        return run(compiler.made_for(backward), backward, keep_graph, create_graph)
    finally:
        switch_to(compiler)


@functools.cache  # once for each reason
def say_uncompiled(reason: str) -> None:
    """Tell that a backward ran in the engine, which came through where its graph could not be taken in."""
    warnings.warn(f"compiled autograd: a backward was run uncompiled: {reason}", UserWarning, stacklevel=2)


above.run_compiled = run_compiled
state.on_reset.append(clear_cache)


def run(result: Callable, backward: Backward, keep_graph: bool, create_graph: bool) -> list:
    """Call a compiled backward as the engine would run."""
    task = Running(backward.task_roots, backward.needed, backward.wanted_edges, keep_graph, backward.place)
    if not keep_graph and not backward.calls_python:
        task.release(len(task.nodes))  # nobody can see it, and what is saved dies at its last use

    def work(task: Running) -> list:
        captured = list(result(*backward.inputs.lists()))
        task.finish()
        return captured

    return engine.run_task(task, create_graph, work)
