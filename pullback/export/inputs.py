"""The arguments of a call: by name, flat, and with a name for every leaf.

In: a module and arguments. Out: names as graphs have them (`x`, `x_0`, `x_key`) and structures to compare. What always
holds: leaves come in the order of `tree_flatten((args, kwargs))`.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from ..core import tree
from ..nn.module import Module


def signature_of(mod: Any) -> inspect.Signature:
    """How a module is called."""
    return inspect.signature(mod.forward if isinstance(mod, Module) else mod)


def bound_arguments(mod: Any, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments by the names of the parameters they are given to; `**kwargs` are spread."""
    signature = signature_of(mod)
    named = dict(signature.bind(*args, **kwargs).arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD and name in named:
            named.update(named.pop(name))
    return named


def argument_names(mod: Any, args: tuple, kwargs: dict) -> list[str]:
    """The name of each argument, those of `*args` numbered."""
    names, rest = [], "args"
    for p in signature_of(mod).parameters.values():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            names.append(p.name)
        elif p.kind is p.VAR_POSITIONAL:
            rest = p.name
    spread = [f"{rest}_{i}" for i in range(len(args) - len(names))]
    return [*[*names, *spread][: len(args)], *kwargs]


def leaf_names(mod: Any, args: tuple, kwargs: dict) -> list[str]:
    """The name of each leaf of the arguments, as a placeholder has it."""
    found = []
    for name, value in zip(argument_names(mod, args, kwargs), (*args, *kwargs.values()), strict=True):
        found += [re.sub(r"\W+", "_", name + path) for path in paths(value)]
    return found


def leaf_places(names: list[str], spec: Any) -> list[str]:
    """How users name each leaf of a call with these arguments: `x`, `y['key'][0]`."""
    count = spec.children()[0].num_children
    found = []
    for side, first, *rest in tree.optree.treespec_paths(spec):
        found.append((names[first] if side == 0 else first) + "".join(f"[{part!r}]" for part in rest))
    return found if len(names) >= count else [str(i) for i in range(spec.num_leaves)]


def paths(value: Any) -> list[str]:
    """Where each leaf of a value is: "", "_0", "_key_1"."""
    found = tree.optree.tree_paths(value, none_is_leaf=True, namespace="pullback")
    return ["".join(f"_{part}" for part in path) for path in found]


def in_order(kwargs: dict, keys: list[str]) -> dict:
    """Keyword arguments in the order in which they were when the program was exported."""
    if kwargs.keys() != set(keys):
        raise ValueError(
            f"Ran into a kwarg keyword mismatch: Got the following keywords {list(kwargs)} but expected {keys}"
        )
    return {k: kwargs[k] for k in keys}
