"""The Python of custom functions and hooks, as a compiled backward sees it.

In: a node of a custom function, or a hook. Out: what it does besides computing, in words, and a key of all it depends on
besides its arguments. Python without effects may be traced into a graph, for one key: as soon as anything it reads is
another, the key is, and so is the graph. All other Python is called itself, at every run, between graphs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

from ..autograd.function import BackwardCFunction, Function
from ..capture.front.config import config
from ..capture.front.effects import effect_of_values, holds_containers
from ..capture.front.guards import AMBIENT
from ..capture.front.reads import Reading
from ..core import modes
from ..core.modes import ambient, process

CHANGES_OFTEN = "reads values that change from call to call"


class Variants:
    """The keys that one piece of Python had. One that has another at every step is not worth a graph for each."""

    def __init__(self) -> None:
        self.keys: set[tuple] = set()

    def effect(self, key: tuple) -> str | None:
        """None, or that there are too many."""
        if key not in self.keys and len(self.keys) >= config.recompile_limit:
            return CHANGES_OFTEN
        self.keys.add(key)
        return None


_variants: weakref.WeakKeyDictionary[type, Variants] = weakref.WeakKeyDictionary()


def read(function: Callable) -> tuple[tuple, str | None, bool]:
    """(what a function depends on, what it does besides computing, whether it writes into what it is given)."""
    reading = Reading(function)
    return (*ambient_key(), reading.key), next(iter(reading.effects), None), reading.writes_in_place


def ambient_key() -> tuple:
    """What every call depends on: the modes of the thread and of the process."""
    mode = ambient.mode & AMBIENT
    settings = str(ambient.autocast) if mode & modes.AUTOCAST else None
    return mode, settings, process.default_dtype, process.deterministic


def users_python(node: BackwardCFunction, known: dict | None = None) -> tuple[tuple, str | None]:
    """(what the backward of a custom function depends on besides its arguments, what it does besides computing).
    `known`: the classes that were read already, where many nodes are asked for at once."""
    function = type(node)._forward_cls
    stated = function.computes_only
    if stated is not None:  # it is no Python, so there is nothing to read
        return (node._compiled_autograd_key(), ()), None if stated else f"calls {node.name()}"
    known = {} if known is None else known
    if function not in known:
        known[function] = _read_class(function)
    key, effect, in_place = known[function]
    state = node.users_attributes()
    effect = effect or effect_of_values(state)
    if effect is None and in_place and holds_containers(state.values()):
        effect = "may change a container that it keeps"
    return (node._compiled_autograd_key(), key if effect is None else ()), effect


def _read_class(function: type[Function]) -> tuple[tuple, str | None, bool]:
    key, effect, in_place = read(function.users_backward())
    if effect is None:
        effect = _variants.setdefault(function, Variants()).effect(key)
    return key, effect, in_place
