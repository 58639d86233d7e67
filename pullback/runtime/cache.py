"""Built libraries on disk, by the content they were built from.

In: a key (everything that the result depends on) and how to make it. Out: the path of a finished file. An entry appears by one
rename, so whoever else runs at the same time sees all of it or nothing; beside it lies a checksum, and an entry that does not
match it is made again. The folder is `$PULLBACK_CACHE`, else the user's cache folder; where neither can be written, a
temporary one of this process.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

SUFFIX = ".so"


@functools.cache
def _temporary() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="pullback-")


def folder() -> Path:
    """Where libraries are kept."""
    named = os.environ.get("PULLBACK_CACHE")
    base = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pullback"
    try:
        base.mkdir(parents=True, exist_ok=True)
        if os.access(base, os.W_OK):
            return base
    except OSError:
        pass
    return Path(_temporary().name)


def cached(key: str, make: Callable[[Path, Path], None]) -> Path:
    """The file of a key. `make(folder, target)` writes it at `target`; `folder` is a scratch one."""
    digest = hashlib.sha256(key.encode()).hexdigest()[:40]
    home = folder() / digest[:2]
    entry, mark = home / f"{digest}{SUFFIX}", home / f"{digest}.sum"
    if is_whole(entry, mark):
        return entry
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        target = Path(scratch) / "made"
        make(Path(scratch), target)
        text = Path(scratch) / "sum"
        text.write_text(checksum(target), encoding="ascii")
        os.replace(target, entry)  # first the library: a mark without it, or with another, means "make again"
        os.replace(text, mark)
    return entry


def is_whole(entry: Path, mark: Path) -> bool:
    """Whether an entry is there and is what was written."""
    try:
        return mark.read_text(encoding="ascii") == checksum(entry)
    except (OSError, UnicodeDecodeError):
        return False


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
