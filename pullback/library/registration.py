"""`Library`: operators defined, and kernels registered, in the name of one namespace.

A library is the owner of what it registers: when it is destroyed, or nobody holds it any more, its operators and kernels
go, and what they stood before counts again. Several libraries may extend one namespace; one only may be its "DEF".
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..ops.system.operator import Operator, packets, unregister
from ..ops.system.packet import forget, packet
from . import declaration, overriding
from .kernels import Kernel, fallbacks, table_of, warn_overriding
from .keys import COMPOSITE_IMPLICIT, is_backend, parse
from .operator import LibraryOperator
from .tagged import check_tagged

_RESERVED = ("prim",)
_BLOCKS = {"DEF": "TORCH_LIBRARY", "IMPL": "TORCH_LIBRARY_IMPL", "FRAGMENT": "TORCH_LIBRARY_FRAGMENT"}
_owners: dict[str, str] = {}  # namespace -> where its DEF library was made
_DESTROYED = "Library object has been destroyed"


def source_of(depth: int) -> str:
    """File and line of a caller."""
    frame = sys._getframe(depth)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Library:
    """A handle to a namespace: defines operators in it ("DEF", "FRAGMENT") and registers kernels ("IMPL" too)."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in _BLOCKS:
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if dispatch_key:
            parse(dispatch_key)
        self.source = source_of(2)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._undo: list[Callable[[], None]] = []
        self._registered: set[str] = set()  # "name/key" of the kernels registered here
        self._op_defs: set[str] = set()
        self._live = True
        if kind == "DEF":
            self._own_namespace()
        self._finalizer = weakref.finalize(self, _undo_all, self._undo)
        self._finalizer.atexit = False  # with the process all goes anyway

    def _own_namespace(self) -> None:
        ns = self.ns
        if ns in _owners or ns == "aten":
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your definitions in a single "
                "TORCH_LIBRARY block.  If you were trying to specify implementations, consider using TORCH_LIBRARY_IMPL (which can be "
                "duplicated).  If you really intended to define operators for a single namespace in a distributed way, you can use "
                "TORCH_LIBRARY_FRAGMENT to explicitly indicate this.  Previous registration of TORCH_LIBRARY was registered at "
                f"{_owners.get(ns, 'pullback')}; latest registration was registered at {self.source}"
            )
        _owners[ns] = self.source
        self._undo.append(lambda: _owners.pop(ns, None))  # type: ignore[arg-type,return-value]

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    # ---- operators
    def define(self, schema: str, alias_analysis: str = "", *, tags=()) -> str:
        """Define an operator by its schema; gives its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if not self._live:
            raise AssertionError(_DESTROYED)
        tags = (tags,) if isinstance(tags, str) else tuple(tags or ())
        if self.kind == "IMPL":
            raise RuntimeError(
                f'def("{schema.partition("(")[0]}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block.  All def()s should be placed in '
                "the (unique) TORCH_LIBRARY block for their namespace.  (Error occurred while processing TORCH_LIBRARY_IMPL block at "
                f"{self.source})"
            )
        read = declaration.read(schema)
        if read.namespace not in (None, self.ns):
            raise RuntimeError(
                f"Explicitly provided namespace ({read.namespace}) in schema string does not match namespace of enclosing TORCH_LIBRARY block "
                f"({self.ns}).  Move this definition to the (unique) TORCH_LIBRARY block corresponding to this namespace (and consider deleting the "
                f"namespace from your schema string.)  (Error occurred while processing {self._block})"
            )
        self._check_new(read)
        op = LibraryOperator(self.ns, read.text, tags, self.source)
        try:
            check_tagged(op)
        except ValueError:
            unregister(op)
            raise
        self._op_defs.add(op.qualified_name)
        self._undo.append(lambda: _remove(op))
        return read.name

    @property
    def _block(self) -> str:
        return f"{_BLOCKS[self.kind]} block at {self.source}"

    def _check_new(self, read: declaration.Declaration) -> None:
        name, _, overload = read.name.partition(".")
        known = packets.get(name if self.ns == "aten" else f"{self.ns}::{name}", {}).get(overload or "default")
        if known is not None:
            raise RuntimeError(
                f"Tried to register an operator ({self.ns}::{read.text}) with the same name and overload name multiple times. Each overload's "
                f"schema should only be registered with a single call to def(). Duplicate registration: registered at {self.source}. Original "
                f"registration: registered at {getattr(known, 'source', 'pullback')}"
            )

    # ---- kernels
    def impl(
        self,
        op_name: str | Operator,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Register a kernel of an operator at a dispatch key."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        name = self._qualified(op_name)
        if dispatch_key and self.dispatch_key and dispatch_key != self.dispatch_key:
            raise RuntimeError(
                f"Explicitly provided dispatch key ({dispatch_key}) is inconsistent with the dispatch key of the enclosing {_BLOCKS[self.kind]} block "
                f"({self.dispatch_key}): register it in a block of its own, at {self.source}"
            )
        key = dispatch_key or self.dispatch_key or COMPOSITE_IMPLICIT
        self.register(name, key, Kernel(fn, self.source, with_keyset), allow_override=allow_override, shown=op_name)

    def register(self, name: str, key: str, kernel: Kernel, *, allow_override: bool = True, shown=None) -> None:
        """Put a kernel into the table of a qualified name."""
        short = name.partition("::")[2]
        table = overriding.watch(name) if self.ns == "aten" else table_of(name)
        if not allow_override and table.find(key) is not None:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {short}'s behavior for {key} dispatch key and "
                f"{self.ns} namespace."
            )
        if not self._live:
            raise AssertionError(_DESTROYED)
        if key == "Meta" and self._is_composite(name):
            raise RuntimeError(
                f"We should not register a meta kernel directly to the operator '{shown or short}', because it has a CompositeImplicitAutograd kernel "
                "in core. Instead we should let the operator decompose, and ensure that we have meta kernels for the base ops that it decomposes into."
            )
        if self.ns == "aten" and not table:
            warn_overriding(table.shown, key, "pullback", kernel.source)
        self._undo.append(table.add(key, kernel))

    def _is_composite(self, name: str) -> bool:
        if self.ns == "aten":
            op = overriding.find(name)
            return op is not None and op.body is not None
        return table_of(name).find(COMPOSITE_IMPLICIT) is not None

    def _qualified(self, op_name: str | Operator, api: str = "impl") -> str:
        op_name = op_name.qualified_name if isinstance(op_name, Operator) else op_name
        if not isinstance(op_name, str):
            raise RuntimeError(
                f"{api} should be passed either a name or an OpOverload object as the first argument, got {type(op_name)}"
            )
        namespace, colons, short = op_name.partition("::")
        if not colons:
            return f"{self.ns}::{op_name}"
        if namespace != self.ns:
            raise RuntimeError(
                f'impl("{op_name}", ...): Explicitly provided namespace ({namespace}) in operator name does not match namespace of enclosing '
                f"TORCH_LIBRARY block ({self.ns}).  Move this definition to the TORCH_LIBRARY block corresponding to this namespace (and consider "
                f"deleting the namespace from your schema string.)  (Error occurred while processing {self._block})"
            )
        return f"{namespace}::{short}"

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Register the kernel of every library operator that has none on a backend; it is told which one was called."""
        key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(
                f'Fallback can only be registered using library fragment on the global namespace "_" but it is {self.ns}'
            )
        if not key:
            raise AssertionError("dispatch_key must not be empty for fallback")
        if not self._live:
            raise AssertionError(_DESTROYED)
        if not is_backend(key):
            raise NotImplementedError(
                f"Library.fallback: a fallback at {key} is not supported, only at backends such as CPU; use a TorchDispatchMode"
            )
        stack = fallbacks.setdefault(key, [])
        kernel = Kernel(fn, self.source, with_keyset)
        stack.append(kernel)
        self._undo.append(lambda: stack.remove(kernel))

    def _register_torch_dispatch_rule(self, op_name: str, torch_dispatch_class: type, fn: Callable) -> None:
        """Register `fn(mode_or_class, func, types, args, kwargs)` for a dispatch mode or a tensor subclass."""
        self._undo.append(add_dispatch_rule(lookup(self._qualified(op_name)), torch_dispatch_class, fn))

    # ---- the end
    def _destroy(self) -> None:
        """Take back all that was registered here."""
        self._live = False
        self._finalizer()


def _undo_all(undo: list[Callable[[], None]]) -> None:
    while undo:
        undo.pop()()


def _remove(op: LibraryOperator) -> None:
    op.table.changed = _nobody
    unregister(op)
    forget(op.namespace, op.name)


def _nobody() -> None:
    """The operator is gone; kernels that are left wait for the next definition."""


@contextmanager
def _scoped_library(*args, **kwargs) -> Iterator[Library]:
    """A library for the length of a block."""
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


_kept: list[Library] = []  # libraries that nobody destroys: those made by functions that were given none


def library_for(namespace: str, lib: Library | None = None) -> Library:
    """The library given, or a new one that stays."""
    if lib is not None:
        return lib
    result = Library(namespace, "FRAGMENT")
    _kept.append(result)
    return result


def split_name(qualname: str) -> tuple[str, str]:
    """("mylib", "f") of "mylib::f"."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. The qualname passed to the torch.library APIs must '
            "consist of a namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def lookup(qualname: str) -> Operator:
    """The operator of a qualified name."""
    namespace, name = split_name(qualname)
    name, _, overload = name.partition(".")
    return getattr(packet(namespace, name), overload or "default")


def add_dispatch_rule(op: Operator, torch_dispatch_class: type, function: Callable) -> Callable[[], None]:
    """Let a function handle an operator for a dispatch mode or a tensor subclass; gives what takes it back."""
    if torch_dispatch_class in op.dispatch_rules:
        raise RuntimeError(
            f"{torch_dispatch_class} already has a `__torch_dispatch__` rule registered for {op.qualified_name}"
        )
    op.dispatch_rules = {**op.dispatch_rules, torch_dispatch_class: function}

    def take_back() -> None:
        op.dispatch_rules = {cls: rule for cls, rule in op.dispatch_rules.items() if cls is not torch_dispatch_class}

    return take_back


def types_of(types: str | Sequence[str]) -> list[str]:
    return [types] if isinstance(types, str) else list(types)
