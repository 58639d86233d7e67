"""What is registered for an operator beside kernels, by its qualified name: a view of the tables, by PyTorch's private names."""

from __future__ import annotations

from collections.abc import Callable

from .kernels import FakeKernel, table_of
from .registration import lookup


class FakeRules:
    """The fake rules of an operator, the one that counts last."""

    def __init__(self, qualname: str):
        self.qualname = qualname

    @property
    def kernels(self) -> list[FakeKernel]:
        return [kernel for kernel in table_of(self.qualname).kernels.get("Meta", ()) if isinstance(kernel, FakeKernel)]

    @property
    def kernel(self) -> FakeKernel | None:
        return self.kernels[-1] if self.kernels else None


class DispatchRules:
    """The functions that handle an operator for classes of dispatch modes and of tensors."""

    def __init__(self, qualname: str):
        self.qualname = qualname

    def find(self, torch_dispatch_class: type) -> Callable | None:
        """The function for a class."""
        return lookup(self.qualname).dispatch_rules.get(torch_dispatch_class)


class SimpleOperatorEntry:
    """What is registered for one operator."""

    def __init__(self, qualname: str):
        self.qualname = qualname
        self.fake_impl = self.abstract_impl = FakeRules(qualname)
        self.torch_dispatch_rules = DispatchRules(qualname)


class SimpleLibraryRegistry:
    """All operators, by their qualified names."""

    def find(self, qualname: str) -> SimpleOperatorEntry:
        """The entry of an operator; one that nothing is registered for has an empty one."""
        return SimpleOperatorEntry(qualname)


singleton = SimpleLibraryRegistry()
