"""Graph modules whose code is generated when first needed.

In: a graph, between passes that will change it again. Out: a module that costs nothing until it is called or its code is
read. What always holds: the code that runs is that of the graph as it is at that moment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .codegen import PythonCode
from .module import GraphModule

_lazy = False


@contextlib.contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """Whether `_make_graph_module` makes lazy modules, inside a block."""
    global _lazy
    before, _lazy = _lazy, should_use
    try:
        yield
    finally:
        _lazy = before


def _get_graph_module_cls() -> type[GraphModule]:
    return _LazyGraphModule if _lazy else GraphModule


def _make_graph_module(*args: Any, graph_module_cls: type[GraphModule] | None = None, **kwargs: Any) -> GraphModule:
    """A graph module, lazy where that is on."""
    return (graph_module_cls or _get_graph_module_cls())(*args, **kwargs)


class _PendingForward:
    """Stands for a `forward` whose code is generated and compiled when it is first asked for."""

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        instance.real_recompile()
        return instance.forward


class _LazyGraphModule(GraphModule):
    """A graph module that generates its code late."""

    def recompile(self) -> PythonCode | None:  # type: ignore[override]
        """Note that the code is out of date."""
        self.__dict__.pop("_code", None)
        type(self).forward = _PendingForward()  # type: ignore[assignment]
        return None

    def real_recompile(self) -> PythonCode | None:
        """Generate the code now, if it is out of date."""
        if "_code" not in self.__dict__:
            return super().recompile()
        return None

    @classmethod
    def force_recompile(cls, module: Any) -> None:
        if isinstance(module, _LazyGraphModule):
            module.real_recompile()

    @property
    def code(self) -> str:
        self.real_recompile()
        return self._code

    def __str__(self) -> str:
        self.real_recompile()
        return super().__str__()
