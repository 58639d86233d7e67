"""One compilation per kind of arguments.

`Specialised(compile, dynamic)` keeps what `compile(arguments)` gave and finds it again for arguments of the same kind: the
same metadata, the same way of sharing memory, other values equal. With `dynamic`, sizes may differ as far as the traced
graph's own conditions on them allow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..capture.trace.subclasses import as_key, description
from ..core import modes
from ..core.modes import ambient
from ..core.node import requires_grad
from ..core.tensor import FAKE, META, Tensor, stride_of
from .functionalize import geometry

if TYPE_CHECKING:
    from .runtime import FlatCall


def signature(args: list, sizes: bool = True) -> tuple:
    """What a compiled function depends on: metadata of tensors, how they share memory, other values as they are."""
    out: list = [ambient.mode & modes.GRAD]
    if ambient.mode & modes.AUTOCAST:
        out.append(frozenset(ambient.autocast.items()))
    storages: dict[int, int] = {}
    seen: dict[int, int] = {}
    for a in args:
        if isinstance(a, Tensor):
            memory = id(a._memory) if a._memory is not None else id(a)
            place = (tuple(a._array.shape), stride_of(a)) if sizes else a.ndim
            out.append(
                (
                    type(a), place, a.dtype, a.device, a._keys & ~(META | FAKE), requires_grad(a), a.is_leaf,
                    seen.setdefault(id(a), len(seen)), storages.setdefault(memory, len(storages)), description(a),
                )
            )  # fmt: skip
        elif getattr(a, "is_symbolic", False):
            out.append((int,))
        else:
            out.append((type(a), None if type(a) is int and not sizes else as_key(a)))
    if len(storages) < len(seen) and sizes:
        out.append(tuple(_place(a) for a in args if isinstance(a, Tensor)))
    return tuple(out)


def _place(t: Tensor) -> tuple:
    """Where a tensor begins, and what it is a view of."""
    return t._offset, None if t._base is None else geometry(t._base)


def offsets(args: list) -> tuple:
    """Where in their memory the tensors among some arguments begin."""
    return tuple([a._offset for a in args if isinstance(a, Tensor)])


def begins_there(result: FlatCall, args: list) -> bool:
    """Whether a compiled function for which that matters was compiled for arguments at these offsets."""
    return result.offsets is None or result.offsets == offsets(args)


class Specialised:
    """See the module's docstring."""

    def __init__(self, compile: Callable[[list], FlatCall], dynamic: bool = False):
        self.compile, self.dynamic = compile, dynamic
        self.known: dict[tuple, list[tuple[Callable | None, FlatCall]]] = {}  # kind -> (condition, compiled function)

    def made_for(self, args: list) -> FlatCall:
        """The compiled function for arguments like these."""
        key = signature(args, not self.dynamic)
        found = self.known.setdefault(key, [])
        for holds, result in found:
            if (holds is None or holds(*args)) and begins_there(result, args):
                return result
        result = self.compile(args)
        found.append((conditions(result.joint, args) if self.dynamic else None, result))
        return result

    def __call__(self, args: list):
        return self.made_for(args)(args)


def conditions(joint, args: list) -> Callable:
    """What a graph traced with symbolic sizes asks of its arguments."""
    env = joint.fake_mode.shape_env
    if env is None or len(joint.primals) != len(args):
        fixed = signature(args)
        return lambda *given: signature(list(given)) == fixed
    check = env.compile_guards([p if not _constant(p) else None for p in joint.primals])
    constants = [(i, p) for i, p in enumerate(joint.primals) if _constant(p)]

    def holds(*given) -> bool:
        return all(given[i] == p for i, p in constants) and check(*given)

    return holds


def _constant(value) -> bool:
    return not isinstance(value, Tensor) and not getattr(value, "is_symbolic", False)
