"""What is registered for each operator: kernels by dispatch key, the last one first.

`tables` holds one `Table` per qualified name ("mylib::f", "aten::neg", "aten::mul.Tensor"); a kernel may come before the
operator is defined. A library that goes away takes its kernels with it, and the ones they stood before count again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

from .keys import COMPOSITE_EXPLICIT, COMPOSITE_IMPLICIT, NON_FUNCTIONAL, parse


def fallthrough_kernel() -> None:
    """Registered at a key, it means that the key is passed by."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def written_at(function: Callable) -> str:
    """File and line of a function."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)


class Kernel:
    """A registered function, where it was registered, and whether it is told the dispatch keys."""

    __slots__ = ("function", "source", "with_keyset")

    def __init__(self, function: Callable, source: str, with_keyset: bool = False):
        self.function = function
        self.source = source
        self.with_keyset = with_keyset


class FakeKernel(Kernel):
    """A kernel at Meta that `register_fake` put there."""

    __slots__ = ()


class Table:
    """The kernels of one operator."""

    def __init__(self, name: str):
        self.name = self.shown = name  # `shown`: with the schema, once there is an operator
        self.kernels: dict[str, list[Kernel]] = {}
        self.changed: Callable[[], None] = _nothing  # what the operator does when a kernel comes or goes

    def add(self, key: str, kernel: Kernel) -> Callable[[], None]:
        """Register a kernel; what is returned takes it out again."""
        stack = self.kernels.setdefault(parse(key), [])
        if stack and key != "Meta":
            warn_overriding(self.shown, key, stack[-1].source, kernel.source)
        stack.append(kernel)
        self.changed()

        def remove() -> None:
            if kernel in stack:
                stack.remove(kernel)
                self.changed()

        return remove

    def has(self, kernel: Kernel) -> bool:
        """Whether a kernel is still registered, first at its key or behind others."""
        return any(kernel in stack for stack in self.kernels.values())

    def find(self, key: str) -> Kernel | None:
        stack = self.kernels.get(key)
        return stack[-1] if stack else None

    def own(self, backend: str) -> Kernel | None:
        """The kernel for a backend that stands below autograd."""
        for key in (backend, _alias(backend), NON_FUNCTIONAL, COMPOSITE_EXPLICIT):
            kernel = self.find(key)
            if kernel is not None and kernel.function is not fallthrough_kernel:
                return kernel
        return None

    def backend(self, backend: str) -> Kernel | None:
        """The kernel that computes on a backend."""
        return self.own(backend) or self.find(COMPOSITE_IMPLICIT)

    def autograd(self, backend: str) -> Kernel | None:
        """The kernel that stands in the place of recording for a backend."""
        return self.find(f"Autograd{backend}") or self.find("Autograd")

    @property
    def composite(self) -> Kernel | None:
        """The body in other operators, where that is all there is."""
        kernel = self.find(COMPOSITE_IMPLICIT)
        others = any(stack for key, stack in self.kernels.items() if key not in (COMPOSITE_IMPLICIT, "Autograd"))
        return None if others else kernel

    def __bool__(self) -> bool:
        return any(self.kernels.values())


tables: dict[str, Table] = {}
fallbacks: dict[str, list[Kernel]] = {}  # for any operator that has no kernel on a backend
_warned = False


def table_of(name: str) -> Table:
    """The table of a qualified name, made at first need."""
    table = tables.get(name)
    if table is None:
        table = tables[name] = Table(name)
    return table


def _alias(backend: str) -> str:
    return "NestedTensor" if backend.startswith("NestedTensor") else backend


def _nothing() -> None:
    """No operator looks at the table yet."""


def warn_overriding(name: str, key: str, before: str, now: str) -> None:
    """Say that a kernel takes the place of another; once in a process."""
    global _warned
    if _warned:
        return
    _warned = True
    warnings.warn(
        "Warning only once for all operators,  other operators may also be overridden.\n"
        "  Overriding a previously registered kernel for the same operator and the same dispatch key\n"
        f"  operator: {name}\n  dispatch key: {key}\n  previous kernel: registered at {before}\n       new kernel: registered at {now}",
        UserWarning,
        stacklevel=5,
    )
