"""Names that a subclass of `Tensor` uses for itself although a tensor has a slot of that name (`array`, `keys`, `offset`, ...).

PyTorch has no such attributes, so programs are free to define them. On such a class the name becomes a `Shadowed`: code of this
package reaches the slot, everybody else what the class defines. Classes without such names are as they were.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

PRIVATE_SLOTS = ("array", "keys", "autograd", "version", "memory", "offset", "view_info")
_OURS = (str(Path(__file__).parents[1]), "<pullback")  # files of the package, and code that it generates


class Shadowed:
    """A slot under a name that a subclass defines: which of the two is meant depends on whose code asks."""

    def __init__(self, name: str, slot: Any, theirs: Any):
        self.name, self.slot, self.theirs = name, slot, theirs

    def __get__(self, tensor: Any, owner: type | None = None) -> Any:
        if tensor is not None:
            if _asked_from_here():
                return self.slot.__get__(tensor, owner)
            if not hasattr(type(self.theirs), "__set__") and self.name in tensor.__dict__:
                return tensor.__dict__[self.name]
        get = getattr(type(self.theirs), "__get__", None)
        return self.theirs if get is None else get(self.theirs, tensor, owner)

    def __set__(self, tensor: Any, value: Any) -> None:
        if _asked_from_here():
            self.slot.__set__(tensor, value)
        elif hasattr(type(self.theirs), "__set__"):
            type(self.theirs).__set__(self.theirs, tensor, value)
        else:
            tensor.__dict__[self.name] = value


def _asked_from_here() -> bool:
    """Whether the code that reads or writes the attribute is the package's own."""
    return sys._getframe(2).f_code.co_filename.startswith(_OURS)


def shadow_slots(cls: type, base: type) -> None:
    """Let a subclass of `base` keep its own meaning of names that are slots of `base`."""
    for name in PRIVATE_SLOTS:
        for parent in cls.__mro__[: cls.__mro__.index(base)]:
            theirs = vars(parent).get(name)
            if isinstance(theirs, Shadowed):
                break
            if theirs is not None:
                setattr(cls, name, Shadowed(name, getattr(base, name), theirs))
                break
