"""The forms in which a program is compared with itself run eagerly: name -> how the program differs there."""

from __future__ import annotations

from collections.abc import Callable

import pullback as torch
from pullback.capture.front.compile import compile as compiled
from pullback.joint.aot import aot_function
from pullback.joint.partition import default_partition, min_cut_rematerialization_partition

from .compare import differences, functional, observe
from .programs import Program


def unchanged(graph, inputs):
    """The compiler that leaves graphs as they are."""
    return graph


def ahead_of_time(partition: Callable) -> Callable[[Callable], Callable]:
    return lambda f: aot_function(f, unchanged, unchanged, partition_fn=partition)


def compiled_by(backend: str) -> Callable[[Callable], Callable]:
    return lambda f: compiled(f, backend=backend, fullgraph=True)


def twice(prepare: Callable) -> Callable[[Callable], Callable]:
    """A form that is called a first time on other arguments, so that what is compared is a call of what was compiled."""

    def prepared(f: Callable, make: Callable) -> Callable:
        form = prepare(f)
        with torch.random.fork_rng():
            form(*make()[0])
        return form

    return prepared


def against(prepare: Callable, *, again: bool = False) -> Callable[[Program], list[str]]:
    """How a program in a form that is a callable differs from the program."""
    form = twice(prepare) if again else (lambda f, make: prepare(f))

    def compare(program: Program) -> list[str]:
        reasons = differences(observe(program, lambda f, make: f), observe(program, form))
        unrecorded = "no_grad" in program.source() or "set_grad_enabled(False)" in program.source()
        if unrecorded and reasons and reasons[0].startswith("gradients: the graph does not raise ModifiedError"):
            return []  # a view made there is a leaf, whose gradient nobody can ask a compiled function for
        if reasons and reasons[0].startswith("the graph does not raise RuntimeError: a view of a leaf Variable"):
            return []  # where nothing is written back, nobody looks at what the inputs are views of
        return reasons

    return compare


TARGETS: dict[str, Callable[[Program], list[str]]] = {
    "functional-real": lambda program: functional(program, "real"),
    "functional-fake": lambda program: functional(program, "fake"),
    "aot": against(ahead_of_time(default_partition)),
    "aot-again": against(ahead_of_time(default_partition), again=True),
    "aot-min-cut": against(ahead_of_time(min_cut_rematerialization_partition)),
    "compile-eager": against(compiled_by("eager")),
    "compile-aot": against(compiled_by("aot_eager"), again=True),
}
