"""Which operators `run_decompositions` takes apart, and into what.

In: operators and functions. Out: tables, operator -> function of the operator's arguments. What always holds: an operator that
a table does not name stays as it is; for composite operators (`linear`, `dropout`, ...) the tables here name their bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..capture.trace.graph_trace import Composition
from ..ops.system.operator import Operator, registry
from ..ops.system.packet import ops

aten = ops.aten


def _transposed(self: Any, dim0: int, dim1: int) -> Any:
    order = list(range(self.ndim))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return aten.permute.default(self, order)


def _core() -> dict[Any, Callable]:
    """Operators that are others in fewer words, beside the composite ones."""
    return {
        aten.t.default: lambda self: _transposed(self, 0, 1) if self.ndim == 2 else NotImplemented,
        aten.transpose.int: _transposed,
        aten.lift_fresh_copy.default: lambda self: aten.clone.default(self),
    }


def _silu(self: Any) -> Any:
    narrow = self.dtype.is_floating_point and self.dtype.itemsize < 4
    wide = self.float() if narrow else self
    result = wide * wide.sigmoid()
    return result.to(self.dtype) if narrow else result


def _further() -> dict[Any, Callable]:
    """Operators that can be said in others, but are not unless somebody asks."""
    return {aten.silu.default: _silu}


def compositions() -> dict[Any, Callable]:
    """All composite operators, with their bodies."""
    return {op: Composition(op) for op in registry.values() if op.body is not None and not op.schema.is_mutable}


def composite_operators(namespace: Any) -> set[Operator]:
    """The operators of a library (`ops.aten`) that are written with others."""
    found = [op for name in namespace for op in getattr(namespace, name)._overloads().values()]
    return {op for op in found if op.body is not None}


class CustomDecompTable(dict):
    """A decomposition table: operator -> function of the operator's arguments. It starts with everything that is known."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given) if given else super().__init__({**compositions(), **_core()})

    def __setitem__(self, key: Any, value: Callable) -> None:
        if not callable(value):
            raise TypeError(f"a decomposition must be a function, got {type(value).__name__} for {key}")
        super().__setitem__(key, value)

    has_materialized = True  # what is known is in the table from the start

    def pop(self, key: Any, *default: Any) -> Any:
        if key not in self and not default:
            raise KeyError(f"{key} is not in the table")
        return super().pop(key, *default)

    def copy(self) -> CustomDecompTable:
        return CustomDecompTable(self)

    def materialize(self) -> dict[Any, Callable]:
        """The table as a plain dict."""
        return dict(self)


def default_decompositions() -> CustomDecompTable:
    """The table that `run_decompositions` starts from."""
    return CustomDecompTable()


class _Known(dict):
    """All decompositions. Those of operators that are declared here are there from the first look on."""

    started = False

    def start(self) -> _Known:
        if not self.started:
            self.started = True
            for key, rule in {**compositions(), **_further(), **_core()}.items():
                self.setdefault(key, rule)
        return self

    def __iter__(self):
        return super(_Known, self.start()).__iter__()

    def keys(self):
        return super(_Known, self.start()).keys()

    def items(self):
        return super(_Known, self.start()).items()

    def __contains__(self, key: object) -> bool:
        return super(_Known, self.start()).__contains__(key)

    def __missing__(self, key: Any) -> Callable:
        if self.started:
            raise KeyError(key)
        return self.start()[key]


decomposition_table = _Known()


def core_aten_decompositions() -> CustomDecompTable:
    """The decompositions into core operators."""
    return CustomDecompTable()


def overloads_of(op: Any) -> list[Operator]:
    """The overloads that an operator or a packet is."""
    return list(op._overloads().values()) if hasattr(op, "_overloads") else [op]


def get_decompositions(aten_ops: Iterable, type: str = "post_autograd") -> dict[Any, Callable]:
    """The decompositions of some operators or packets; operators without one are left out."""
    return {
        op: decomposition_table[op] for given in aten_ops for op in overloads_of(given) if op in decomposition_table
    }


def register_decomposition(
    aten_op: Any, registry: dict | None = None, *, type: str = "post_autograd", unsafe: bool = False
) -> Callable:
    """A decorator: the function is the decomposition of an operator, a packet or several."""
    table = decomposition_table if registry is None else registry

    def register(rule: Callable) -> Callable:
        for given in aten_op if isinstance(aten_op, (list, tuple)) else [aten_op]:
            for op in overloads_of(given):
                table[op] = rule
        return rule

    return register
