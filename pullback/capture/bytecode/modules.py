"""Modules in captured programs: what calling one and reading its parameters depends on, with as few tests as that needs.

A call of a module without hooks is a call of its `forward`; one test says that it still has none. Parameters, buffers and
submodules are read from the module's own tables: a module keeps a name in one place only, so that finding it there is
test enough.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ...core import tree
from ...nn.lazy import LazyModuleMixin
from ...nn.module import Module
from ...nn.module_hooks import everywhere
from .conditions import native_conditions
from .lookups import ABSENT, class_attribute
from .outside import is_symbol
from .signals import Break, Prepare

if TYPE_CHECKING:
    from .tracing import Tracing

TABLES = ("_parameters", "_buffers", "_modules")
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
PLAIN_CALL = Module.__dict__["__call__"]
PLAIN_LOOKUP = Module.__dict__["__getattr__"]


def is_plain(module: Module) -> bool:
    """Whether calling a module is calling its `forward`: nothing listens, and neither was replaced on the object."""
    own = module.__dict__
    replaced = "forward" in own or "_compiled_call_impl" in own
    return not (replaced or any(own[table] for table in HOOKS) or everywhere.around_call())


def plain_forward(world: Tracing, module: Module):
    """The `forward` that calling a module calls, with the test that it stays so; None where the call does more."""
    if class_attribute(type(module), "__call__") is not PLAIN_CALL or not is_plain(module):
        return None
    source = world.outside.source_of(module)
    if source is not None:
        if any(world.journal.touched.get(id(t)) for t in (module.__dict__, *(module.__dict__[h] for h in HOOKS))):
            return None
        _stays_plain(world, module, source)
    return class_attribute(type(module), "forward")


def _stays_plain(world: Tracing, module: Module, source) -> None:
    """What `is_plain` asks, written out: it is asked of every module at every call."""
    conditions = world.outside.conditions
    world._own(module)
    d = conditions.variable(world.outside.source_of(module.__dict__))
    if native_conditions is not None:
        conditions.namespace["is_plain"] = native_conditions.is_plain
        test = f"is_plain({d})"
    else:
        hooks = " or ".join(f"{d}[{table!r}]" for table in HOOKS)
        test = f"not ({hooks} or 'forward' in {d} or '_compiled_call_impl' in {d})"
    conditions.test(test, f"{source.name} has no hooks")
    tables = " or ".join(conditions.constant(table) for table in everywhere.tables)
    conditions.test(f"not ({tables})", "no hooks are registered for all modules")


def find(world: Tracing, module: Module, name: str):
    """A parameter, buffer or submodule; `ABSENT` where a module has none of that name."""
    own = world._own(module)
    source = world.outside.source_of(module)
    for table in TABLES:
        found = own.get(table)
        if not found or name not in found:
            continue
        if source is None:
            return world.outside.settled(found[name])
        if not world.outside.is_outside(found):
            world.outside.enter_table(found, world.outside.sources.item(world.outside.source_of(own), table))
        return world.outside.item(found, name)
    return ABSENT


def initialize(world: Tracing, lazy: LazyModuleMixin, module, args: tuple, kwargs: dict | None = None):
    """The hook of a lazy module before its first `forward`. Where the program must be one graph, the module is initialized
    at once, from the values of this call, and the program is captured anew, with an ordinary module in its place."""
    if not world.whole or not world.outside.is_outside(module) or id(module) in world.unprepared:
        return world._function(LazyModuleMixin._infer_parameters, (lazy, module, args, kwargs), {})
    if any("nondeterministic_seeded" in getattr(n.target, "tags", ()) for n in world.trace.graph.nodes):
        raise Break("a lazy module is called after random numbers were drawn: its own would come before them")
    if world.journal.log:
        raise Break("a lazy module is called after something was changed that it may read")
    given = world.real((args, kwargs or {}))
    if any(map(is_symbol, tree.tree_leaves(given))):
        raise Break("a lazy module is given a number that is not known")
    raise Prepare(functools.partial(lazy._infer_parameters, module, *given), module)
