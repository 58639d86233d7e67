"""Forward mode by hand: open a level, make dual tensors, read tangents off the results."""

from __future__ import annotations

from typing import NamedTuple

from ..batching.levels import rewrap, strip
from ..core import modes
from ..core.modes import ambient, decorate
from ..core.tensor import TRANSFORMED, Tensor
from .forward import DualLevel, dual, make_carry, primal_of, tangent_of

_open: list[DualLevel] = []
_current_level = -1  # the number of open levels, less one: programs look at it


class UnpackedDualTensor(NamedTuple):
    """A tensor's value and its tangent, None where it has none."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open a level of forward mode."""
    if _open:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    level = DualLevel()
    level.__enter__()
    _open.append(level)
    return _note_level()


def _note_level() -> int:
    global _current_level
    _current_level = len(_open) - 1
    return _current_level


def exit_dual_level(*, level: int | None = None) -> None:
    """Close a level: its tangents are gone."""
    last = len(_open) - 1
    if last < 0 or level is not None and level != last:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    _open.pop().__exit__(None, None, None)
    _note_level()


class dual_level:
    """A level of forward mode for a block or a function."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()

    def __call__(self, function):
        return decorate(dual_level, function)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor that carries a tangent."""
    if not _open:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not (t.is_floating_point() or t.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    number = _open[-1].number
    if tangent_of(tensor, number) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if (tensor._keys | tangent._keys) & TRANSFORMED:
        return batched_dual(tensor, tangent, number)
    dual = tensor.view_as(tensor)
    make_carry(dual, tangent, number)
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a dual tensor."""
    if not _open:
        return UnpackedDualTensor(tensor, None)
    number = _open[-1].number
    if tensor._keys & TRANSFORMED:
        return UnpackedDualTensor(*batched_parts(tensor, number))
    return UnpackedDualTensor(primal_of(tensor, number), tangent_of(tensor, number))


def batched_dual(tensor: Tensor, tangent: Tensor, number: int) -> Tensor:
    """`make_dual` inside vmap: the tangent goes to the value underneath."""
    return dual(tensor, tangent, number)


def batched_parts(tensor: Tensor, number: int) -> tuple[Tensor, Tensor | None]:
    """`unpack_dual` inside vmap."""
    value, wraps = strip(tensor)
    tangent = tangent_of(value, number)
    return rewrap(primal_of(value, number), wraps), None if tangent is None else rewrap(tangent, wraps)


def _is_fwd_grad_enabled() -> bool:
    return bool(ambient.mode & modes.FORWARD) or not ambient.forward_levels and not ambient.forward_off


class _set_fwd_grad_enabled:
    """Whether tangents are carried along; set at once, as a context manager until the block ends."""

    def __init__(self, mode: bool) -> None:
        self.prev = ambient.mode & modes.FORWARD, ambient.forward_off
        ambient.forward_off = not mode
        ambient.switch(modes.FORWARD, mode and ambient.forward_levels)

    def __enter__(self) -> None:
        """It is set since it was made."""

    def __exit__(self, *exc: object) -> None:
        switched, ambient.forward_off = self.prev
        ambient.switch(modes.FORWARD, switched)


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
