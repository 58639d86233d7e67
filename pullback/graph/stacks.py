"""Python stacks: which frames are the user's.

In: file names of frames. Out: whether they belong to this package or to the array libraries below it.
"""

from __future__ import annotations

import functools
import os

from ..core.source import GENERATED

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARIES = (f"{os.sep}numpy{os.sep}", f"{os.sep}scipy{os.sep}", f"{os.sep}optree{os.sep}")


@functools.cache
def is_own_file(filename: str) -> bool:
    """Whether a file is part of this package, or of a library that only it calls."""
    return filename.startswith((_OWN, GENERATED)) or any(part in filename for part in _LIBRARIES)
