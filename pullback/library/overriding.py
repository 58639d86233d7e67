"""Kernels for operators that are built in: another function at CPU, CUDA, Meta or Autograd for one of them.

While anything is registered for a built-in operator, its calls leave the fast path and look in its table: an Autograd
kernel stands in the place of recording, a backend kernel in the place of the built-in one. When the last kernel is gone,
the operator is what it was.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..core import modes
from ..core.modes import ambient
from ..core.node import requires_grad
from ..core.tensor import FAKE
from ..ops.eager.functions import override
from ..ops.family.factory import FACTORY, Factory
from ..ops.system import dispatch as dispatching
from ..ops.system.inplace import bump
from ..ops.system.operator import Operator, key_of
from ..ops.system.overrides import call_form
from ..ops.system.packet import packet
from . import fake
from .kernels import Kernel, Table, fallthrough_kernel, table_of
from .keys import COMPOSITE_IMPLICIT, backend_of, for_device, key_set

_bodies: dict[Operator, Callable | None] = {}  # what the bodies of composite operators were
_layers: dict[Operator, Callable | None] = {}  # and what stood in the place of recording


def find(qualified: str) -> Operator | None:
    """The built-in operator of a name such as "aten::mul.Tensor"."""
    name, _, overload = qualified.partition("::")[2].partition(".")
    try:
        return packet("aten", name)._overloads().get(overload or "default")
    except AttributeError:
        return None


def watch(qualified: str) -> Table:
    """The table of a built-in operator, which looks into it from now on."""
    table = table_of(qualified)
    op = find(qualified)
    if op is None:
        raise RuntimeError(f"there is no operator {qualified} to register a kernel for")
    table.changed, table.shown = partial(_refresh, op, table), str(op.schema)
    return table


def _refresh(op: Operator, table: Table) -> None:
    """Bring an operator and its functions in line with its table."""
    layer = _layers.setdefault(op, op.layer)
    op.layer = partial(_layer, op, table, layer or partial(dispatching.autograd_layer, op)) if table else layer
    op.backend = partial(_backend, op, table) if table else None
    keys = (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA"))
    found = {kind: table.find(key) for kind, key in keys}
    op.autocasts = {k: None for k, kernel in found.items() if kernel and kernel.function is fallthrough_kernel}
    body = _bodies.setdefault(op, op.body)
    if body is not None:
        op.body = partial(_composite, op, table, body) if table else body
    override(key_of(op), bool(table))


def _composite(op: Operator, table: Table, body: Callable, *args):
    """An operator that is written in others: a kernel registered for it comes before its body."""
    backend = _backend_name(op, args)
    kernel = table.autograd(backend) or table.backend(backend)
    if kernel is None or kernel.function is fallthrough_kernel:
        return body(*args)
    return _invoke(op, kernel, args, backend)


def _layer(op: Operator, table: Table, below: Callable, args: tuple):
    if not ambient.mode & modes.BELOW_AUTOGRAD:
        backend = _backend_name(op, args)
        kernel = table.autograd(backend) or (table.find(COMPOSITE_IMPLICIT) if table.own(backend) is None else None)
        if kernel is not None and kernel.function is not fallthrough_kernel:
            return _invoke(op, kernel, args, backend)
    if op.inplace_of is not None:  # written without going by the backend
        return _write(op, table, args)
    if _layers[op] is not None and (kernel := table.own(_backend_name(op, args))) is not None:
        return _invoke(op, kernel, args, _backend_name(op, args))
    return below(args)


def _write(op: Operator, table: Table, args: tuple):
    kernel = table.own(_backend_name(op, args))
    if kernel is None:
        return dispatching.autograd_layer(op, args)
    if ambient.mode & modes.GRAD and any(requires_grad(t) for t in op.tensors(args)):
        raise NotImplementedError(f"a kernel registered for {op} cannot be recorded for backward")
    before = args[0]._counter[0]
    _invoke(op, kernel, args, _backend_name(op, args))
    if args[0]._counter[0] == before:
        bump(args[0])
    return args[0]


def _backend(op: Operator, table: Table, args: tuple, keys: int):
    """What a registered kernel makes of a call; its own calls are not recorded, since the operator's is."""
    backend = "Meta" if keys & FAKE else _backend_name(op, args)
    kernel = table.own(backend)
    if kernel is None or kernel.function is fallthrough_kernel:
        return NotImplemented
    with modes.masked(modes.GRAD | modes.FORWARD):
        if backend != "Meta":
            return _invoke(op, kernel, args, backend)
        with fake.inside(op, kernel.source, op.tensors(args)):
            return _invoke(op, kernel, args, backend)


def _backend_name(op: Operator, args: tuple) -> str:
    tensors = op.tensors(args)
    if not tensors and (isinstance(op.family, Factory) or "device" in op.schema.index):
        return for_device(FACTORY.device(op, args).type)
    keys = 0
    for t in tensors:
        keys |= t._keys
    return backend_of(tensors, keys)


def builtin_kernel(op: Operator, kernel: Kernel | None, args: tuple, backend: str):
    """What one kernel makes of a call, whichever would be chosen for it; None: the one that the operator came with."""
    if kernel is not None:
        return _invoke(op, kernel, args, backend)
    body = _bodies.get(op) or op.body
    return op.family.execute(op, args) if body is None else body(*args)


def _invoke(op: Operator, kernel: Kernel, args: tuple, backend: str):
    positional, keywords = call_form(op, args)
    if kernel.with_keyset:
        return kernel.function(key_set(backend), *positional, **keywords)
    return kernel.function(*positional, **keywords)
