"""Conditions that a user asks to leave out: `compile(options={"guard_filter_fn": keeps})`.

In: the conditions of a graph, and a function that is given an entry for each test of a value and says which to keep. Out: the
conditions without the others. The graph is then entered whatever those values are: that is what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...nn.module import Module
from ...nn.parameter import Parameter
from ..bytecode.conditions import Conditions
from ..bytecode.sources import Source
from .guards import LOCAL, of_package


class GuardFilterEntry(NamedTuple):
    """One test, for the user's function: what of which value must be as it was."""

    name: str  # of the place: `y` for a local, `G['y']` for a global
    has_value: bool
    value: Any
    guard_type: str
    derived_guard_types: tuple[str, ...]
    is_global: bool
    modules: tuple[type[Module], ...]  # classes of the modules that the value is found in, outermost first


def filtered(conditions: Conditions, keeps: Callable[[Sequence[GuardFilterEntry]], Sequence[bool]]) -> None:
    """Leave out the tests that `keeps` says no to."""
    classes = {id(a.source): a.value for a in conditions.abouts.values() if a.kind == "TYPE_MATCH"}
    codes = list(conditions.abouts)
    entries = [_entry(conditions.abouts[code], classes) for code in codes]
    answers = list(keeps(entries))
    if len(answers) != len(entries):
        raise ValueError(f"guard_filter_fn gave {len(answers)} answers for {len(entries)} conditions")
    conditions.drop({code for code, answer in zip(codes, answers, strict=True) if not answer})


def _entry(about, classes: dict[int, Any]) -> GuardFilterEntry:
    places = _path(about.source)
    modules = [classes[id(s)] for s in places if isinstance(classes.get(id(s)), type)]
    return GuardFilterEntry(
        LOCAL.sub(r"\1", about.source.name),
        about.kind != "TYPE_MATCH",
        None if about.kind == "TYPE_MATCH" else about.value,
        about.kind,
        (),
        any(s.kind == "constant" for s in places),
        tuple([cls for cls in modules if issubclass(cls, Module)]),
    )


def _path(source: Source | None) -> list[Source]:
    """A place and those that it is in, outermost first."""
    found: list[Source] = []
    while source is not None:
        found.insert(0, source)
        source = source.base
    return found


# ---- functions to give for `guard_filter_fn`
def skip_all_guards_unsafe(guard_entries: Sequence[GuardFilterEntry]) -> list[bool]:
    """No tests of values."""
    return [False for _ in guard_entries]


def skip_guard_on_globals_unsafe(guard_entries: Sequence[GuardFilterEntry]) -> list[bool]:
    """No tests of globals."""
    return [not entry.is_global for entry in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Sequence[GuardFilterEntry]) -> list[bool]:
    """No tests of what is in modules."""
    return [not entry.modules for entry in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Sequence[GuardFilterEntry]) -> list[bool]:
    """No tests of what is in modules of this package."""
    return [not (entry.modules and of_package(entry.modules[-1].__module__)) for entry in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Sequence[GuardFilterEntry], keep_parameters: bool = False) -> list[bool]:
    """Tests of tensors alone."""
    return [
        entry.guard_type == "TENSOR_MATCH" and (keep_parameters or not isinstance(entry.value, Parameter))
        for entry in guard_entries
    ]
