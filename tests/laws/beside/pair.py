"""Two libraries that run one program, statement by statement, and are compared after each.

Comes in: lines of text. Goes out: `Different`, with words, where what they show differs; `Chosen` where the difference is one
that `choices` names. What always holds: a statement that raises in both raises the same class, and leaves both as they are seen
to be alike.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.laws.beside import look
from tests.laws.beside.choices import answered
from tests.laws.beside.namespace import namespace

WRITES = re.compile(r"out=|inplace=True|\] = |[+*]=|backward|autograd\.grad|[a-z]_(\.\w+)?\(")
MARGIN = 1e6  # roundings that results of ill-conditioned calls may differ by, in units of those of others


class Different(Exception):
    """Both libraries ran a statement, and what is seen is not the same."""


class Ended(Exception):
    """There is nothing more to compare."""


class Chosen(Exception):
    """The libraries differ as `choices` says."""


@dataclass
class Held:
    """A tensor that the program has a name for."""

    text: str
    ours: object
    theirs: object
    seen: tuple = ()
    versions: tuple[int, int] = (0, 0)
    derived: bool = False  # what a transform or a gradient gave: how that lies in memory is each library's own


def _without_nodes(text: str) -> str:
    """A printed tensor without the name of its node, which is each library's own."""
    return re.sub(r",\s+grad_fn=<\w+>", ", grad_fn", text)  # on the line or the next, as long as it is


class Pair:
    """A program under way."""

    def __init__(self, other: str, arrays: list, compiles: bool = True):
        self.torch = importlib.import_module(other)
        self.pullback = importlib.import_module("pullback")
        self.torch.set_grad_enabled(True)  # some errors leave PyTorch without
        self.ours = namespace("pullback", arrays, compiles)
        self.theirs = namespace(other, arrays, False)
        self.lines: list[str] = []
        self.held: list[Held] = []
        self.slack = 1.0
        self.errors: list[str] = []
        self.derived = self.signs = False

    # ---- running
    def run(
        self,
        line: str,
        bound: str = "",
        numbers: bool = True,
        seed: int | None = None,
        derived: bool = False,
        signs: bool = False,
    ) -> bool:
        """Run one line in both; whether it ran. `bound` is the name that it gives a value; `signs`, whether those of zeros count."""
        self.derived, self.signs = derived, signs
        self.lines.append(line)
        code = compile(line, "<program>", "exec")
        ours = self._execute(code, self.pullback, self.ours, seed)
        theirs = self._execute(code, self.torch, self.theirs, seed)
        if type(theirs).__name__ not in [c.__name__ for c in type(ours).__mro__]:
            if reason := answered(self.lines, ours, theirs, self._empty(), self._single()):
                raise Chosen(reason)
            raise Different(f"raised {ours!r} and {theirs!r}")
        if ours is not None:
            self.errors.append(f"{type(ours).__name__}: {ours}")
            if WRITES.search(self._text_of(line)):  # what was done before the error is each library's own
                raise Ended
        elif bound:
            self._bind(bound, self.ours[bound], self.theirs[bound])
        self.compare(numbers)
        return ours is None

    def _text_of(self, line: str) -> str:
        """A statement with the functions that it calls."""
        called = re.findall(r"\(f(\d+)\)", line)
        return "\n".join(
            [line, *[t for t in self.lines if any(t.startswith((f"f{n} = ", f"def f{n}(")) for n in called)]]
        )

    def _execute(self, code, torch, names: dict, seed: int | None) -> Exception | None:
        if seed is not None:
            torch.manual_seed(seed)
        try:
            exec(code, names)
        except Exception as error:
            return error
        return None

    def _bind(self, text: str, ours, theirs) -> None:
        if isinstance(ours, list | tuple):
            if not isinstance(theirs, list | tuple) or len(ours) != len(theirs):
                raise Different(f"{text}: {ours!r} != {theirs!r}")
            for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
                self._bind(f"{text}[{i}]", a, b)
        elif (
            (ours is None or theirs is None) and self.derived and not self._nonzero(ours) and not self._nonzero(theirs)
        ):
            if ours is not theirs:
                raise Chosen("gradients that are zero, or none")
        elif isinstance(ours, self.pullback.Tensor):
            if not isinstance(theirs, self.torch.Tensor):
                raise Different(f"{text}: {ours!r} != {theirs!r}")
            if look.is_unreal(theirs) and not ours.count_nonzero():
                raise Chosen("tensors of zeros without memory, which PyTorch gives for tangents")
            given = any(h.derived and self._root(h.ours) is self._root(ours) for h in self.held)  # a view of a gradient
            self.held.append(Held(text, ours, theirs, derived=self.derived or given))
        elif callable(ours):
            pass
        elif isinstance(ours, float) and isinstance(theirs, float):
            room = max(1e-6 * abs(ours), self._room())
            if not (abs(ours - theirs) <= room or ours == theirs or ours != ours and theirs != theirs):
                raise Different(f"{text}: {ours!r} != {theirs!r}")
        elif ours is not theirs and isinstance(ours, bool) and isinstance(theirs, bool) and self._is_edge():
            raise Chosen("the sign of a sum that is a rounding")
        elif _without_nodes(str(ours).replace("pullback", "torch")) != _without_nodes(str(theirs)):
            raise Different(f"{text}: {ours!r} != {theirs!r}")

    def _room(self) -> float:
        """How far a number may lie from another that was read off the same tensors: by the roundings of their sums."""
        named = [h.ours for h in self.held if h.text in self.lines[-1] and h.ours.is_floating_point()]
        return max((float(t.detach().double().abs().nansum()) * look.roundings(t) for t in named), default=0.0)

    def _is_edge(self) -> bool:
        """Whether a question was about the sign of a sum that is zero up to roundings."""
        asked = re.search(r"bool\((.+)\.sum\(\) > 0\)", self.lines[-1])
        summed = [h.ours for h in self.held if asked and h.text == asked[1]]
        return any(abs(float(t.detach().double().sum())) <= self._room() for t in summed)

    def _empty(self) -> bool:
        return any(not h.ours.numel() or not h.ours.ndim for h in self.held)

    def _single(self) -> bool:
        return any(1 in h.ours.shape or not h.ours.ndim for h in self.held)

    def _nonzero(self, value) -> bool:
        return value is not None and bool(value.count_nonzero())

    # ---- comparing
    def compare(self, numbers: bool = True) -> None:
        """Every tensor that has a name, and its gradient."""
        if self.ours["log"] != self.theirs["log"]:
            raise Different(f"log: {self.ours['log']} != {self.theirs['log']}")
        if not self.pullback.is_grad_enabled():
            raise Different("gradients are off")
        for held in self.held:
            seen = self._compare(held.text, held.ours, held.theirs, held.seen, numbers, held.derived)
            written = look.written(held.ours), look.written(held.theirs)
            if not held.seen:
                held.versions = written
            elif "out=" in self.lines[-1]:  # composed calls write their results more than once
                held.versions = written
            elif written[0] - held.versions[0] != written[1] - held.versions[1]:
                raise Different(
                    f"{held.text}: version {held.versions[0]} -> {written[0]} and {held.versions[1]} -> {written[1]}"
                )
            if held.ours.requires_grad and held.ours.is_leaf:
                a, b = held.ours.grad, held.theirs.grad
                if (a is None) != (b is None):
                    if not self._nonzero(a) and not self._nonzero(b):
                        raise Chosen("gradients that are zero, or none")
                    raise Different(f"{held.text}.grad: {a!r} != {b!r}")
                if a is not None:
                    self._compare(f"{held.text}.grad", a, b, (), numbers, True)
            held.seen = seen

    def _compare(self, text: str, ours, theirs, seen: tuple, numbers: bool, derived: bool) -> tuple:
        try:
            a, b = look.facts(ours, derived), look.facts(theirs, derived)
        except RuntimeError as error:  # of a view whose base was written where that is forbidden
            raise Chosen("views that may no longer be asked for their history") from error
        if not derived:
            a, b = (*a, self._shared(ours, "ours")), (*b, self._shared(theirs, "theirs"))
        if a != b:
            self._excuse(text, a, b, derived)
        now = (*a, look.written(ours))
        if numbers and now != seen:
            left, right = self._numbers(self.pullback, ours), self._numbers(self.torch, theirs)
            if isinstance(left, str) or isinstance(right, str):
                if left == right:
                    return now
                raise Different(f"{text}: {left} != {right}")
            if found := look.differ(a[0], left, right, self.slack, self.signs):
                raise Different(f"{text} ({a[0]}): {found}")
            if left.dtype.kind in "fc" and left.tobytes() != right.tobytes():
                look.settle(self.torch, theirs, left)
        return now

    def _numbers(self, torch, t):
        """The numbers of a tensor, or the name of the error that reading them raises."""
        try:
            return look.numbers(torch, t)
        except (NotImplementedError, RuntimeError) as error:
            return type(error).__name__

    def _excuse(self, text: str, a: tuple, b: tuple, derived: bool) -> None:
        """Raise for facts that differ, but for those that are each library's own."""
        same = [x == y for x, y in zip(a, b, strict=True)]
        if derived and all(same[:2]):
            if a[2] and not b[2] and not any(h.ours.requires_grad and h.ours.is_leaf for h in self.held):
                raise Different(f"{text}: {look.words(a, b)}")
            raise Chosen("whether a gradient depends on anything")
        if not derived and all(same[:6]) and all(same[7:]) and look.lie_alike(a[1], a[6], b[6]):
            raise Chosen("strides of dimensions of one element")
        if not derived and all(same[:6]) and (a[-1] == b[-1] == text or 0 in a[1]):
            raise Chosen("in which order the elements of a new tensor lie in memory")
        raise Different(f"{text}: {look.words(a, b)}")

    def _shared(self, t, side: str) -> str:
        """The first tensor of the program that has the memory of this one, as far as views tell."""
        root = self._root(t)
        return next((h.text for h in self.held if self._root(getattr(h, side)) is root), "")

    def _root(self, t):
        return t if t._base is None else t._base


def judged(drawn, counts: Counter, chosen: Callable[[list[str], str], str | None], show: bool = False) -> str | None:
    """Run a program that is drawn as it runs; words about the first difference, with its text, unless it is `chosen` for a reason,
    which is counted."""
    words = None
    try:
        drawn.run()
    except Different as different:
        words = str(different)
        if reason := chosen(drawn.pair.lines, words):
            counts[reason] += 1
            words = None
    except Chosen as reason:
        counts[str(reason)] += 1
    lines = drawn.pair.lines
    counts["statements"] += len(lines)
    counts["raised"] += len(drawn.pair.errors)
    if not (show or words):
        return None
    return "\n".join([f"seed {drawn.seed}", *lines, f"-> {words or 'the same'}"])
