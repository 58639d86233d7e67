"""Where a program spends its time: its stacks, looked at many times a second.

`with sampling() as profile:` watches the thread that enters it. Out: a `Profile`: seconds by kind of work and by line of the
program, and a tree of calls for a flame graph. A thread that looks can only do so when the interpreter lets it, so each look
counts the time since the one before. What always holds: the program itself is not changed, and seconds add up to the whole.
"""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ..core import events

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
MACHINERY = (PACKAGE + "cli" + os.sep, PACKAGE + "report" + os.sep, PACKAGE + "__main__.py")
COMMAND = os.path.join(sysconfig.get_path("scripts"), "pullback")
STARTING = ("<frozen runpy>", "<frozen importlib", os.path.join(os.path.dirname(os.__file__), "runpy.py"), COMMAND)
LIBRARIES = (os.path.dirname(os.__file__) + os.sep, "<")  # the standard library, and code that no file has
INSTALLED = f"{os.sep}site-packages{os.sep}"
ENGINE = (*[f"autograd{os.sep}{part}" for part in ("engine", "hook_calls", "accumulation")], f"backward{os.sep}")
INTERVAL = 0.002
KINDS = ("operators", "operators in backward", "engine", "native code", "optimizer", "data loading", "compiling", "Python")  # fmt: skip


Stack = list[tuple[FrameType, bool]]


@dataclass
class Call:
    """A node of the tree: seconds in it and below."""

    name: str
    seconds: float = 0.0
    kind: str = ""
    inside: dict[str, Call] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        children = sorted(self.inside.values(), key=lambda c: -c.seconds)
        return {
            "name": self.name, "seconds": self.seconds, "kind": self.kind, "inside": [c.as_data() for c in children],
        }  # fmt: skip


@dataclass
class Profile:
    """`by_kind` and `by_line` (file, line, function) hold seconds; `root` is the tree."""

    seconds: float = 0.0
    looks: int = 0
    by_kind: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    by_line: defaultdict[tuple[str, int, str], float] = field(default_factory=lambda: defaultdict(float))
    root: Call = field(default_factory=lambda: Call("all"))

    def add(self, frame: FrameType | None, seconds: float) -> None:
        """Count a look at a stack."""
        frames = program_frames(frame)
        kind = kind_of(frames)
        self.seconds += seconds
        self.looks += 1
        self.by_kind[kind] += seconds
        others = [f for f, ours in reversed(frames) if not ours]
        theirs = next((f for f in others if not _is_library(f)), others[0] if others else None)
        if theirs is not None:  # a line that calls NumPy, not a line of NumPy
            self.by_line[theirs.f_code.co_filename, theirs.f_lineno, theirs.f_code.co_qualname] += seconds
        self._into_tree(frames, kind, seconds)

    def _into_tree(self, frames: Stack, kind: str, seconds: float) -> None:
        at = self.root
        at.seconds += seconds
        ours_before = False
        for f, ours in frames:
            if ours and ours_before:
                continue  # of the package, only the call that enters it
            ours_before = ours
            where = "" if ours else f" ({os.path.basename(f.f_code.co_filename)}:{f.f_lineno})"
            name = f.f_code.co_qualname + where
            at = at.inside.setdefault(name, Call(name))
            at.seconds += seconds
        leaf = at.inside.setdefault(kind, Call(kind, kind=kind))
        leaf.seconds += seconds


def program_frames(frame: FrameType | None) -> Stack:
    """A stack, outermost first, from the program's first frame on; each with whether it is the package's doing.

    What a library does because the package called it is the package's; a hook that the engine calls is the program's.
    """
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    found: Stack = []
    ours = False
    for f in reversed(frames):
        file = f.f_code.co_filename
        if file.startswith(MACHINERY) or not found and file.startswith(STARTING):
            continue
        ours = _is_own(f) or ours and _is_library(f)
        found.append((f, ours))
    return found


def _is_own(frame: FrameType) -> bool:
    """Whether a frame is the package's, code that it generated included."""
    file = frame.f_code.co_filename
    return file.startswith(PACKAGE) or file.startswith("<") and frame.f_globals.get("__name__", "") != "__main__"


def _is_library(frame: FrameType) -> bool:
    """Whether a frame is of Python or of a package that is installed."""
    file = frame.f_code.co_filename
    return file.startswith(LIBRARIES) or INSTALLED in file


def kind_of(frames: Stack) -> str:
    """What a stack is doing: one of `KINDS`."""
    if events.is_compiling():
        return "compiling"
    files = [f.f_code.co_filename.removeprefix(PACKAGE) for f, ours in frames if ours]
    if any(f.startswith(f"utils{os.sep}data") for f in files):
        return "data loading"
    if not frames or not frames[-1][1]:
        return "Python"
    if files[-1] == "<native call>":
        return "native code"
    if files[-1].startswith(ENGINE):
        return "engine"
    if any(f.startswith(f"optim{os.sep}") for f in files):
        return "optimizer"
    return "operators in backward" if any(f.startswith(ENGINE) for f in files) else "operators"


class Sampler(threading.Thread):
    """Looks at one thread until it is told to stop."""

    def __init__(self, profile: Profile):
        super().__init__(name="pullback-profile", daemon=True)
        self.profile, self.watched, self.done = profile, threading.get_ident(), threading.Event()

    def run(self) -> None:
        before = time.perf_counter()
        while not self.done.wait(INTERVAL):
            frame = sys._current_frames().get(self.watched)
            now = time.perf_counter()
            if frame is not None:
                self.profile.add(frame, now - before)
            before = now
            del frame


@contextlib.contextmanager
def sampling() -> Iterator[Profile]:
    """Watch this thread."""
    profile = Profile()
    sampler = Sampler(profile)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(INTERVAL)
    with events.listening(lambda kind, facts: None):  # so that stages of compiling are known
        sampler.start()
        try:
            yield profile
        finally:
            sampler.done.set()
            sampler.join()
            sys.setswitchinterval(interval)
