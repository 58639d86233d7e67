"""The dispatcher's own questions, by PyTorch's private names: what is registered where, schemas, blocks below autograd."""

from __future__ import annotations

from ..core import modes
from ..ops.system.schema import Schema
from . import declaration
from .functions import lookup
from .kernels import table_of
from .keys import DispatchKeySet
from .operator import LibraryOperator


class AutoDispatchBelowAutograd(modes.masked):
    """A block in which calls go past autograd: what an Autograd kernel calls its operator again in."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0, modes.BELOW_AUTOGRAD)


class ExcludeDispatchKeyGuard(modes.masked):
    """A block in which calls go past some dispatch keys: those of autocast, and those of autograd."""

    __slots__ = ()

    def __init__(self, keys: DispatchKeySet) -> None:
        names = {key.name for key in keys.keys}
        off = modes.AUTOCAST if any(name.startswith("Autocast") for name in names) else 0
        on = modes.BELOW_AUTOGRAD if any(name.startswith("Autograd") for name in names) else 0
        super().__init__(off, on)


def parse_schema(text: str) -> Schema:
    """A schema from its text."""
    read = declaration.read(text)
    return Schema(read.text, read.namespace or "")


def has_kernel(name: str) -> bool:
    """Whether there is an operator of a qualified name, or a kernel for it."""
    try:
        lookup(name)
    except (AttributeError, ValueError):
        return bool(table_of(name))
    return True


def has_kernel_for_dispatch_key(name: str, key: str) -> bool:
    """Whether a kernel is registered at a key; operators that are built in have theirs at CPU and Meta."""
    if table_of(name).find(key) is not None:
        return True
    try:
        op = lookup(name)
    except AttributeError:
        raise RuntimeError(f"operator {name} does not exist") from None
    if isinstance(op, LibraryOperator):
        return False
    return key == "CompositeImplicitAutograd" if op.body is not None else key in ("CPU", "Meta", "Autograd")
