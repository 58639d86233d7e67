"""C++ sources to a shared library, by the machine's own compiler.

In: sources, flags, a folder. Out: the path of a library that Python can load, made once for each content: the hash of the
sources, what they include, the flags, the compiler and these headers is kept beside it. A library that is there is never written over (a
process may have it loaded); the next content gets the next name. Files appear whole or not at all.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

HEADERS = Path(__file__).parent / "include"
STANDARD = "-std=c++17"
# Symbols are kept inside: two libraries of one process may have been built from different headers.
FLAGS = ("-O2", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden")


class CompileError(RuntimeError):
    """The compiler refused a source."""


def cache_root() -> Path:
    """Where what is built is kept: TORCH_EXTENSIONS_DIR, or a folder of the user's cache."""
    chosen = os.environ.get("TORCH_EXTENSIONS_DIR")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pullback_extensions" / f"py{sys.version_info.major}{sys.version_info.minor}_cpu"


def cxx_compiler() -> str:
    """The C++ compiler's command: CXX, or the first there is."""
    return os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), "c++")


def found_compiler() -> list[str]:
    """The compiler's command as words; raises where there is none."""
    words = shlex.split(cxx_compiler())
    if not words or shutil.which(words[0]) is None:
        raise RuntimeError(
            f"C++ extensions need a C++ compiler, and none was found (looked for {cxx_compiler()!r}): install g++ or clang++, or "
            "set CXX to the compiler's command"
        )
    return words


@functools.cache
def version_of(command: tuple[str, ...]) -> str:
    """What a compiler says of itself."""
    result = subprocess.run([*command, "--version"], capture_output=True, text=True)
    return result.stdout or result.stderr


@functools.cache
def own_headers() -> str:
    """The hash of the headers here."""
    digest = hashlib.sha256()
    for path in sorted(HEADERS.rglob("*.h")):
        digest.update(str(path.relative_to(HEADERS)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@functools.cache
def declarations() -> tuple[dict[str, str], str]:
    """(the headers that follow from the operators, their hash)."""
    from .declarations import headers

    texts = headers()
    return texts, hashlib.sha256("\0".join(texts.values()).encode()).hexdigest()[:16]


def declared_headers() -> Path:
    """The folder of those headers, written where they are not there yet."""
    texts, digest = declarations()
    folder = cache_root() / f"include-{digest}"
    for name, text in texts.items():
        path = folder / "pullback" / name
        if not path.exists():
            write_whole(path, text.encode())
    return folder


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that nobody sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(name, path)


def include_paths() -> list[str]:
    """Folders with the headers of extensions, ours and Python's."""
    return [str(HEADERS), str(declared_headers()), sysconfig.get_paths()["include"]]


def compile_flags(name: str, extra: list[str], include: list[str]) -> list[str]:
    """The flags of one translation unit. What users give comes last, and wins."""
    standard = () if any(f.startswith(("-std=", "--std=")) for f in extra) else (STANDARD,)
    folders = [f"-I{p}" for p in include] + [f"-isystem{p}" for p in include_paths()]
    return [f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H", *standard, *FLAGS, *folders, *extra]


def link_flags(extra: list[str]) -> list[str]:
    """The flags of the library. Where the compiler puts its own C++ library into it, as some do, nobody else sees that: the process has
    another one, and parts of both would be mixed."""
    if platform.system() == "Darwin":
        return ["-bundle", "-undefined", "dynamic_lookup", *extra]
    return ["-shared", "-Wl,--exclude-libs,ALL", *extra]


def fingerprint(sources: list[Path], command: list[str], flags: list[str], extra: list[str]) -> str:
    """What a library depends on, as a hash."""
    digest = hashlib.sha256()
    for part in (
        version_of(tuple(command)),
        own_headers(),
        *command,
        *flags,
        "|",
        *extra,
        sysconfig.get_config_var("EXT_SUFFIX"),
    ):
        digest.update(str(part).encode() + b"\0")
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()


def run(command: list[str], name: str, verbose: bool, folder: Path) -> None:
    """Run the compiler; what it says goes into the error."""
    if verbose:
        print(shlex.join(command), flush=True)
    result = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if verbose and (result.stdout or result.stderr):
        print(result.stdout + result.stderr, flush=True)
    if result.returncode:
        raise CompileError(f"Error building extension '{name}': {shlex.join(command)}\n{result.stdout}{result.stderr}")


def free_place(folder: Path, name: str, stamp: str) -> tuple[Path, bool]:
    """(where a library of this content is or goes, whether it is there): a changed one is NAME_v1.so, NAME_v2.so, ..."""
    number = 0
    while True:
        path = folder / f"{name if number == 0 else f'{name}_v{number}'}.so"
        if not path.exists():
            return path, False
        if is_current(path.with_suffix(".json"), stamp):
            return path, True
        number += 1


def is_current(note: Path, stamp: str) -> bool:
    """Whether a library is what would be built now: the same sources and flags, and the same files included."""
    try:
        said = json.loads(note.read_text())
        return said["stamp"] == stamp and all(hash_of(Path(p)) == h for p, h in said["included"].items())
    except (OSError, ValueError, KeyError):
        return False


def hash_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def included(rules: list[Path]) -> dict[str, str]:
    """Path -> hash of the files that sources include, by what the compiler wrote down; headers of the system are none."""
    words = [w for rule in rules for w in rule.read_text().replace("\\\n", " ").replace("\\ ", "\0").split()[2:]]
    paths = sorted({Path(w.replace("\0", " ")).resolve() for w in words})
    return {str(p): hash_of(p) for p in paths}


def build(
    name: str,
    sources: list[Path],
    folder: Path,
    *,
    cflags: list[str],
    ldflags: list[str],
    include: list[str],
    verbose: bool,
) -> Path:
    """The shared library of some sources, compiled now where it was not before."""
    command = found_compiler()
    flags, linking = compile_flags(name, cflags, include), link_flags(ldflags)
    stamp = fingerprint(sources, command, flags, linking)
    with alone_in(folder):
        path, there = free_place(folder, name, stamp)
        if there:
            if verbose:
                print(f"No modifications detected for extension module {name}, loading {path}", flush=True)
            return path
        if verbose:
            print(f"Building extension module {name} in {folder} ...", flush=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            result = Path(scratch) / path.name
            objects = [Path(scratch) / f"{i}_{s.stem}.o" for i, s in enumerate(sources)]
            rules = [o.with_suffix(".d") for o in objects]
            compiling = [
                [*command, *flags, "-MMD", "-MF", str(r), "-c", str(s), "-o", str(o)]
                for s, o, r in zip(sources, objects, rules, strict=True)
            ]
            compile_all(compiling, name, verbose, folder)
            run([*command, *map(str, objects), "-o", str(result), *linking], name, verbose, folder)
            note = json.dumps({"stamp": stamp, "included": included(rules)})
            os.replace(result, path)
        write_whole(path.with_suffix(".json"), note.encode())
        return path


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """A block in which no other process builds in a folder: whoever comes second finds what the first made."""
    with open(folder / "lock", "w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)  # let go when the file is closed, or with the process
        yield


def compile_all(commands: list[list[str]], name: str, verbose: bool, folder: Path) -> None:
    """Compile translation units side by side: MAX_JOBS of them at a time."""
    jobs = int(os.environ.get("MAX_JOBS") or os.cpu_count() or 1)
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for done in [pool.submit(run, c, name, verbose, folder) for c in commands]:
            done.result()
