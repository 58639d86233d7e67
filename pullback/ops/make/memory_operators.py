"""Changes of the memory under a tensor as operators: `set_`, `resize_`, `resize_as_`, `record_stream`, and questions about memory.

In: a tensor, and what it is to lie on. Out: the same tensor, or a fact. Dispatch modes and dispatching subclasses are told of a
call like of any other, and make it themselves by calling the operator; where none listens, the function that does the work
(`declare`'s `body`) is called at once. Nothing of it is recorded: what history has to say, the function says.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core import modes
from ...core.modes import ambient
from ...core.tensor import DISPATCH_SUBCLASS, FAKE, Tensor
from ..eager.functions import is_overridden
from ..family.base import Family
from ..system.dispatch import dispatch
from ..system.operator import NONDIFFERENTIABLE, Operator, key_of
from ..system.overrides import call_dispatch


class Memory(Family):
    """Operators that change what a tensor lies on, or ask."""

    takes_layouts = True
    takes_copies = False

    def execute(self, op: Operator, args: tuple):
        return op.layer(args)  # type: ignore[misc]

    run_meta = execute


MEMORY = Memory()


def declare(text: str, body: Callable, library: str = "aten") -> Operator:
    """An operator that `body(*args)` does; it has no public function of its own."""
    op = Operator(text, MEMORY, function=False, method=False, out=False, vjp=NONDIFFERENTIABLE, library=library)

    def layer(args: tuple):
        told = tell(op, args)
        return body(*args) if told is NotImplemented else told

    op.layer = layer
    return op


def tell(op: Operator, args: tuple):
    """What the program's own dispatch mode, a class of the arguments or a library makes of a call; NotImplemented where none listens.

    Modes that trace or compute without data are no listeners: they are told of what becomes of the memory (`told_mode`).
    """
    if is_overridden(key_of(op)) and not ambient.mode & modes.BELOW_AUTOGRAD:
        with modes.masked(0, modes.BELOW_AUTOGRAD):
            return dispatch(op, args)
    mode = ambient.dispatch_modes[-1] if ambient.mode & modes.DISPATCH else None
    if mode is not None and (mode.handle is not None or hasattr(mode, "set_memory")):
        return NotImplemented
    if mode is None and not any(t._keys & (DISPATCH_SUBCLASS | FAKE) == DISPATCH_SUBCLASS for t in op.tensors(args)):
        return NotImplemented
    return call_dispatch(op, args)


def is_heard(*values) -> bool:
    """Whether a call with these arguments may have a listener, so that it must go through its operator."""
    if ambient.mode & modes.DISPATCH or is_overridden():
        return True
    return any(isinstance(v, Tensor) and v._keys & DISPATCH_SUBCLASS for v in values)
