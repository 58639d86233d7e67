"""Random programs with objects of many kinds: numbers and sequences that are classes, leaves that the program makes, deques,
dataclasses, enumerations, descriptors, iterators that are read on, and methods as values."""

from __future__ import annotations

from tests.capture.python_programs import Generator

PRELUDE = """
import collections
import contextlib
import dataclasses
import enum
import itertools
import operator
import warnings


class Whole:
    def __init__(self, value):
        self.value, self.count = value, 0

    def __index__(self):
        self.count += 1
        LOG.append("index")
        return self.value

    def __float__(self):
        LOG.append("float")
        return self.value + 0.5

    def __round__(self, digits=0):
        LOG.append(("round", digits))
        return self.value

    def __neg__(self):
        return -self.value * 0.5


class Sequence:
    def __getitem__(self, i):
        LOG.append(("item", i))
        if i > 4:
            raise IndexError(i)
        return i * 0.5


class Reads:
    count = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.count += 1
        if self.count % 4 == 0:
            raise StopIteration
        return self.count * 0.25


@dataclasses.dataclass
class Data:
    a: float
    b: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        LOG.append("made")


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: float
    b: int = 1


class Color(enum.Enum):
    RED = 0.5
    BLUE = 1.5


class Table(dict):
    def __missing__(self, key):
        LOG.append(("missing", key))
        self[key] = 0.5
        return 0.5


class Many(list):
    def append(self, value):
        LOG.append("append")
        super().append(value)


@contextlib.contextmanager
def opened(value):
    LOG.append("opened")
    try:
        yield value
    finally:
        LOG.append("closed")


WHOLE, READS, QUEUE, MADE, MANY, LEFT = Whole(1), Reads(), collections.deque([0.5, 1.0], maxlen=4), Table(), Many([0.5]), iter([0.5] * 40)
"""
NUMBERS = [
    "items[WHOLE]", "float(WHOLE)", "round(WHOLE, 1)", "-WHOLE", "operator.neg(WHOLE)", "float(len(range(WHOLE)))", "len(items[WHOLE:])",
    "WHOLE.count * 0.1", "float(0.5 in Sequence())", "float(0.5 in READS)", "READS.count * 0.1", "float(1.5 in gen(4, LOG))", "sum(READS)",
    "QUEUE[0]", "QUEUE[-1]", "float(len(QUEUE))", "float(0.5 in QUEUE)", "sum(QUEUE)", "Data({n}).a", "float(Frozen({c}) < Frozen({n}))", "Color(0.5).value",
    "Color.RED.value", "float(Color.BLUE in list(Color))", "MADE[{i}]", "MADE.get({i}, {c})", "float(hash(box.method) == hash(box.method))",
    "float([helper, box.method].index(helper))", "float((helper, 1) in {{(helper, 1): 2}})", "next(LEFT, {c})", "float(box.method == box.method)",
    "float(len(MANY))", "collections.Counter(items[:2]).most_common(1)[0][1] * 0.5", "list(itertools.accumulate(items[:3]))[-1]",
    "dataclasses.replace(Frozen({c}), b={i}).b * 0.5", "functools.reduce(operator.add, items[:2])", "dict(a={n})['a']", "max(items[:2], key=lambda v: -v)",
    "list(itertools.chain(items[:1], gen(1)))[-1]", "[*zip(items, gen(2))][0][1]", "divmod({n}, 2)[1]", "min(gen(3), default=2)",
]  # fmt: skip
EFFECTS = [
    "QUEUE.append({n})", "QUEUE.appendleft({c})", "QUEUE.rotate(1)", "LOG.append(QUEUE.popleft() if len(QUEUE) > 1 else None)", "QUEUE.extend([{c}, {c}])",
    "MADE[{i}] = {n}", "LOG.append(sorted(MADE))", "MANY.append({c})", "MANY[0] = {n}", "LOG.append(dataclasses.astuple(Data({c}, [1])))",
    "box.data = Data({n})", "LOG.append(getattr(box, 'data', None))", "LOG.append(list(itertools.islice(LEFT, 2)))", "items[WHOLE] = min({n}, 2.0)",
    "LOG.extend(itertools.takewhile(lambda v: v < 2, gen(4, LOG)))", "LOG.append(Color.RED.name)", "box.held.append(Frozen({c}))", "WHOLE.value = {i} - 2",
    "QUEUE.clear(); QUEUE.append({c})", "MADE.pop({i}, None)", "LOG.append(repr(Frozen({c})))", "box.method_of = box.method; LOG.append(box.method_of({c}))",
    "LOG.append([k for k, _ in itertools.groupby(items)])", "LOG.append(f'{{Color.RED}} {{{c}:.1f}}')",
]  # fmt: skip
TENSORS = [
    "torch.nn.Parameter({t}.detach())", "({t}.detach() * 2).requires_grad_()", "torch.nn.Parameter({t}.detach(), requires_grad=False) * {n}",
    "torch.zeros_like({t}, requires_grad=True) + {u}", "sum([{t}, {u}])", "functools.reduce(torch.add, [{t}, {u}])", "{t} * QUEUE[0]",
    "Data({t}).a", "{t}[: max(len({t}), WHOLE.value)]", "max([{t}, {u}], key=lambda v: 1.0)",
]  # fmt: skip


class Objects(Generator):
    def number(self, depth: int = 2) -> str:
        return self.fill(self.pick(NUMBERS), depth) if self.random.random() < 0.5 else super().number(depth)

    def effect(self, depth: int) -> list[str]:
        return [self.fill(self.pick(EFFECTS))] if self.random.random() < 0.6 else super().effect(depth)

    def compute(self, depth: int) -> list[str]:
        if self.random.random() < 0.7:
            return super().compute(depth)
        self.made += 1
        line = f"t{self.made} = {self.fill(self.pick(TENSORS))}"
        self.tensors.append(f"t{self.made}")
        return [line]

    def context(self, depth: int) -> list[str]:
        if self.random.random() < 0.5:
            return super().context(depth)
        if self.random.random() < 0.4:
            action = self.pick(["ignore", "error"])
            inside = [
                f"    warnings.simplefilter({action!r})",
                *self.block(depth - 1),
                "    warnings.warn('given')",
                "    LOG.append('given')",
            ]
            block = ["    with warnings.catch_warnings():", *("    " + line for line in inside)]
            return ["try:", *block, "except UserWarning as e:", "    LOG.append(str(e))"]
        block = self.pick(["opened({c}) as m", "contextlib.suppress(ValueError)", "contextlib.nullcontext({c}) as m"])
        error = self.pick([[], ["    raise ValueError('inside')"]]) if "suppress" in block else []
        return [f"with {block.format(c=self.constant())}:", *self.block(depth - 1), *error]

    def program(self) -> str:
        leaf = self.random.random() < 0.3
        text = super().program().replace("def program(", PRELUDE + "\n\ndef program(", 1)
        return (
            text.replace(
                "    n = 1.0\n", "    n = 1.0\n    LOG.append((*QUEUE, WHOLE.count, READS.count, len(MADE)))\n", 1
            )
            if leaf
            else text
        )
