"""Random programs from a seed.

The generator runs each statement as it chooses it, so that the next ones suit the tensors there are. A statement that
raises is dropped, save now and then, when it ends the program: what raises eagerly must raise in every form.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable

import pullback as torch

from .programs import Block, Line, Program
from .statements import CONTEXTS, KINDS, view_of

SHAPES = (
    (),
    (2,),
    (3,),
    (2, 3),
    (3, 2),
    (2, 2),
    (3, 3),
    (1, 3),
    (2, 1, 2),
    (2, 3, 2),
    (4,),
    (2, 2, 2),
    (0,),
    (3, 0),
    (1,),
    (4, 2),
)
DTYPES = ("float32",) * 6 + ("float64",) * 4 + ("int64", "bool", "complex64", "float32")
LARGEST = 1e4  # values beyond it are not worth comparing


class Generator:
    """Makes one program. `pick`, `tensor`, `assign` and the like are what statements ask it."""

    def __init__(self, seed: int, length: int = 9, keep_errors: float = 0.02):
        self.rng = random.Random(seed)
        self.seed, self.length, self.keep_errors = seed, length, keep_errors
        self.names: list[str] = []  # those that may be used now
        self.values: dict = {"torch": torch}
        self.made: list[Line] = []
        self.count = 0
        self.in_function = False
        self.ended = False  # whether the last statement raises

    # ---- what statements ask
    def choice(self, options):
        return self.rng.choice(options)

    def shuffled(self, values) -> list:
        out = list(values)
        self.rng.shuffle(out)
        return out

    def tensor(self, name: str):
        return self.values[name]

    @staticmethod
    def is_float(t) -> bool:
        return t.dtype.is_floating_point

    def pick(self, suits: Callable = lambda t: True) -> str | None:
        """A name of a tensor that suits, late ones more often."""
        found = [n for n in self.names if self._suits(suits, self.values[n])]
        return found[max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))] if found else None

    @staticmethod
    def _suits(suits: Callable, t) -> bool:
        try:
            return bool(suits(t))
        except RuntimeError:  # a view that autograd refuses to follow any further
            return False

    def pair(self) -> tuple:
        a = self.pick(self.is_float)
        return (a, self.fitting(a) or a) if a else (None, None)

    def fitting(self, a: str) -> str | None:
        """A tensor of the same type that broadcasts to the shape of another."""
        t = self.values[a]

        def fits(b) -> bool:
            lined = zip(reversed(b.shape), reversed(t.shape), strict=False)
            return b.dtype == t.dtype and b.dim() <= t.dim() and all(n in (1, m) for n, m in lined)

        return self.pick(fits)

    @staticmethod
    def shares(a, b) -> bool:
        return a.untyped_storage()._cdata == b.untyped_storage()._cdata

    def dim(self, a: str) -> int:
        return self.rng.randrange(self.values[a].dim())

    def fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def assign(self, text: str, count: int | None = None) -> str:
        """The text of an assignment to new names; a function to apply is written `#` behind its operand."""
        if "#" in text:
            operand, function = text.split("#")
            text = f"{function}({operand})"
        if count is None:
            return f"{self.fresh('v')} = {text}"
        names = ", ".join(self.fresh("v") for _ in range(count))
        return f"{names}{',' if count == 1 else ''} = {text}"

    # ---- making
    def run(self, line: Line) -> bool:
        """Whether a line runs, and gives values worth keeping."""
        try:
            exec(compile(line.text, "<statement>", "exec"), self.values)
            return all(self._sound(self.values[n]) for n in line.defines | line.uses)
        except Exception:
            return False

    def _sound(self, t) -> bool:
        if not isinstance(t, torch.Tensor):
            return callable(t)
        a = t.detach()
        return a.numel() == 0 or not self.is_float(a) or bool((a.abs() < LARGEST).all())

    def argument_lines(self) -> list[str]:
        """Lines that make one or a few arguments."""
        name, shape, dtype = self.fresh("a"), self.choice(SHAPES), self.choice(DTYPES)
        if dtype == "int64":
            return [f"{name} = torch.randint(0, 3, {shape})"]
        if dtype == "bool":
            return [f"{name} = torch.randn({shape}) > 0"]
        lines = [f"{name} = torch.randn({shape}, dtype=torch.{dtype})"]
        kind = self.rng.random()
        if kind < 0.25:
            lines.append(f"{name}.requires_grad_()")
        elif kind < 0.45:
            lines += [f"{name}.requires_grad_()", f"{self.fresh('a')} = {name} * 2"]
        return lines

    def make_arguments(self) -> list[str]:
        """The arguments: their names, in order."""
        names: list[str] = []
        for _ in range(self.rng.randint(1, 3)):
            lines = [Line(text) for text in self.argument_lines()]
            for line in lines:
                self.run(line)
            self.made += lines
            last = sorted(lines[-1].defines | lines[-1].uses, key=lambda n: int(n[1:]))[-1]
            names += self.relatives(last)
        if self.rng.random() < 0.25:
            names += self.statistics(names)
        if self.rng.random() < 0.08:
            line = Line(f"{self.fresh('a')} = {self.choice(names)}")
            self.run(line)
            self.made.append(line)
            names += line.defines
        return names

    def relatives(self, name: str) -> list[str]:
        """A tensor, views of it, or both, as arguments."""
        if self.rng.random() < 0.65:
            return [name]
        views = []
        for _ in range(self.rng.randint(1, 2)):
            text = name + view_of(self, name).replace(".data", ".detach()")  # whose writes would count apart
            line = Line(self.assign(text).replace("v", "a", 1))
            if self.run(line):
                self.made.append(line)
                views += line.defines
        return self.shuffled([*([name] if self.rng.random() < 0.5 else []), *views]) or [name]

    def statistics(self, names: list[str]) -> list[str]:
        """Running statistics that suit one of the arguments."""
        fits = [n for n in names if self.is_float(self.values[n]) and self.values[n].dim() in (2, 3)]
        if not fits:
            return []
        t = self.values[self.choice(fits)]
        result = []
        for function in ("zeros", "ones"):
            line = Line(f"{self.fresh('a')} = torch.{function}({t.shape[1]}, dtype={t.dtype})")
            self.run(line)
            self.made.append(line)
            result += line.defines
        return result

    def statements(self, length: int, depth: int = 0) -> list:
        out: list = []
        for _ in range(length):
            kind = self.rng.random()
            if self.ended:
                break
            if depth < 2 and kind < 0.07:
                out += self.context(depth)
            elif depth < 1 and kind < 0.10:
                out += self.function(depth)
            else:
                out += self.line()
        return out

    def line(self) -> list[Line]:
        """One more line, or none where nothing was found that runs."""
        for _ in range(4):
            kind = self.rng.choices([k for k, _ in KINDS], [w for _, w in KINDS])[0]
            try:
                text = kind(self)
            except RuntimeError:  # it looked at a view that autograd refuses to follow any further
                continue
            if text is None:
                continue
            line = Line(text)
            if self.run(line):
                self.names += sorted(line.defines, key=lambda n: int(n[1:]))
                return [line]
            if self.rng.random() < self.keep_errors:
                self.ended = True
                return [line]
        return []

    def context(self, depth: int) -> list[Block]:
        manager = self.choice(CONTEXTS)
        with eval(manager, {"torch": torch}):
            body = self.statements(self.rng.randint(1, 3), depth + 1)
        return [Block(f"with {manager}:", tuple(body))] if body else []

    def function(self, depth: int) -> list:
        """A function defined and called: its parameters are tensors, its result is one."""
        given = self.shuffled(self.names)[: self.rng.randint(1, 2)]
        name, parameters = self.fresh("g"), [self.fresh("p") for _ in given]
        outer, self.in_function = list(self.names), True
        for p, a in zip(parameters, given, strict=True):
            self.values[p] = self.values[a]
        self.names += parameters
        body = self.statements(self.rng.randint(1, 4), depth + 1)
        inside = [n for n in self.names if n not in outer]
        result, out = self.choice(inside), self.fresh("v")
        self.values[out] = self.values[result]
        self.names, self.in_function = [*outer, out], False
        head = f"def {name}({', '.join(parameters)}):"
        return [Block(head, (*body, Line(f"return {result}"))), Line(f"{out} = {name}({', '.join(given)})")]

    def choose_results(self, arguments: list[str]) -> list[str]:
        tensors = [n for n in self.names if n.startswith("v")]
        late = tensors[-6:]
        out = self.shuffled(late)[: self.rng.randint(1, 3)]
        for chance, extra in ((0.25, arguments), (0.15, tensors), (0.1, out)):
            if self.rng.random() < chance and extra:
                out.append(self.choice(extra))
        if self.rng.random() < 0.1 and out:
            out.append(
                self.choice(out) + self.choice((".detach()", "[...]", ".shape[0:1]", ".dim()", ".requires_grad"))
            )
        if self.rng.random() < 0.1:
            out.append(self.choice(("None", "3", "'text'", "2.5")))
        return self.shuffled(out)

    def program(self) -> Program:
        torch.manual_seed(self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arguments = self.make_arguments()
            self.names = list(dict.fromkeys(arguments))
            body = self.statements(self.rng.randint(2, self.length))
            return Program(
                self.seed, tuple(self.made), tuple(arguments), tuple(body), tuple(self.choose_results(arguments))
            )


def generate(seed: int, length: int = 9) -> Program:
    """The program of a seed, of up to so many statements."""
    return Generator(seed, length).program()
