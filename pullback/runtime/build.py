"""C source to a shared library, by whatever compiler this machine has.

In: source text and flags. Out: the path of a library, from the cache (see `cache`) where the same text was built before. `begin` lets
the compiler work while the caller does something else, and `together` lets several graphs do so: what is built inside is ready after it. The
compiler is `$CC`, else the first of cc, gcc and clang, else the one in the `ziglang` package. `NoCompiler` is raised where
there is none.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from .cache import cached, known, noted

COMMON = (
    "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-fopenmp-simd", "-std=gnu11", "-w", "-shared", "-fPIC",
)  # fmt: skip
# Loops say themselves what is to be vectorised, and functions are short: of what gcc does beyond -O1, fused products and sums are worth
# the time (they are among the expensive ones).
GCC = (
    "-O1", "-fexpensive-optimizations", "-ftree-loop-vectorize", "-fvect-cost-model=dynamic", "-fpeel-loops", "-fno-semantic-interposition",
)  # fmt: skip
CLANG = ("-O2",)
# Loops that read memory backwards. Where they read it forwards as well, gcc 12 counts by an address that never reaches the last one, and
# leaves the loop out.
BACKWARDS, COUNTED = re.compile(r"\*-\d+L"), ("-fno-ivopts",)
HOW = "Install gcc or clang, or `pip install ziglang`, or name a compiler in the environment variable CC"


T = TypeVar("T")


class NoCompiler(RuntimeError):
    """No C compiler was found."""


class CompileFailed(RuntimeError):
    """The compiler refused the source, or could not be run."""


@functools.lru_cache(maxsize=8)
def _find(named: str | None) -> tuple[str, ...]:
    if named is not None:
        words = shlex.split(named)
        if not words or shutil.which(words[0]) is None:
            raise NoCompiler(f"no C compiler: CC is {named!r}, which is not a program here. {HOW}")
        return tuple(words)
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path is not None:
            return (path,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise NoCompiler(f"no C compiler was found. {HOW}")


def compiler() -> tuple[str, ...]:
    """The command that compiles C."""
    return _find(os.environ.get("CC"))


@functools.lru_cache(maxsize=8)
def version(command: tuple[str, ...]) -> str:
    """What the compiler says it is: part of the key under which its work is kept. A program that has not changed is asked once, whatever
    the number of processes; of a command of several words not all is known, and it is asked by each."""
    program = Path(shutil.which(command[0]) or command[0])
    if len(command) > 1 or not program.exists():
        return _asked(command)
    found = program.stat()
    return noted("\0".join(map(str, (program.resolve(), found.st_size, found.st_mtime_ns))), lambda: _asked(command))


def _asked(command: tuple[str, ...]) -> str:
    try:
        shown = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
    except OSError as error:
        raise CompileFailed(f"{' '.join(command)}: {error}") from error
    return shown.stdout


@functools.cache
def processor() -> str:
    """What this CPU can do: code that was built for another may not run here."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return next(line for line in lines if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        return f"{platform.machine()} {platform.processor()}"


def build(source: str, flags: tuple[str, ...] = ()) -> Path:
    """The library of a C source."""
    return begin(source, flags)()


def begin(source: str, flags: tuple[str, ...] = ()) -> Callable[[], Path]:
    """Build a library in the background: what comes back waits for it, and raises what went wrong."""
    command = compiler()
    kind = CLANG if any(name in version(command).lower() for name in ("clang", "zig")) else GCC
    used = (*kind, *COMMON, *flags, *(COUNTED if kind is GCC and BACKWARDS.search(source) else ()))
    key = "\0".join((source, *used, *command, version(command), processor(), sys.platform))

    def make(folder: Path, target: Path) -> None:
        text = folder / "source.c"
        text.write_text(source, encoding="utf-8")
        try:
            done = subprocess.run(
                [*command, *used, "-o", str(target), str(text), "-lm"], capture_output=True, text=True, errors="replace"
            )
        except OSError as error:
            raise CompileFailed(f"{' '.join(command)}: {error}") from error
        if "No space left on device" in done.stderr:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        if done.returncode:
            raise CompileFailed(f"{' '.join(command)} failed ({done.returncode}):\n{done.stderr[:4000]}")

    with _lock:
        begun = _under_way.get(key)
        if begun is None and (found := known(key)) is not None:
            return lambda: found
        if begun is None:
            begun = _under_way[key] = Background(lambda: _limited(lambda: cached(key, make)))
    return lambda: _ended(key, begun)


_lock = threading.Lock()
_under_way: dict[str, Background[Path]] = {}  # what compilers work on: equal texts are built once
_compilers = threading.BoundedSemaphore(max(os.cpu_count() or 1, 2))  # that work at the same time


def _limited(call: Callable[[], Path]) -> Path:
    with _compilers:
        return call()


def _ended(key: str, begun: Background[Path]) -> Path:
    try:
        return begun.result()
    finally:
        with _lock:
            if _under_way.get(key) is begun:
                del _under_way[key]


class Background(Generic[T]):
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], T]):
        self.call = call
        self.found: list[T] = []
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self.run, name="pullback-build")
        self.thread.start()

    def run(self) -> None:
        try:
            self.found.append(self.call())
        except Exception as error:  # raised where the result is asked for
            self.error = error

    def result(self) -> T:
        """What it gave, or raised, when it is over."""
        self.thread.join()
        if isinstance(self.error, OSError):
            raise CompileFailed(f"a library cannot be written: {self.error}") from self.error
        if self.error is not None:
            raise self.error
        return self.found[0]


class _Waiting(threading.local):
    """What a thread has put off."""

    calls: list[Callable[[], None]] | None = None


_waiting = _Waiting()


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Put off inside what `afterwards` is given, so that compilers that were begun work at the same time."""
    if _waiting.calls is not None:
        yield
        return
    calls = _waiting.calls = []
    try:
        yield
    finally:
        _waiting.calls = None
    for call in calls:
        call()


def afterwards(call: Callable[[], None]) -> None:
    """Call now, or at the end of `together`."""
    if _waiting.calls is None:
        call()
    else:
        _waiting.calls.append(call)
