"""Whether a Python function only computes: what a trace of one call may stand for in all later ones.

In: a function, or values that one will be given. Out: None, or in words what else it does. It is read, not run (`reads`).
What is not plainly harmless counts as an effect: writing to names, attributes and items from outside, calling what is not
known, reaching objects that may change.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator

from ...core.tensor import Tensor
from .reads import Reading, effect_of_object


def is_output(effect: str) -> bool:
    """Whether an effect is one that the world sees, and at which any graph must end."""
    return effect.removeprefix("calls ") in ("print", "input", "open", "write", "sleep")


def effect_of(function: Callable) -> str | None:
    """What a function does besides computing; None where nothing is seen."""
    return next(iter(effects(function)), None)


def effects(function: Callable) -> list[str]:
    """All that a function does besides computing, in the order of its code."""
    return Reading(function).effects


def uses_libraries(function: Callable) -> bool:
    """Whether a function works with other libraries: of such Python little can be captured."""
    return any(effect.startswith("uses the module") for effect in Reading(function).effects)


def effect_of_values(values: dict) -> str | None:
    """What calling methods of values, by name, may do besides computing."""
    return next((found for name, value in values.items() for found in _effects_of_value(name, value)), None)


def holds_containers(values: Iterable) -> bool:
    """Whether there are lists or dicts among values, which a `+=` changes."""
    return any(type(v) in (list, dict) or type(v) is tuple and holds_containers(v) for v in values)


def _effects_of_value(name: str, value) -> Iterator[str]:
    if type(value) in (list, tuple, dict):
        for inner in value.values() if type(value) is dict else value:
            yield from _effects_of_value(name, inner)
    elif isinstance(value, types.FunctionType):  # what it reaches may be another thing at the next call
        yield f"holds the function {value.__name__}"
    elif not isinstance(value, Tensor):
        effect = effect_of_object(name, value)
        if effect is not None:
            yield effect
