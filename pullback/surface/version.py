"""Which version this is, and of which libraries it was built: of no CUDA, ROCm or XPU.

`__version__` is the version of PyTorch's interface that is offered here. It compares as versions do, with strings, tuples
and other versions: `__version__ >= "2.4"`, `__version__ >= (2, 4)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..core.release import TORCH

_RELEASE = r"(?i)\s*v?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|rc|alpha|beta|c|pre|preview|dev|post)[-_.]?(\d*))?"
_STAGE = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "rc": -1, "c": -1, "pre": -1, "preview": -1, "post": 1}


def _key(version: Any) -> tuple:
    """What orders versions: the numbers without trailing zeros, then the stage, then whether it is a local build."""
    text = version if isinstance(version, str) else ".".join(map(str, version))
    match = re.match(_RELEASE, text)
    if match is None:
        raise ValueError(f"Invalid version: {text!r}")
    release = [int(part) for part in match[1].split(".")]
    while release and release[-1] == 0:
        release.pop()
    stage = (_STAGE[match[2].lower()], int(match[3] or 0)) if match[2] else (0, 0)
    return tuple(release), stage, text.partition("+")[2]


class TorchVersion(str):
    """A string that compares as a version, also with strings and tuples of numbers."""

    __slots__ = ()

    def _compare(self, other: Any, test: str) -> Any:
        if not isinstance(other, Iterable):
            return NotImplemented
        try:
            theirs = _key(other)
        except ValueError:  # no version: compare as the strings they are
            return getattr(str(self), test)(other)
        return getattr(_key(str(self)), test)(theirs)

    def __lt__(self, other):
        return self._compare(other, "__lt__")

    def __le__(self, other):
        return self._compare(other, "__le__")

    def __gt__(self, other):
        return self._compare(other, "__gt__")

    def __ge__(self, other):
        return self._compare(other, "__ge__")

    def __eq__(self, other):
        return self._compare(other, "__eq__")

    def __ne__(self, other):
        return self._compare(other, "__ne__")

    __hash__ = str.__hash__


__version__ = TorchVersion(TORCH)
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
debug = False
git_version = "unknown"

__all__ = ["TORCH", "TorchVersion", "__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
