"""Random programs on tensors, numbers and containers, their own and outside: compiled, they do what they do eagerly."""

import collections

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback.capture.front.config import config
from tests.capture.bytecode.capture_cases import check, x_of

PRELUDE = """
class Box:
    def __init__(self):
        self.n, self.t, self.inner = 3, torch.ones(3), [1]

    def scaled(self, x):
        return x * self.n * 0.1

    def __call__(self, x):
        self.inner.append(self.n)
        return x + len(self.inner) % 3

    def __getitem__(self, k):
        return self.inner[k]

    def __setitem__(self, k, v):
        while len(self.inner) <= k:
            self.inner.append(0)
        self.inner[k] = v

    def __len__(self):
        return len(self.inner) % 5

    def __contains__(self, k):
        return k in self.inner

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.calls = torch.nn.Parameter(torch.ones(3), requires_grad=False), 0
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.calls += 1
        self.seen += 1
        return x * self.w + self.calls % 2 if x.numel() == 3 else x

def counter():
    n = 0
    def up():
        nonlocal n
        n += 1
        return n
    def step(k=[0]):
        k[0] += n
        return k[0] % 7
    return up, step

class Scope:
    def __enter__(self):
        log.append("in")
        return len(log)
    def __exit__(self, kind, value, traceback):
        log.append(kind and kind.__name__)
        return kind is KeyError

@torch.compiler.disable
def note(value):
    log.append(value)

def early(x, k):
    if k % 2:
        return x + k
    total[0] += k
    return x - k

def looped(x, k):
    for j in range(k % 3):
        x = x * 0.5 + j
        if j == 1:
            note(j)
    return x

def given(x, k, *rest, m=2, **named):
    return x * m + k + sum(rest) + len(named)

def counts(n):
    for j in range(n % 4):
        got = yield j + box.n
        if got:
            log.append(got)

log, xs, ts, d, box, total, shared = [], [1, 2], [torch.ones(3)], {"a": 1}, Box(), [0], {"l": []}
alias = xs
count = 0
q, seen, od = collections.deque([1, 2], maxlen=4), {1}, collections.OrderedDict(x=1, z=2)
dd, cnt, table = collections.defaultdict(list), collections.Counter(), [3, 1, 2, 0]
up, step = counter()
helper_module = Net()
Pair = collections.namedtuple("Pair", "left right")
"""
SIMPLE = """
t = u * a + b
u = t - 1
t, u = u, t
a = (a * 3 + b) % 7
b = len(xs)
a, b = b, a
t = early(t, a)
u = looped(u, b)
u = given(t, a, 1, b, m=3, z=4)
t = given(*[u, b], **{"m": a})
t = (lambda v, k=a: v * k)(t)
u = [t * k for k in range(3)][-1]
b = sum(k for k in range(a))
own.append(u)
own.append(xs)
tab[a] = t
tab.update({b: a})
a = len(tab) + len(own)
xs.append(a)
xs.append(len(xs))
alias.append(b)
xs[-1] = b if xs else 0
xs.extend(k * 2 for k in range(2))
a = xs[0] if xs else 9
b = xs.pop() if xs else 8
xs.insert(0, a)
xs.reverse()
del xs[5:]
ts.append(t)
ts[0] = u
u = ts[-1] + 1
t = ts.pop(0) if len(ts) > 1 else t
d["k"] = a
d[a % 3] = u
b = d.get("k", 5)
a = d.pop("a", 4)
a = d.setdefault("s", b)
t = t * len(d)
shared.setdefault("l", []).append(a)
b = len(shared["l"]) % 5
shared["l"] = xs[:3]
box.n += 1
a = box.n % 6
box.t = t * 0.5
t = box.t + 1
box.inner.append(a)
b = len(box.inner)
total[0] += a
count += 1
b = count % 5
t.add_(1)
u = t.view(-1)
t[0] = a
x.mul_(0.5)
u = x + t
t = t.clamp(-50, 50)
u = u.detach().clamp(-50, 50)
note(a)
note(len(log))
note(t.clone())
a = int(u.sum().item()) % 5
b = max(a, b, 2)
own.extend(sorted([a, b]))
own = own[-3:]
log.append(f"{a}-{b}")
g = lambda v: v + count
t = g(t)
a = next(it, 3)
it = iter([a, b])
it = counts(b)
b = sum(counts(a))
def g(v, k=a): return v * k + b
tab = {k: v for k, v in list(tab.items())[:2]}
a = isinstance(a, int) + bool(xs)
b = (a and b) or 3
q.append(a)
q.appendleft(b)
a = q[0] + q[-1] + len(q)
b = q.popleft() if q else 2
seen.add(a)
b = len(seen) + (a in seen)
seen.discard(b)
od.move_to_end("x")
od["y"] = od.get("y", 0) + 1
a = od["x"] - len(od)
dd[a % 3].append(b)
b = len(dd[b % 3])
cnt["n"] += 1
a = cnt["n"] - 5
a = -a
f0 = f0 * 1.5 - a
t = t * f0
b = int(f0) % 5
log.append(f"{f0:.2f} {a:>3}")
f0 = 0.25
box.scale = a
u = box.scaled(u)
t = box(t)
box[a % 2] = b
b = box[0]
a = len(box)
b = bool(box) + (2 in box)
own.append(box.inner)
own.append(Pair(a, t))
a = Pair(b, a).left
d["own"] = own[:1]
keep = up()
keep = step() + a
shared["f"] = g
t = shared["f"](t) if "f" in shared else t
ts.extend([t, u][:1])
ts[:] = ts[-3:]
xs.sort()
xs.sort(key=lambda v: -v)
b = xs.index(a) if a in xs else 1
a = sorted(xs)[0] if xs else 4
b = min(xs, default=3)
a, *rest = [a, b, 3]
b = len(rest)
t = torch.stack([t, u])[a % 2]
t = t.reshape(3) if t.numel() == 3 else t
a = t.shape[0]
t = torch.cat([t, u])[:3]
b = tuple(xs[:2]) == (1, 2)
b = b + 0
t = helper_module(t)
helper_module.calls += 1
b = helper_module.calls % 4
a = {1: 2, 2: 3, 3: 4}.get(a, 1)
a = table[a % 4]
b = "abc"[a % 3] == "b" or a
b = b if b is not True else 6
"""
HEADS = """
if a > b:
if t.sum() > 0:
if xs and len(ts) < 4:
if "k" in d:
if t is u:
for k in range(3):
for k in range(a % 3):
for v in list(xs)[:2]:
for v in ts[-2:]:
for key, v in list(d.items())[:2]:
for j, v in zip(range(2), xs):
with Scope() as a:
with torch.no_grad():
try:
try:
while fuel > 0 and u.sum() < 40:
"""
RAISING = [
    "raise ValueError(a)",
    "raise KeyError(b)",
    "t = d['missing']",
    "u = t @ torch.ones(7)",
    "xs[99] = 1",
    "a = 1 // 0",
    "a, b = xs",
]
ENDS = ["break", "continue"]
SIMPLE_LINES, HEAD_LINES = SIMPLE.strip().splitlines(), HEADS.strip().splitlines()


@st.composite
def blocks(draw, depth: int = 2, in_loop: bool = False) -> list[str]:
    """Lines of a block, not indented."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.integers(0, 9))
        if kind < 6 or depth == 0:
            lines.append(draw(st.sampled_from(SIMPLE_LINES)))
            continue
        head = draw(st.sampled_from(HEAD_LINES))
        loops = head.startswith(("for", "while"))
        body = draw(blocks(depth - 1, in_loop or loops))
        if head.startswith("while"):
            body = ["fuel -= 1", "u = u.abs() + 1", *body]
        if head == "try:" and draw(st.booleans()):
            body.append(draw(st.sampled_from(RAISING)))
        elif (in_loop or loops) and draw(st.integers(0, 3)) == 0:
            body += ["if fuel % 2:", "    " + draw(st.sampled_from(ENDS))]
        lines += [head, *("    " + line for line in body)]
        if head == "try:":
            handler = draw(blocks(0))
            lines += ["except (ValueError, KeyError, RuntimeError, IndexError, ZeroDivisionError) as error:"]
            lines += ["    log.append(type(error).__name__)", *("    " + line for line in handler)]
            if draw(st.booleans()):
                lines += ["finally:", "    log.append('finally')"]
    return lines


def program(body: list[str]):
    """A case of a body."""
    text = "\n".join(
        [
            *PRELUDE.splitlines(),
            "def f(x, n):",
            "    global count",
            "    fuel, a, b, t, u, own, tab, it, f0 = 5, n, 2, x, x * 2, [], {}, iter([7]), 1.5",
            "    g = abs",
            *("    " + line for line in body),
            "    return t, u, a, b, own, tab, x",
        ]
    )

    def make():
        names: dict = {"torch": torch, "collections": collections, "__name__": "random_program"}
        exec(compile(text, "<random program>", "exec"), names)
        state = (
            "log",
            "xs",
            "ts",
            "d",
            "total",
            "shared",
            "count",
            "box",
            "q",
            "seen",
            "od",
            "dd",
            "cnt",
            "helper_module",
        )
        return names["f"], lambda i: (x_of(i), i + 1), lambda: [names[k] for k in state]

    make.text = text
    return make


@pytest.mark.parametrize("nested", [False, True])
@given(body=blocks())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs(nested: bool, body: list[str]) -> None:
    make = program(body)
    before = config.nested_graph_breaks
    config.nested_graph_breaks = nested
    try:
        check(make, "eager", strict=False)
    except AssertionError as error:
        raise AssertionError(f"{error}\n" + "\n".join(body)) from None
    finally:
        config.nested_graph_breaks = before
