"""The dispatcher's own questions, by PyTorch's private names: what is registered where, schemas, blocks below autograd."""

from __future__ import annotations

import threading

from ..core import modes
from ..core.modes import ambient
from ..core.node import requires_grad
from ..core.tensor import DISPATCH_SUBCLASS, FAKE, TRANSFORMED, Tensor
from ..ops.system.operator import Operator, registry
from ..ops.system.packet import packet
from ..ops.system.schema import Schema
from . import declaration
from .aliasing import flat_tensors, shares_memory
from .functions import lookup
from .kernels import table_of
from .keys import DispatchKey, DispatchKeySet, included, own_keys
from .operator import LibraryOperator


class Guard(modes.masked):
    """A change of the mode that holds from where its object is made: to the end of the block that it is entered for, or until it is gone."""

    __slots__ = ("holds",)

    def __init__(self, clear: int, set: int = 0) -> None:
        super().__init__(clear, set)
        super().__enter__()
        self.holds = True

    def __enter__(self) -> None:
        """It holds already."""

    def __exit__(self, *exc) -> None:
        if self.holds:
            self.holds = False
            super().__exit__(*exc)

    def __del__(self) -> None:
        self.__exit__()


class AutoDispatchBelowAutograd(Guard):
    """Calls go past autograd: what an Autograd kernel calls its operator again in."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(0, modes.BELOW_AUTOGRAD)


class _Excluded(threading.local):
    """The keys that calls of a thread go past."""

    keys = DispatchKeySet()


_excluded = _Excluded()


def excluded_keys() -> DispatchKeySet:
    """The keys of all guards that are open in this thread. A transform inside has its own layer nevertheless."""
    return _excluded.keys


class ExcludeDispatchKeyGuard(Guard):
    """Calls go past some dispatch keys: those of autocast, and those of autograd."""

    __slots__ = ("keys", "outside")

    def __init__(self, keys: DispatchKeySet) -> None:
        self.keys, self.outside = keys, _excluded.keys
        _excluded.keys = self.outside | keys
        names = {key.name for key in keys.keys}
        off = modes.AUTOCAST if any(name.startswith("Autocast") for name in names) else 0
        on = modes.BELOW_AUTOGRAD if any(name.startswith("Autograd") for name in names) else 0
        super().__init__(off, on)

    def __exit__(self, *exc) -> None:
        if self.holds:
            _excluded.keys = self.outside
        super().__exit__(*exc)


class IncludeDispatchKeyGuard(Guard):
    """Calls of a library's operators go to the kernels of a key (Meta, CUDA), wherever their tensors are."""

    __slots__ = ("outside",)

    def __init__(self, keys: DispatchKey | DispatchKeySet) -> None:
        self.outside = included.keys
        included.keys = self.outside | DispatchKeySet(keys)
        super().__init__(0)

    def __exit__(self, *exc) -> None:
        if self.holds:
            included.keys = self.outside
        super().__exit__(*exc)


def included_keys() -> DispatchKeySet:
    """The keys that calls of this thread have besides those of their tensors."""
    return included.keys


def find_operator(name: str, overload: str) -> Operator:
    """The operator of a qualified name and an overload, "" for the one without a name."""
    try:
        return lookup(f"{name}.{overload}" if overload else name)
    except AttributeError:
        raise RuntimeError(f"Could not find schema for {name}.{overload}") from None


def call_operator(op: Operator, *args, **kwargs):
    """An operator's handle, called."""
    return op(*args, **kwargs)


def is_subclass_like(t: Tensor) -> bool:
    """Whether a tensor is more than a plain one: of a dispatching class, or under a transform."""
    return bool(t._keys & (DISPATCH_SUBCLASS | TRANSFORMED | FAKE)) or bool(ambient.dispatch_modes)


def keys_of(t: Tensor) -> DispatchKeySet:
    """The dispatch keys of a tensor: its backend, autograd and autocast for it, and what its class and its views add."""
    result = own_keys(t)
    extra = t.__dict__.get("extra_keys")
    python = DispatchKeySet(DispatchKey["Python"]) if t._keys & (DISPATCH_SUBCLASS | FAKE) else DispatchKeySet()
    return result | python | (extra if extra is not None else DispatchKeySet())


def describe_keys(t: Tensor) -> str:
    """The dispatch keys of a tensor, in words."""
    return repr(keys_of(t))


def all_schemas() -> list[Schema]:
    """The schemas of all operators that are known now."""
    return [op.schema for op in registry.values()]


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


def any_requires_grad(*args, **kwargs) -> bool:
    """Whether an argument, or an element of a list among them, wants a gradient."""
    values = [v for a in (*args, *kwargs.values()) for v in (a if isinstance(a, (list, tuple)) else (a,))]
    return any(isinstance(v, Tensor) and requires_grad(v) for v in values)


def any_output_is_alias(args: tuple, kwargs: dict | None, outputs: tuple) -> bool:
    """Whether a result shares memory with an argument or with another result."""
    inputs, results = flat_tensors((*args, kwargs or {})), flat_tensors(outputs)
    return any(shares_memory(r, t) for i, r in enumerate(results) for t in (*inputs, *results[:i]))


def resolve_packet(name: str, *args, **kwargs) -> str:
    """Which overload of a qualified name takes a call."""
    namespace, short = name.split("::")
    found, errors = packet(namespace, short)._overloads(), []
    for overload, op in sorted(found.items(), key=lambda kv: kv[0] != "default"):
        try:
            op.convert(op.bind(args, kwargs))
        except (TypeError, RuntimeError) as e:
            errors.append(str(e))
        else:
            return overload
    raise RuntimeError(f"{name}: the arguments failed to match any schema:\n" + "\n\n".join(errors))


def schemas_of(name: str) -> list[Schema]:
    """The schemas of all overloads of a qualified name."""
    namespace, short = name.split("::")
    return [op.schema for op in packet(namespace, short)._overloads().values()]


def is_tensor_list(kind: str) -> bool:
    """Whether a schema type is a list of tensors, of optional ones, or an optional list."""
    return kind.removesuffix("?") in ("Tensor[]", "Tensor?[]")


_LAYOUT_TAGS = ("needs_exact_strides", "needs_contiguous_strides", "needs_fixed_stride_order", "flexible_layout")


def layout_constraint_tag(op, *, with_default: bool = True) -> str | None:
    """What an operator says of the strides it takes: the strictest of its tags; by default, for a library's, their own."""
    found = next((tag for tag in _LAYOUT_TAGS if tag in op.tags), None)
    if found is None and with_default:
        return "needs_exact_strides" if isinstance(op, LibraryOperator) else "flexible_layout"
    return found
