"""Where symbols come from: sizes, strides and offsets of inputs, and data-dependent sizes.

What comes in: a value and its source (`L['x'].size()[0]`, or an object with a `name`). What goes out: expressions. What always holds:
a symbol's name follows from its source's name, so that traces of one program name alike; sizes 0 and 1 are constants unless told
otherwise; with duck shaping, equal sizes are one symbol; strides are written by sizes where they fit.
"""

from __future__ import annotations

import hashlib
import itertools
from contextlib import contextmanager

from ...core.logs import logger
from .contexts import (
    DimDynamic,
    StatefulSymbolicContext,
    StatelessSymbolicContext,
    StrictMinMaxConstraint,
    default_context,
)  # fmt: skip
from .errors import ConstraintViolationError
from .expressions import Symbol, multiply
from .facts import INFINITE, UNBOUNDED
from .numbers import SymInt, wrap


def source_name(source) -> str:
    """The name of a source: a string, or what its `name` says."""
    if isinstance(source, str):
        return source
    name = source.name
    return name() if callable(name) else name


class SymbolMaker:
    """The part of a ShapeEnv that makes symbols."""

    def __init__(self) -> None:
        self.hints: dict[Symbol, object] = {}
        self.var_to_sources: dict[Symbol, list[str]] = {}
        self.source_to_var: dict[str, Symbol] = {}
        self.constraints: dict[Symbol, object] = {}
        self.first_ranges: dict[Symbol, tuple] = {}  # what was taken as given when a symbol was made
        self.val_to_var: dict = {}
        self.size_like: set[Symbol] = set()
        self.unbacked_inputs: set[Symbol] = set()
        self.sizes_by_name: dict[str, tuple] = {}  # the symbol and the example of dimensions that users named
        self.pending_fresh_unbacked_symbols: list[Symbol] = []
        self.unique_ids: set[int] = set()
        self._unbacked = {"u": itertools.count(), "zuf": itertools.count()}
        self._unknown = itertools.count()
        self._narrowed = 0

    def _unique_id(self, name: str) -> int:
        number = int(hashlib.sha256(name.encode()).hexdigest(), 16) % 100
        while number in self.unique_ids:
            number += 1
        self.unique_ids.add(number)
        return number

    def create_symbol(
        self,
        val,
        source,
        dynamic_dim: DimDynamic = DimDynamic.DUCK,
        constraint_dim=None,
        positive: bool | None = True,
        do_not_specialize_zero_one: bool = False,
        symbolic_context=None,
    ):
        """The expression of an input value: a constant, a symbol that is shared, or a new one."""
        name = source_name(source)
        dynamic_dim, constraint_dim = self._settle(val, name, dynamic_dim, constraint_dim)
        remembered = self._remembered(symbolic_context)
        if name in remembered:
            return remembered[name]
        if dynamic_dim is DimDynamic.UNBACKED:
            result = self.create_unbacked_symint(source).node.expr
            self.size_like.add(result)
            self.facts.set_range(result, 0, INFINITE)
            self.unbacked_inputs.add(result)
        elif dynamic_dim is DimDynamic.STATIC:
            result = val
        else:
            whole = self.specialize_zero_one and not do_not_specialize_zero_one
            result = self._backed(val, name, dynamic_dim, positive, whole)
        if constraint_dim is not None and isinstance(result, Symbol):
            self.constraints[result] = constraint_dim
            if isinstance(constraint_dim, StrictMinMaxConstraint):
                low, high = self.facts.ranges[result]
                self.facts.set_range(result, max(low, constraint_dim.vr.lower), min(high, constraint_dim.vr.upper))
        if isinstance(result, Symbol):
            self.first_ranges.setdefault(result, self.facts.ranges.get(result, UNBOUNDED))
        remembered[name] = result
        logger("dynamic").info("create_symbol %s = %s for %s", result, val, name)
        return result

    def _settle(self, val, name: str, dynamic_dim: DimDynamic, constraint) -> tuple:
        """What a constraint makes of the dynamism."""
        if isinstance(constraint, StrictMinMaxConstraint) and constraint.vr.lower == constraint.vr.upper:
            if constraint.vr.lower != val:
                raise ConstraintViolationError(
                    f"Static shape constraint of {constraint.vr.lower} does not match input size of {val}, for {name}"
                )
            return DimDynamic.STATIC, None
        if constraint is not None and dynamic_dim is not DimDynamic.UNBACKED:
            return DimDynamic.DYNAMIC, constraint
        return dynamic_dim, constraint

    def _remembered(self, context) -> dict:
        if isinstance(context, StatefulSymbolicContext):
            return context.shape_env_to_source_to_symbol_cache.setdefault(id(self), {})
        return {}

    def _backed(self, val, name: str, dynamic_dim: DimDynamic, positive: bool | None, specialize: bool):
        if positive and val < 0:
            raise AssertionError(f"positive set for negative value: {val}")
        if specialize and type(val) is int and val in (0, 1):
            return val
        duck = self.duck_shape and dynamic_dim is DimDynamic.DUCK
        shared = self.val_to_var.get((type(val), val)) if duck else None
        if shared is not None:
            self.var_to_sources[shared].append(name)
            self.source_to_var[name] = shared
            return self.replace(shared)
        kind = float if isinstance(val, float) else int
        symbol = Symbol(f"{'s' if kind is int else 'zf'}{self._unique_id(name)}", kind)
        self._register(symbol, name, val)
        if duck:
            self.val_to_var[type(val), val] = symbol
        if kind is int:
            self.facts.set_range(symbol, (2 if specialize else 0) if positive else -INFINITE, INFINITE)
        return symbol

    def _register(self, symbol: Symbol, name: str, val) -> None:
        self.hints[symbol] = val
        self.var_to_sources[symbol] = [name]
        self.source_to_var[name] = symbol

    def create_unspecified_symbol(
        self, val, source, dynamic_dim: DimDynamic = DimDynamic.DUCK, constraint_dim=None, symbolic_context=None
    ):
        """The expression of a number that is an input itself: any sign, 0 and 1 not special."""
        return self.create_symbol(val, source, dynamic_dim, constraint_dim, None, True, symbolic_context)

    def create_symint(self, value: int, source) -> SymInt:
        """An integer that is an input itself."""
        return wrap(self.create_unspecified_symbol(value, source), self)

    def create_unspecified_symint_and_symbol(self, value: int, source, dynamic_dim: DimDynamic, excluded_value=None):
        return wrap(self.create_unspecified_symbol(value, source, dynamic_dim), self)

    def _fresh(self, prefix: str, kind: type, source=None):
        symbol = Symbol(f"{prefix}{next(self._unbacked[prefix])}", kind)
        self.var_to_sources[symbol] = [] if source is None else [source_name(source)]
        self.pending_fresh_unbacked_symbols.append(symbol)
        return symbol

    @contextmanager
    def ignore_fresh_unbacked_symbols(self):
        """A block whose new unbacked symbols no result needs to show."""
        before = self.pending_fresh_unbacked_symbols
        self.pending_fresh_unbacked_symbols = []
        try:
            yield
        finally:
            self.pending_fresh_unbacked_symbols = before

    def create_unbacked_symint(self, source=None) -> SymInt:
        """A number that hangs on data: no example value, any range until told."""
        return wrap(self._fresh("u", int, source), self)

    def create_unbacked_symfloat(self):
        return wrap(self._fresh("zuf", float), self)

    def create_unbacked_symbool(self):
        from .relations import compare

        symbol = self._fresh("u", int)
        self.facts.set_range(symbol, 0, 1)
        return wrap(compare("==", symbol, 1), self)

    # -- tensors

    def create_symbolic_sizes_strides_storage_offset(self, ex, source=None, *, symbolic_context=None) -> tuple:
        """(sizes, strides, offset) of a tensor, as numbers: SymInts where dynamic, ints elsewhere."""
        name = f"__meta_utils_unknown_tensor{next(self._unknown)}" if source is None else source_name(source)
        values = tuple(map(self._example, ex.shape)), tuple(map(self._example, ex.stride()))
        return self.create_symbolic_from_values(
            *values, self._example(ex.storage_offset()), name,
            symbolic_context or default_context(ex, self.assume_static_by_default),
        )  # fmt: skip

    def create_symbolic_from_values(self, shape: tuple, stride: tuple, offset: int, name: str, context) -> tuple:
        """The same from plain sizes, strides and offset."""
        sizes = self._sizes(shape, name, context)
        strides = self._strides(shape, stride, sizes, name, context)
        start = self.create_symbol(offset, f"{name}.storage_offset()", symbolic_context=context) if offset else 0
        return tuple(wrap(s, self) for s in sizes), tuple(wrap(s, self) for s in strides), wrap(start, self)

    def _example(self, value):
        """A plain number, from one of another trace as well."""
        return value if type(value) is int else value.node.require_hint() if hasattr(value, "node") else int(value)

    def _sizes(self, shape: tuple, name: str, context: StatelessSymbolicContext) -> list:
        constraints = context.constraint_sizes or [None] * len(shape)
        return [
            self._named(d, s, name, context)
            if context.shape_ids and d in context.shape_ids and context.dynamic_sizes[d] is DimDynamic.UNBACKED
            else self._size(d, s, name, context, constraints[d])
            for d, s in enumerate(shape)
        ]

    def _size(self, d: int, size: int, name: str, context: StatelessSymbolicContext, constraint):
        """The expression of a size, within the bounds that the user said."""
        way = context.dynamic_sizes[d]
        result = self.create_symbol(size, f"{name}.size()[{d}]", way, constraint, symbolic_context=context)
        if way is DimDynamic.UNBACKED and d in (context.unbacked_bounds or ()):
            low, high = context.unbacked_bounds[d]
            low, high = low or 0, INFINITE if high is None else high
            if not low <= size <= high:
                raise ConstraintViolationError(
                    f"{name}.size()[{d}] was marked to lie in [{low}, {high}], but is {size}"
                )
            self.facts.set_range(result, low, high)
            self.first_ranges[result] = (low, high)
        return result

    def _named(self, d: int, size: int, name: str, context: StatelessSymbolicContext):
        """The expression of a size that others share by name."""
        called = context.shape_ids[d]
        if called not in self.sizes_by_name:
            constraint = context.constraint_sizes[d] if context.constraint_sizes else None
            self.sizes_by_name[called] = self._size(d, size, name, context, constraint), size
        symbol, first = self.sizes_by_name[called]
        if first != size:
            raise AssertionError(
                f"dimensions of one shape_id ({called!r}) are equal, but {name}.size()[{d}] is {size}, not {first}"
            )
        place = f"{name}.size()[{d}]"
        self.source_to_var.setdefault(place, symbol)
        if place not in self.var_to_sources[symbol]:
            self.var_to_sources[symbol].append(place)
        return self.replace(symbol)

    def _strides(self, shape: tuple, stride: tuple, sizes: list, name: str, context) -> list:
        """Strides by sizes where size * stride of another dimension is the stride; new symbols for what is left."""
        ways = context.dynamic_strides or [DimDynamic.INFER_STRIDE] * len(shape)
        out: list = [None] * len(shape)
        reach: dict = {}

        def settle(d: int, expr) -> None:
            out[d] = expr
            if stride[d] >= 0:
                reach.setdefault(shape[d] * stride[d], multiply(sizes[d], expr))

        for d, value in enumerate(stride):
            if value in (0, 1) or ways[d] is DimDynamic.STATIC:
                settle(d, value)
        for value, d in sorted((v, d) for d, v in enumerate(stride) if out[d] is None):
            if ways[d] is DimDynamic.INFER_STRIDE and value in reach:
                settle(d, reach[value])
            else:
                way = ways[d]
                if way is DimDynamic.INFER_STRIDE:
                    way = DimDynamic.STATIC if all(type(s) is int for s in sizes) else DimDynamic.DUCK
                settle(d, self.create_symbol(value, f"{name}.stride()[{d}]", way, symbolic_context=context))
        return out
