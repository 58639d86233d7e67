"""What is being compiled ahead of time: names for compilers that write files or logs.

Each compilation has a number; its graphs are `0_forward`, `0_backward` or `0_inference` while they are with a compiler.
"""

from __future__ import annotations

from contextlib import contextmanager

MODEL_NAME = "model"
being_compiled: list[str] = []
compiled_graphs = 0  # how many graphs were handed to a compiler so far


@contextmanager
def compiling(number: int, what: str):
    """A block in which graph `what` of compilation `number` is compiled."""
    global compiled_graphs
    being_compiled.append(f"{number}_{what}")
    try:
        yield
    finally:
        being_compiled.pop()
        compiled_graphs += 1


def get_aot_compilation_context() -> tuple[list[str], str, int]:
    """(names of the graphs that are being compiled, name of the model, how many graphs were compiled before)."""
    return list(being_compiled), MODEL_NAME, compiled_graphs


def get_aot_graph_name() -> str:
    """The name of the graph that is being compiled."""
    return f"{MODEL_NAME}__{'_'.join(being_compiled)}_{compiled_graphs}"


get_graph_being_compiled = get_aot_graph_name
