"""Random programs with much Python in them: `generate(seed)` gives the source of one, the same for the same seed.

A program defines `program(x, box, items, step)` and `change(step, world)`, which changes, before each call, what the
program reads: attributes, items, globals, classes, modules, hooks. Everything it does leaves a trace in LOG, in objects,
in gradients or in what is printed.
"""

from __future__ import annotations

import random

PRELUDE = """
import functools

import pullback as torch

KEPT = []  # functions and modules that earlier calls made
G = 1.5
TABLE = {"k": 0.5}
LOG = []


class Descriptor:
    def __get__(self, obj, cls):
        return 0.25 if obj is None else obj.v * 0.5

    def __set__(self, obj, value):
        obj.v = value * 2


class Base:
    rate = 0.75

    def method(self, a=1.0):
        return self.v * a + self.rate


class Box(Base):
    described = Descriptor()

    def __init__(self, v):
        self.v, self.count, self.held = v, 0, []

    @property
    def doubled(self):
        return self.v * 2

    @classmethod
    def shared(cls):
        return cls.rate

    def method(self, a=1.0):
        return super().method(a) * 0.5

    def __len__(self):
        return 2 + self.count

    def __getitem__(self, i):
        return (self.v, self.rate)[i]

    def __add__(self, other):
        return self.v + other


class Point:
    __slots__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


class Manager:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("in")
        return 0.5

    def __exit__(self, kind, value, traceback):
        self.log.append(("out", kind and kind.__name__))
        return self.swallow


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k * 2, None


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return -g


class Logged(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, log):
        ctx.log = log
        ctx.save_for_backward(x)
        log.append("forward")
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        ctx.log.append("backward")
        (x,) = ctx.saved_tensors
        return g * x.cos(), None


class Global(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        Global.calls += 1
        return x * G

    @staticmethod
    def backward(ctx, g):
        LOG.append("global")
        return g * 3


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([0.5]))
        self.register_buffer("seen", torch.zeros(1))
        self.scale, self.calls = 1.0, 0

    def forward(self, x):
        self.calls += 1
        if self.training:
            self.seen += 1
        return x * self.weight * self.scale + self.seen * 0.125


MOD = Layer()


def helper(a, *rest, b=2.0, **named):
    return a * b + len(rest) + len(named)


def gen(n, log=None):
    for i in range(n):
        got = yield i + 0.5
        if log is not None:
            log.append(("sent", got))
    return "done"


def relay(n):
    end = yield from gen(n, LOG)
    LOG.append(end)


def make():
    k = 1.0

    def bump(by=0.5):
        nonlocal k
        k += by
        return k

    return bump, lambda: k


bump, peek = make()
"""

NUMBERS = [
    "{c}", "box.v", "items[0]", "items[-1]", "G", 'TABLE["k"]', "len(items)", "n", "box.doubled", "box.described", "Box.rate",
    "box.shared()", "box.method({c})", "len(box)", "box[0]", "box + {c}", "helper({c}, *items[:2], b={n})", "sum(v for v in items[:3])",
    "[v * {c} for v in items][0]", "max(items[:3])", 'sum({{i: v for i, v in enumerate(items[:2])}}.values())', "peek()", "bump({c})",
    "(lambda a, *b, c={c}: a * c + len(b))({n}, 1, 2)", "sum(gen(2))", "next(gen(1), {n})", "float(len('%.2f' % {n}))", "MOD.calls",
    "MOD.scale", "Global.calls", "getattr(box, 'extra', {c})", "(m := {n}) * 2", "sorted(items[:3], key=lambda v: -v)[0]",
    "sum(a * b for a, b in zip(items, [0.5, 0.25]))", "float(isinstance(box, Base))", "float({n} > 1.0)", "abs({n}) % 3", "step",
    "round({n}, 1)", "min({n}, 2.0)", "sum(map(lambda v: v * 0.5, items[:2]))", "float(any(v > 1 for v in items))",
]  # fmt: skip
TENSORS = [
    "{t} * {n}", "{t} + {u}", "{t} - {u} * 0.5", "{t}.sin()", "torch.relu({t})", "{t}.tanh()", "{t}.detach() + {u}", "{t} * {u}.mean()",
    "MOD({t})", "Same.apply({t})", "Scale.apply({t}, {n})", "Logged.apply({t}, LOG)", "Global.apply({t})", "Logged.apply({t}, box.held)",
    "torch.stack([{t}, {u}]).sum(0)", "{t}.clone().mul_({n})", "torch.where({t} > {c}, {t}, {u})", "Point({t}, {n}).a", "{t} + torch.ones_like({t}) * {n}",
]  # fmt: skip
HOOKS = [
    "lambda g: g * 2", "lambda g: g * box.v", "lambda g: LOG.append('hook')", "lambda g, k={n}: g * k", "lambda g: g + items[0]",
    "lambda g: g * G", "lambda g: box.held.append(round(g.sum().item(), 3))", "lambda g: (LOG.append(1), g * 0.5)[1]", "lambda g: g * {t}.detach()",
    "box_hook(box)",
]  # fmt: skip
DECORATORS = [
    "torch.compile(backend='eager')", "torch.compile", "torch.compiler.disable", "torch.no_grad()", "torch.enable_grad()", "functools.partial",
    "functools.wraps(helper)", "torch.vmap", "torch.func.functionalize", "(lambda f: f)", "torch.autocast('cpu', enabled=False)",
]  # fmt: skip
CHANGES = [
    "box.v = {c}", "items[0] = {c}", "items.append({c})", "world['G'] = {c}", "TABLE['k'] = {c}", "Box.rate = {c}", "Base.rate = {c}",
    "MOD.eval()", "MOD.train()", "MOD.scale = {c}", "Box.doubled = property(lambda self: self.v * {c})", "Box.__len__ = lambda self: {i}",
    "Base.method = lambda self, a=1.0: a * {c}", "box.extra = {c}", "Box.extra = {c}", "world['helper'] = lambda a, *r, b=1.0, **n: a + b * {c}",
    "MOD.register_forward_hook(lambda m, i, o: o * {c})", "MOD.weight.register_hook(lambda g: LOG.append('weight'))", "bump({c})",
    "world['box'] = Box({c})", "world['items'] = [{c}, {c}]", "world['shape'] = {i}", "world['leaf'] = not world['leaf']", "box.__class__ = Other",
    "MOD.forward = lambda x: x * {c}", "Scale.backward = staticmethod(lambda ctx, g: (g * {c}, None))", "helper.__kwdefaults__['b'] = {c}",
    "Box.__add__ = lambda self, o: self.v * o", "MOD.zero_grad()", "pass", "pass",
]  # fmt: skip


class Generator:
    """Writes one program."""

    def __init__(self, seed: int, length: int):
        self.random = random.Random(seed)
        self.length = length
        self.tensors = ["x"]
        self.made = 0

    def pick(self, values):
        return self.random.choice(values)

    def constant(self) -> str:
        return repr(self.pick([0.5, 1.0, 1.5, 2.0, -0.5, 0.25]))

    def fill(self, template: str, depth: int = 2) -> str:
        number = self.number(depth - 1) if depth > 0 else self.constant()
        given = {"c": self.constant(), "n": number, "i": self.pick([2, 3, 4]), "t": self.tensor(), "u": self.tensor()}
        return template.format(**given)

    def number(self, depth: int = 2) -> str:
        return self.fill(self.pick(NUMBERS), depth)

    def tensor(self) -> str:
        return self.pick(self.tensors[-4:])

    def block(self, depth: int, count: int = 2) -> list[str]:
        before = list(self.tensors)
        lines = [line for _ in range(self.random.randint(1, count)) for line in self.statement(depth)]
        self.tensors = before  # what a block defines may not be there after it
        return ["    " + line for line in lines]

    def statement(self, depth: int) -> list[str]:
        kinds = [self.compute] * 6 + [self.effect] * 5 + [self.hook] * 3 + [self.function, self.kept]
        if depth > 0:
            kinds += [self.branch, self.loop, self.handled, self.context, self.generator, self.recording]
        return self.pick(kinds)(depth)

    def compute(self, depth: int) -> list[str]:
        if self.random.random() < 0.3:
            return [f"n = min({self.number()}, 3.0)"]
        expression = self.fill(self.pick(TENSORS))
        name = self.pick([f"t{self.made}", f"t{self.made}", self.tensor()])
        if name == "x":
            name = f"t{self.made}"
        self.made += 1
        if name not in self.tensors:
            self.tensors.append(name)
        return [f"{name} = ({expression}).tanh()" if self.random.random() < 0.4 else f"{name} = {expression}"]

    def effect(self, depth: int) -> list[str]:
        kinds = [
            "box.v = min({n}, 2.0)", "box.count += 1", "items.append(min({n}, 2.0))", "items[0] = min({n}, 2.0)", "LOG.append({n})",
            "TABLE['k'] = min({n}, 2.0)", "G = min({n}, 2.0)", "bump({c})", "print('at', {c}, round({n}, 3))", "box.held.append({c})",
            "MOD.scale = {c}", "box.described = {c}", "first, *rest = items; LOG.append(len(rest))", "TABLE.setdefault('z', {n})",
            "items.sort()", "del items[2:]", "box.held += [{c}]", "LOG.extend([{c}, 'a'])", "setattr(box, 'extra', {c})",
            "TABLE.update(y={n})", "items.insert(0, {c})", "LOG.append([round(v, 3) for v in items])", "box.held = box.held[-3:]",
        ]  # fmt: skip
        return [self.fill(self.pick(kinds))]

    def hook(self, depth: int) -> list[str]:
        t, hook = self.tensor(), self.fill(self.pick(HOOKS))
        if self.random.random() < 0.15:
            return [
                f"if {t}.is_leaf and {t}.requires_grad: {t}.register_post_accumulate_grad_hook(lambda p: LOG.append('post'))"
            ]
        if self.random.random() < 0.1:
            return [f"if {t}.requires_grad: {t}.retain_grad()"]
        return [f"if {t}.requires_grad: {t}.register_hook({hook})"]

    def function(self, depth: int) -> list[str]:
        self.made += 1
        name, t = f"f{self.made}", self.tensor()
        body = self.pick(
            ["return a * k + n", "LOG.append(k); return a * k", "return a * box.v + {c}", "yield a * k"]
        ).format(c=self.constant())
        call = f"list({name}({t}))[0]" if body.startswith("yield") else f"{name}({t})"
        self.tensors.append(f"t{self.made}")
        return [f"def {name}(a, k={self.number()}):", f"    {body}", f"t{self.made} = {call}"]

    def kept(self, depth: int) -> list[str]:
        """A function made inside, wrapped and kept, which later calls find: it reads what its own call closed over."""
        self.made += 1
        name, t, result = f"f{self.made}", self.tensor(), f"t{self.made}"
        self.tensors.append(result)
        if self.random.random() < 0.2:
            layer = self.pick(
                ["Layer()", "torch.compile(MOD, backend='eager')", "torch.compile(Layer(), backend='eager')"]
            )
            return [f"KEPT.append({layer})", f"{result} = KEPT[{self.pick([0, -1])}]({t})"]
        factor = self.pick(["n", "step + 1", "box.v", "items[0]", "k[0]", "len(items)"])
        return [
            f"k = [{self.number()}]",
            f"@{self.pick(DECORATORS)}",
            f"def {name}(a, own={self.constant()}, n=n, k=k):" if self.random.random() < 0.5 else f"def {name}(a):",
            f"    return a * min({factor}, 2.0)",
            f"KEPT.append({name})",
            f"{result} = KEPT[{self.pick([0, -1])}]({t})",
        ]

    def branch(self, depth: int) -> list[str]:
        test = self.pick(
            [
                f"{self.number()} > {self.constant()}",
                f"{self.tensor()}.sum() > {self.constant()}",
                "box",
                "items",
                f"{self.tensor()}.requires_grad",
            ]
        )
        return [f"if {test}:", *self.block(depth - 1), "else:", *self.block(depth - 1)]

    def loop(self, depth: int) -> list[str]:
        over = self.pick(
            ["for i in range(2)", "for i, v in enumerate(items[:2])", "for v in list(TABLE)", "for i in gen(2)"]
        )
        end = self.pick([[], [], [f"    if {self.number()} > 2: break"], [f"    if {self.number()} > 2: continue"]])
        return [f"{over}:", *end, *self.block(depth - 1)]

    def handled(self, depth: int) -> list[str]:
        error = self.pick(["ValueError('v')", "KeyError(n)", "[][1]", "1 / 0", "{}['absent']"])
        raising = (
            [f"    if {self.number()} > {self.constant()}: raise {error}"]
            if "(" in error
            else [f"    if {self.number()} > {self.constant()}: {error}"]
        )
        caught = [
            "except (ValueError, ZeroDivisionError) as e:",
            "    LOG.append(str(e))",
            "except LookupError as e:",
            "    LOG.append(type(e).__name__)",
        ]
        last = self.pick([[], ["else:", "    LOG.append('fine')"], ["finally:", "    LOG.append('finally')"]])
        return ["try:", *self.block(depth - 1, 1), *raising, *self.block(depth - 1, 1), *caught, *last]

    def context(self, depth: int) -> list[str]:
        error = self.pick([[], ["    raise ValueError('inside')"]])
        return [f"with Manager(LOG, {bool(error)}) as m:", *self.block(depth - 1), *error]

    def generator(self, depth: int) -> list[str]:
        kinds = [
            ["for g in relay(2):", "    LOG.append(g)"],
            ["it = gen(3, LOG)", "LOG.append((next(it), it.send(n)))", "it.close()"],
            ["LOG.append([*gen(2)] + [v for v in relay(1)])"],
            ["a, b = gen(2)", "LOG.append(a * b)"],
        ]
        return self.pick(kinds)

    def recording(self, depth: int) -> list[str]:
        if self.random.random() < 0.3:
            return ["x.sum().backward() if x.requires_grad and x.is_leaf else None"]
        return [f"with torch.{self.pick(['no_grad', 'no_grad', 'enable_grad'])}():", *self.block(depth - 1)]

    def program(self) -> str:
        body = [line for _ in range(self.random.randint(2, self.length)) for line in self.statement(2)]
        result = self.tensor()
        out = self.pick(
            [
                result,
                f"({result}, n)",
                f"{{'a': {result}, 'b': [n, {self.tensor()}]}}",
                f"Point({result}, n)",
                f"({result}, box, {self.tensor()})",
            ]
        )
        whole = [f"if {result}.requires_grad: ({result} * 2).sum().backward()"] if self.random.random() < 0.25 else []
        lines = ["global G", "n = 1.0", *body, *whole, f"return {out}"]
        changes = [line for k in range(4) for line in self.change(k)]
        return "\n".join(
            [
                PRELUDE,
                "class Other(Box):",
                "    rate = 0.3",
                "",
                "def box_hook(box):",
                "    return lambda g: g * box.v",
                "",
                "def program(x, box, items, step):",
                *("    " + line for line in lines),
                "",
                "def change(step, world):",
                "    box, items = world['box'], world['items']",
                *("    " + line for line in changes),
                "",
            ]  # fmt: skip
        )

    def change(self, step: int) -> list[str]:
        if step == 0:
            return ["if step == 0:", "    pass"]
        return [
            f"if step == {step}:",
            *(f"    {self.fill(self.pick(CHANGES), 0)}" for _ in range(self.random.randint(0, 2))),
            "    pass",
        ]


HELPERS = """
def watch(t, box):
    if t.requires_grad:
        t.register_hook(lambda g: g * box.v)


class Watcher:
    def __init__(self, box):
        self.box = box

    def look(self, t):
        watch(t, self.box)
        return t

    def __call__(self, t):
        if t.requires_grad:
            t.register_hook(self.seen)
        return t * 0.5

    def seen(self, g):
        LOG.append(round(g.sum().item(), 3))


def pair(t, k):
    print("pair", k)
    a = t.tanh()
    return a, a * k


def by_default(t, box, how=watch):
    how(t, box)


def finder():
    return watch


WATCHER = Watcher(Box(1.5))
HOOKERS = {"by": [None, watch]}
"""


class LaterHooks(Generator):
    """Programs that hook tensors in functions which they call, where what depends on the tensors was computed before."""

    def hook(self, depth: int) -> list[str]:
        self.made += 1
        t, new = self.tensor(), f"t{self.made}"
        kinds = [
            [f"watch({t}, box)"], [f"{new} = WATCHER.look({t})"], [f"{new} = WATCHER({t})"],
            [f"box.kept = {t}", f"{new} = {t}.sin()", "print('kept')", "watch(box.kept, box)"],
            [f"kept = [{t}, {t} * 0.5]", f"{new} = kept[1].cos()", "print(len(kept))", "watch(kept[1], box)"],
            [f"first, {new} = pair({t}, {self.constant()})", "watch(first, box)"],
            [f"{new} = {t}.exp()", "print('between')", f"(lambda u: watch(u, box))({t})"],
            [f"{new} = {t}.exp()", "print('between')", f"HOOKERS['by'][1]({t}, box)"],
            [f"{new} = {t}.exp()", "print('between')", f"by_default({t}, box)"],
            [f"{new} = {t}.exp()", "print('between')", f"finder()({t}, box)"],
        ]  # fmt: skip
        if self.random.random() < 0.3:
            return super().hook(depth)
        lines = self.pick(kinds)
        if any(line.startswith((new, f"first, {new}")) for line in lines):
            self.tensors.append(new)
        return lines

    def program(self) -> str:
        return super().program().replace("def program(", HELPERS + "\n\ndef program(", 1)
