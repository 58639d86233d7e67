"""`FileCheck`: patterns that a text must have, in order.

`FileCheck().check("a").check_not("b").check("c").run(text)`: each `check` is searched after the one before it; a
`check_not` must not be found between its neighbours.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class _Check(NamedTuple):
    kind: str  # as in the error: CHECK, CHECK-NOT, ...
    pattern: str
    times: int = 1
    exactly: bool = False

    def label(self) -> str:
        """How errors name the check."""
        if self.kind != "CHECK-COUNT":
            return self.kind
        return f"CHECK-COUNT-{'EXACTLY-' if self.exactly else ''}{self.times}"


class FileCheck:
    """A list of checks to run on a text."""

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def _add(self, *args) -> FileCheck:
        self._checks.append(_Check(*args))
        return self

    def check(self, pattern: str) -> FileCheck:
        """Must come next, anywhere after the last."""
        return self._add("CHECK", pattern)

    def check_not(self, pattern: str) -> FileCheck:
        """Must not come before the next."""
        return self._add("CHECK-NOT", pattern)

    def check_same(self, pattern: str) -> FileCheck:
        """Must come next, on the same line."""
        return self._add("CHECK-SAME", pattern)

    def check_next(self, pattern: str) -> FileCheck:
        """Must come next, on the next line."""
        return self._add("CHECK-NEXT", pattern)

    def check_count(self, pattern: str, count: int, exactly: bool = False) -> FileCheck:
        """Must come so many times, and if `exactly` no more."""
        return self._add("CHECK-COUNT", pattern, count, exactly)

    def check_dag(self, pattern: str) -> FileCheck:
        """Must come after the last, in any order with other `check_dag` next to it."""
        return self._add("CHECK-DAG", pattern)

    def check_regex(self, pattern: str) -> FileCheck:
        """A regular expression must come next."""
        return self._add("CHECK-REGEX", pattern)

    def check_source_highlighted(self, pattern: str) -> FileCheck:
        """Must come next, with a line of marks under it."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", pattern)

    def run(self, test_file: str) -> None:
        """Raise unless the text has all of it."""
        text, at, waiting = str(test_file), 0, []
        i = 0
        while i < len(self._checks):
            check = self._checks[i]
            if check.kind == "CHECK-NOT":
                waiting.append(check)
                i += 1
                continue
            group = [check]
            while check.kind == "CHECK-DAG" and i + len(group) < len(self._checks):
                following = self._checks[i + len(group)]
                if following.kind != "CHECK-DAG":
                    break
                group.append(following)
            spans = [_find(text, at, c) for c in group]
            _forbid(text, at, min(s for s, _ in spans), waiting)
            at, waiting = max(e for _, e in spans), []
            i += len(group)
        _forbid(text, at, len(text), waiting)


def _forbid(text: str, start: int, end: int, checks: list[_Check]) -> None:
    for check in checks:
        found = text.find(check.pattern, start, end)
        if found >= 0:
            raise RuntimeError(
                f'Expected to not find "{check.pattern}" but found it\n{_shown(text, found, len(check.pattern))}'
                f"From CHECK-NOT: {check.pattern}\n"
            )


def _find(text: str, at: int, check: _Check) -> tuple[int, int]:
    """Where a pattern is, from `at` on."""
    if check.kind == "CHECK-REGEX":
        match = re.compile(check.pattern, re.MULTILINE).search(text, at)
        return match.span() if match else _missing(text, check)
    if check.kind == "CHECK-COUNT":
        return _find_all(text, at, check)
    end = len(text)
    if check.kind in ("CHECK-SAME", "CHECK-NEXT"):
        line_end = text.find("\n", at)
        line_end = end if line_end < 0 else line_end
        if check.kind == "CHECK-NEXT":
            at = min(line_end + 1, end)
            following = text.find("\n", at)
            line_end = end if following < 0 else following
        end = line_end
    found = text.find(check.pattern, at, end)
    if found < 0:
        return _missing(text, check)
    stop = found + len(check.pattern)
    if check.kind == "CHECK-SOURCE-HIGHLIGHTED":
        stop = _check_marks(text, found, stop, check)
    return found, stop


def _find_all(text: str, at: int, check: _Check) -> tuple[int, int]:
    first, stop = -1, at
    for _ in range(check.times):
        found = text.find(check.pattern, stop)
        if found < 0:
            return _missing(text, check)
        first = found if first < 0 else first
        stop = found + len(check.pattern)
    if check.exactly:
        _forbid(text, stop, len(text), [check])
    return max(first, at), stop


def _check_marks(text: str, found: int, stop: int, check: _Check) -> int:
    line = text.rfind("\n", 0, found) + 1
    marks = text.find("\n", stop) + 1
    if not marks or set(text[marks + found - line : marks + stop - line]) != {"~"}:
        raise RuntimeError(f'Expected "{check.pattern}" to be highlighted but it is not\n{_shown(text, found, 1)}')
    end = text.find("\n", marks)
    return len(text) if end < 0 else end


def _missing(text: str, check: _Check):
    raise RuntimeError(
        f'Expected to find "{check.pattern}" but did not find it\nSearched string:\n{text}From {check.label()}: '
        f"{check.pattern}\n"
    )


def _shown(text: str, at: int, length: int) -> str:
    """The line of a place, with marks under it."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    return f"{text[start : len(text) if end < 0 else end]}\n{' ' * (at - start)}{'~' * length} <--- HERE\n"
