"""Built libraries on disk, by the content they were built from.

In: a key (everything that the result depends on) and how to make it. Out: the path of a finished file. An entry appears by one
rename, so whoever else runs at the same time sees all of it or nothing; beside it lies a checksum, and an entry that does not
match it is made again. The folder is `$PULLBACK_CACHE`, else the user's cache folder; where neither can be written, a
temporary one of this process.

What always holds: code that is executed comes from folders of this user alone, to which nobody else can write; another folder
is refused with a warning, and the temporary one is used. All entries together stay below `LIMIT` bytes, about: those that were
not used for longest go first. Where the disk is full, a warning says so and the temporary folder is tried.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

SUFFIX = ".so"
LIMIT = 1 << 29  # bytes of all libraries
BUILDS_BETWEEN_LOOKS = 64  # at the size of the folder

_builds = 0
_refused: set[str] = set()


@functools.cache
def _temporary() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="pullback-")


def folder() -> Path:
    """Where libraries are kept."""
    named = os.environ.get("PULLBACK_CACHE")
    base = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pullback"
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(base, os.W_OK) and is_private(base):
            return base
    except OSError:
        pass
    return Path(_temporary().name)


def is_private(place: Path) -> bool:
    """Whether a folder is this user's and nobody else can write to it; where not, a warning says so once."""
    if not hasattr(os, "getuid"):  # no owners and modes to look at
        return True
    found = place.stat()
    if found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return True
    if str(place) not in _refused:
        _refused.add(str(place))
        warnings.warn(
            f"compile: the cache folder {place} belongs to user {found.st_uid} with mode {stat.S_IMODE(found.st_mode):04o}: others "
            f"could put code there that would be executed. It is not used; a private folder of this process is. Expected: user "
            f"{os.getuid()}, mode 0700 (chmod 700)",
            RuntimeWarning,
            stacklevel=3,
        )
    return False


def cached(key: str, make: Callable[[Path, Path], None]) -> Path:
    """The file of a key. `make(folder, target)` writes it at `target`; `folder` is a scratch one."""
    base = folder()
    try:
        return _cached_in(base, key, make)
    except OSError as error:
        other = Path(_temporary().name)
        if other == base:
            raise
        warnings.warn(
            f"compile: nothing can be kept in the cache folder {base}: {error}; {other} is used for now",
            RuntimeWarning,
            stacklevel=3,
        )
        return _cached_in(other, key, make)


def noted(key: str, ask: Callable[[], str]) -> str:
    """A short text of a key: what `ask` gave the first time, in this process or another."""

    def make(folder: Path, target: Path) -> None:
        target.write_text(ask(), encoding="utf-8")

    return cached("noted\0" + key, make).read_text(encoding="utf-8")


def known(key: str) -> Path | None:
    """The file of a key, where it was made before."""
    entry, mark = _places(folder(), key)
    return entry if is_whole(entry, mark) and is_private(entry.parent) else None


def _places(base: Path, key: str) -> tuple[Path, Path]:
    """Where an entry and its checksum lie."""
    digest = hashlib.sha256(key.encode()).hexdigest()[:40]
    return base / digest[:2] / f"{digest}{SUFFIX}", base / digest[:2] / f"{digest}.sum"


def _cached_in(base: Path, key: str, make: Callable[[Path, Path], None]) -> Path:
    entry, mark = _places(base, key)
    home = entry.parent
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private(home):
        home = Path(_temporary().name)
        entry, mark = home / entry.name, home / mark.name
    if is_whole(entry, mark):
        return entry
    with tempfile.TemporaryDirectory(dir=home) as scratch:
        target = Path(scratch) / "made"
        make(Path(scratch), target)
        text = Path(scratch) / "sum"
        text.write_text(checksum(target), encoding="ascii")
        os.replace(target, entry)  # first the library: a mark without it, or with another, means "make again"
        os.replace(text, mark)
    _look_at_size(base, entry)
    return entry


def is_whole(entry: Path, mark: Path) -> bool:
    """Whether an entry is there and is what was written; it counts as used now."""
    try:
        whole = mark.read_text(encoding="ascii") == checksum(entry)
        if whole:
            os.utime(mark)
        return whole
    except (OSError, UnicodeDecodeError):
        return False


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _look_at_size(base: Path, entry: Path) -> None:
    """Bound the folder now and then: at the first build of a process, and after every few more."""
    global _builds
    _builds += 1
    if _builds % BUILDS_BETWEEN_LOOKS == 1:
        try:
            bound(base, LIMIT, entry)
        except OSError:  # somebody else is at it too
            pass


def bound(base: Path, limit: int, kept: Path) -> None:
    """Remove the entries that were not used for longest until the rest fits in a limit; `kept` stays."""
    marks = [(mark.stat().st_mtime, mark) for mark in base.glob("??/*.sum")]
    sizes = {mark: mark.with_suffix(SUFFIX).stat().st_size for _, mark in marks if mark.with_suffix(SUFFIX).exists()}
    total = sum(sizes.values())
    for _, mark in sorted(marks):
        if total <= limit:
            return
        if mark.with_suffix(SUFFIX) != kept:
            mark.unlink(missing_ok=True)  # first the mark: a library without one is made again
            mark.with_suffix(SUFFIX).unlink(missing_ok=True)
            total -= sizes.get(mark, 0)
