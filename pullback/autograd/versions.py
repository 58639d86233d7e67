"""Version counters, by hand: for code that changes memory without autograd's knowledge, or wants it not to know."""

from __future__ import annotations

from ..core.tensor import Tensor


def increment_version(tensor) -> None:
    """Say that a tensor's memory was changed."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tuple(tensor):
        t._counter[0] += 1


class unsafe_preserve_version_counter:
    """Inside the block, in-place writes to these tensors do not count."""

    def __init__(self, tensors):
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        self.before = tuple(t._counter[0] for t in self.tensors)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc) -> None:
        unsafe_set_version_counter(self.tensors, self.before)


def unsafe_set_version_counter(tensors, versions) -> None:
    """Set version counters outright."""
    for t, v in zip(
        (tensors,) if isinstance(tensors, Tensor) else tensors,
        (versions,) if isinstance(versions, int) else versions,
        strict=True,
    ):
        if v < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {v}")
        t._counter[0] = v
