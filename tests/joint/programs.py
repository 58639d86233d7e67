"""Programs as data: lines of Python that print as a script, run, and shrink.

A `Program` has lines that make its arguments, lines of its body (some in blocks), and the expressions it returns. Names
tell what a thing is: `a3` is made before the call (and is an argument if the function takes it), `v3` in the body, `g3`
is a nested function and `p3` its parameter. So what a line defines and uses can be read off its text, and dropping a
line drops whatever needs it. Whatever is dropped, a program stays a script that compiles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

NAME = re.compile(r"\b[avgp]\d+\b")
TARGETS = re.compile(r"^((?:[avgp]\d+, )*[avgp]\d+),? = ")
INDENT = "    "


@dataclass(frozen=True)
class Line:
    """One statement."""

    text: str

    @cached_property
    def defines(self) -> frozenset[str]:
        found = TARGETS.match(self.text)
        return frozenset(NAME.findall(found[1])) if found else frozenset()

    @cached_property
    def uses(self) -> frozenset[str]:
        found = TARGETS.match(self.text)
        return frozenset(NAME.findall(self.text[found.end() :] if found else self.text))

    def lines(self) -> Iterator[str]:
        yield self.text


@dataclass(frozen=True)
class Block:
    """Statements under a head: `with ...:` or `def g0(p0):` (which then ends in a `return` line)."""

    head: str
    body: tuple[Line | Block, ...]

    @property
    def is_function(self) -> bool:
        return self.head.startswith("def ")

    @cached_property
    def defines(self) -> frozenset[str]:
        if self.is_function:
            return frozenset(NAME.findall(self.head)[:1])
        return frozenset().union(*(s.defines for s in self.body))

    @cached_property
    def uses(self) -> frozenset[str]:
        inner = frozenset().union(*(s.defines for s in self.body)) | frozenset(NAME.findall(self.head))
        return frozenset().union(*(s.uses for s in self.body)) - inner

    def lines(self) -> Iterator[str]:
        yield self.head
        for statement in self.body or (Line("pass"),):
            for line in statement.lines():
                yield INDENT + line


Statement = Line | Block


@dataclass(frozen=True)
class Program:
    """A function, its arguments, and how they are made."""

    seed: int
    made: tuple[Line, ...] = ()  # what is made before the call
    arguments: tuple[str, ...] = ()
    body: tuple[Statement, ...] = ()
    results: tuple[str, ...] = ()

    def source(self) -> str:
        """A script that defines `make()`, which gives the arguments and everything that is watched, and `f`."""
        watched = [n for line in self.made for n in sorted(line.defines)]
        out = ["import pullback as torch", "", "", "def make():", f"{INDENT}torch.manual_seed({self.seed})"]
        out += [INDENT + line.text for line in self.made]
        out += [f"{INDENT}return [{', '.join(self.arguments)}], [{', '.join(watched)}]", "", ""]
        out += [f"def f({', '.join(self.arguments)}):"]
        out += [INDENT + text for s in self.body for text in s.lines()]
        results = ", ".join(self.results)
        out += [f"{INDENT}return [{results}]", ""]
        return "\n".join(out)

    def load(self, torch) -> tuple[Callable, Callable]:
        """`make` and `f`, on a library."""
        namespace = self.run(self.source().split("\n", 1)[1], torch)
        return namespace["make"], namespace["f"]

    def load_whole(self, torch) -> tuple[Callable, Callable]:
        """`roots`, which makes the tensors that are no views, and `whole`, which makes the views of them and calls `f`."""
        roots = [line for line in self.made if not is_view(line)]
        names = [n for line in roots for n in sorted(line.defines)]
        source = ["def roots():", f"{INDENT}torch.manual_seed({self.seed})", *[INDENT + line.text for line in roots]]
        source += [f"{INDENT}return [{', '.join(names)}]", f"def whole({', '.join(names)}):"]
        source += [INDENT + line.text for line in self.made if is_view(line)]
        source += [f"{INDENT}return f({', '.join(self.arguments)}), [{', '.join(self.arguments)}]"]
        namespace = self.run(self.source().split("\n", 1)[1] + "\n".join(source), torch)
        return namespace["roots"], namespace["whole"]

    def run(self, text: str, torch) -> dict:
        namespace: dict = {"torch": torch}
        exec(compile(text, f"<program {self.seed}>", "exec"), namespace)
        return namespace


def is_view(line: Line) -> bool:
    """Whether a line that makes an argument makes a view of another one, or its second name."""
    return bool(line.uses) and bool(line.defines) and not line.text.endswith(" * 2")


# ---- shrinking
def without(statements: tuple, path: tuple[int, ...], inline: bool = False) -> tuple:
    """Statements less the one at a path, or with a block there replaced by its body."""
    at, *rest = path
    chosen = statements[at]
    if rest:
        kept: tuple = (replace(chosen, body=without(chosen.body, tuple(rest), inline)),)
    else:
        kept = chosen.body if inline else ()
    return statements[:at] + kept + statements[at + 1 :]


def paths(statements: tuple, before: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Where statements are, the last ones first."""
    for i in reversed(range(len(statements))):
        yield (*before, i)
        if isinstance(statements[i], Block):
            yield from paths(statements[i].body, (*before, i))


def closed(statements: tuple, known: set[str]) -> tuple:
    """Statements that need nothing that is not there; `known` grows by what they define."""
    out = []
    for s in statements:
        if isinstance(s, Block):
            inside = known | set(NAME.findall(s.head)) if s.is_function else known
            body = closed(s.body, inside)
            if not body or s.is_function and not (isinstance(body[-1], Line) and body[-1].text.startswith("return")):
                continue
            s = replace(s, body=body)
        elif not s.uses <= known:
            continue
        known |= s.defines
        out.append(s)
    return tuple(out)


def repaired(program: Program) -> Program:
    """A program without what needs names that are gone, and without arguments that nothing needs."""
    known: set[str] = set()
    result = closed(program.made, known)
    arguments = tuple(a for a in program.arguments if a in known)
    known = set(arguments)
    body = closed(program.body, known)
    results = tuple(r for r in program.results if set(NAME.findall(r)) <= known)
    return replace(program, made=result, arguments=arguments, body=body, results=results)


def smaller(program: Program) -> Iterator[Program]:
    """Programs with one thing less."""
    for i in reversed(range(len(program.results))):
        yield replace(program, results=program.results[:i] + program.results[i + 1 :])
    for path in paths(program.body):
        yield replace(program, body=without(program.body, path))
        if isinstance(_at(program.body, path), Block) and not _at(program.body, path).is_function:
            yield replace(program, body=without(program.body, path, inline=True))
    for i in reversed(range(len(program.arguments))):
        yield replace(program, arguments=program.arguments[:i] + program.arguments[i + 1 :])
    for i in reversed(range(len(program.made))):
        yield replace(program, made=program.made[:i] + program.made[i + 1 :])


def _at(statements: tuple, path: tuple[int, ...]):
    at, *rest = path
    return statements[at] if not rest else _at(statements[at].body, tuple(rest))


def shrink(program: Program, fails: Callable[[Program], bool], tries: int = 600) -> Program:
    """The smallest program found that still fails, by dropping one thing at a time."""
    found = True
    while found and tries > 0:
        found = False
        for candidate in smaller(program):
            candidate = repaired(candidate)
            tries -= 1
            if candidate != program and fails(candidate):
                program, found = candidate, True
                break
            if tries <= 0:
                break
    return program
