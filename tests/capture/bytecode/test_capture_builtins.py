"""Captured programs that call built-in functions and the standard library, and read the world outside."""

import bisect
import collections
import copy
import functools
import heapq
import itertools
import logging
import math
import operator
import random
import time

import numpy as np
import pytest

import pullback as torch
from pullback.capture.front.config import config
from tests.capture.bytecode.capture_cases import BACKENDS, Cases, x_of

case = Cases()


@torch.compiler.disable
def note(log, value):
    log.append(value)


@case
def numbers():
    def f(x, n):
        return (
            x * abs(-n) + round(2.567, 1), divmod(n + 7, 3), pow(n, 2), max(n, 3), min([n, 1]), sum([n, 1, 2]), bin(n), hex(n + 10),
            int("12") + n, float("1.5"), complex(n, 1), bool(n), ord("a"), chr(98), int(3.7), isinstance(n, int), type(n), n.bit_length(),
        )  # fmt: skip

    return f, lambda i: (x_of(i), i)


@case
def mathematics():
    def f(x, n):
        return (
            x * math.sqrt(n + 1) + math.pi,
            math.floor(n / 2),
            math.gcd(n, 12),
            math.inf > n,
            math.isnan(n),
            math.prod([n, 2]),
            math.log2(8),
        )

    return f, lambda i: (x_of(i), i)


@case
def math_of_tensors():
    def f(x):
        return math.sqrt(x.sum()), float(x[0]), int(x[1]), math.floor(x[0]), round(x[0].item())

    return f, lambda i: (x_of(i).abs(),)


@case
def sequences():
    xs = [3, 1, 2]

    def f(x):
        out = (
            sorted(xs), sorted(xs, key=lambda v: -v), sorted(xs, reverse=True), list(reversed(xs)), max(xs), min(xs, key=lambda v: -v),
            any(v > 2 for v in xs), all(xs), list(zip(xs, "abc")), list(enumerate(xs, 1)), list(map(lambda a, b: a * b, xs, [1, 2, 3])),
            list(filter(None, [0, 1, 2])), sum(xs, 10), tuple(xs), set(xs), frozenset(xs), xs[::-1], xs * 2, xs + [4], 3 in xs,
        )  # fmt: skip
        xs.append(len(xs))
        return x * sum(xs), out

    return f, lambda i: (x_of(i),), lambda: xs


@case
def sorting_by_getters():
    rows = [{"k": 2, "v": [5]}, {"k": 1, "v": [6]}]

    class P:
        def __init__(self, n):
            self.n = n

    ps = [P(3), P(1)]

    def f(x):
        first = sorted(rows, key=operator.itemgetter("k"))[0]
        lengths = sorted([r["v"] for r in rows], key=len)
        least = min(ps, key=operator.attrgetter("n"))
        rows[0]["k"] -= 1
        rows[0]["v"].append(1)
        ps[0].n -= 2
        return x * first["k"], [len(v) for v in lengths], least.n, list(map(len, lengths)), max(map(len, lengths))

    return f, lambda i: (x_of(i),), lambda: (rows, ps)


@case
def user_class_in_map():
    result = []

    class P:
        def __init__(self, n):
            result.append(n)
            self.n = n

    def f(x):
        ps = list(map(P, [1, 2]))
        return x * sum(p.n for p in ps)

    return f, lambda i: (x_of(i),), lambda: result


@case
def partial_in_map():
    k = [2]

    def scale(a, b):
        return a * b * k[0]

    def f(x):
        k[0] += 1
        return list(map(functools.partial(scale, x), [1, 2])), functools.reduce(functools.partial(scale), [x, 2])

    return f, lambda i: (x_of(i),), lambda: k


@case
def tensors_in_builtins():
    def f(x):
        a, b = x[0], x[1]
        return (
            max(a, b),
            min([a, b]),
            sum([a, b]),
            sum(x),
            abs(x),
            sorted([a, b]),
            list(x),
            tuple(x),
            any([a > 100, b > 100]),
            x[-1] in [a, b],
        )

    return f, lambda i: (x_of(i),)


@case
def dict_functions():
    d = {"b": 1, "a": 2}

    def f(x):
        e = dict(d, c=3)
        d["z"] = len(d)
        return (
            x * e["c"], sorted(d), sorted(d.items()), dict(zip("ab", [1, 2])), {**d, "q": 1}, list(d.items())[0], max(d, key=d.get),
            dict.fromkeys(d, 0), d.copy(), len(d), list(reversed(d)), d == e, "a" in d.keys(), d.keys() & {"a"}, {v: k for k, v in d.items()},
        )  # fmt: skip

    return f, lambda i: (x_of(i),), lambda: d


@case
def text():
    words = ["b", "a"]

    def f(x, n):
        words.append(str(n))
        s = "-".join(words)
        return (
            x,
            s.upper().split("-"),
            s.replace("a", "z"),
            s.startswith("b"),
            s[1:],
            len(s),
            "%s %d" % (words, n),  # noqa: UP031
            f"{words}",
            "{:>5}".format(n),  # noqa: UP032
            s.encode(),
            repr(words),
            str(words),
            s * 2,
        )  # noqa: UP031, UP032

    return f, lambda i: (x_of(i), i), lambda: words


@case
def itertools_functions():
    xs = [1, 2, 3]

    def f(x):
        out = (
            list(itertools.chain(xs, [4])), list(itertools.product(xs, repeat=2))[:2], list(itertools.combinations(xs, 2)),
            list(itertools.permutations(xs))[0], list(itertools.accumulate(xs)), list(itertools.accumulate(xs, lambda a, b: a * b)),
            list(itertools.islice(itertools.count(5), 2)), list(itertools.repeat(1, 2)), list(itertools.takewhile(lambda v: v < 3, xs)),
            list(itertools.dropwhile(lambda v: v < 3, xs)), list(itertools.zip_longest(xs, [1])), list(itertools.pairwise(xs)),
            [(k, list(g)) for k, g in itertools.groupby(xs, lambda v: v % 2)], list(itertools.starmap(pow, [(2, 3)])),
            list(itertools.chain.from_iterable([xs, xs])), list(itertools.compress(xs, [1, 0, 1])), list(itertools.filterfalse(lambda v: v > 1, xs)),
        )  # fmt: skip
        xs.append(len(xs))
        return x * len(xs), out

    return f, lambda i: (x_of(i),), lambda: xs


@case
def itertools_over_tensors_with_break():
    log = []

    def f(x):
        chained = itertools.chain([x], [x + 1], [x + 2])
        first = next(chained)
        note(log, 1)
        return first, list(chained), list(itertools.accumulate([x, x, x]))

    return f, lambda i: (x_of(i),), lambda: log


@case
def functools_reduce():
    def f(x):
        return (
            functools.reduce(lambda a, b: a + b, [x, x, x]),
            functools.reduce(operator.mul, [1, 2, 3], 2),
            functools.reduce(operator.add, [x, x]),
        )

    return f, lambda i: (x_of(i),)


@case
def heaps_and_bisection():
    xs = [5, 3, 8]

    def f(x):
        h = list(xs)
        heapq.heapify(h)
        heapq.heappush(h, 1)
        xs.append(heapq.heappop(h))
        keys = sorted(xs)
        return x * bisect.bisect(keys, 4), heapq.nlargest(2, xs), h

    return f, lambda i: (x_of(i),), lambda: xs


@case
def heap_from_outside():
    xs = [1, 5, 3]

    def f(x):
        heapq.heappush(xs, len(xs) - 4)
        return x * xs[0]

    return f, lambda i: (x_of(i),), lambda: xs


@case
def collections_made_inside():
    def f(x):
        d = collections.defaultdict(list)
        d["a"].append(x)
        d["a"].append(1)
        c = collections.Counter("aab")
        q = collections.deque([1, 2], maxlen=2)
        q.append(x)
        o = collections.OrderedDict(b=1)
        o["a"] = x
        o.move_to_end("b")
        m = collections.ChainMap({"a": 1}, {"b": x})
        return d, c["a"], q, o, m["b"], c.most_common(1)

    return f, lambda i: (x_of(i),)


@case
def copies():
    table = {"a": [1]}

    def f(x):
        shallow, deep = copy.copy(table), copy.deepcopy(table)
        shallow["b"] = 1
        deep["a"].append(5)
        shallow["a"].append(x)
        return shallow, deep, table["a"][:], x

    return f, lambda i: (x_of(i),), lambda: table


@case
def random_module():
    random.seed(3)

    def f(x):
        return x * random.random() + random.randint(1, 5), random.choice([1, 2, 3])

    return f, lambda i: (x_of(i),)


@case
def random_instance():
    r = random.Random(3)

    def f(x):
        return x * r.random()

    return f, lambda i: (x_of(i),)


@case
def clock():
    def f(x, log):
        log.append(time.perf_counter() > 0)
        return x * (1 if time.time() > 5 else 0)

    return f, lambda i: (x_of(i), [])


@case
def logging_inside():
    logger = logging.getLogger("tests.capture")
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    logger.handlers[:] = [Keep()]
    logger.setLevel(logging.INFO)
    logger.propagate = False

    def f(x, n):
        logger.info("n is %d", n)
        return x * n

    return f, lambda i: (x_of(i), i), lambda: records


@case
def printing_to_a_file():
    import io

    out = io.StringIO()

    def f(x, n):
        y = x * 2
        print("n", n, file=out)
        return y + 1

    return f, lambda i: (x_of(i), i), lambda: out.getvalue()


@case
def numpy_arrays_from_outside():
    a = np.array([1.0, 2.0, 3.0])

    def f(x):
        a[0] += 1
        return x * float(a[0]) + torch.from_numpy(a.copy()).float(), (a > 2).tolist(), len(a), a.sum().item()

    return f, lambda i: (x_of(i),), lambda: a.tolist()


@case
def numpy_array_made_a_tensor():
    a = np.ones(3, dtype=np.float32)

    def f(x):
        return x + torch.tensor(a) + torch.as_tensor(a)

    def arguments(i):
        a[:] = i
        return (x_of(i),)

    return f, arguments


@case
def numpy_of_tensors():
    def f(x):
        y = x * 2
        n = y.numpy()
        return torch.from_numpy(n + 1), float(np.sum(n)), y.tolist()

    return f, lambda i: (x_of(i),)


@case
def numpy_scalars():
    def f(x, k):
        return x * k

    return f, lambda i: (x_of(i), np.float32(i + 1))


@case
def identities():
    def f(x, y):
        return id(x) == id(y), x is y, x is not None, id(x) == id(x)

    def arguments(i):
        x = x_of(i)
        return x, (x if i == 1 else x_of(i))

    return f, arguments


@case
def hashes():
    def f(x, k):
        return x * (hash(k) % 7), {k: 1}[k], hash((1, k)) == hash((1, k))

    return f, lambda i: (x_of(i), i)


@case
def eval_and_exec():
    def f(x, k):
        names = {"x": x, "k": k}
        exec("y = x * k", names)
        return eval("x + k"), names["y"]

    return f, lambda i: (x_of(i), i + 1)


@case
def getattr_with_names():
    class A:
        a1, a2 = 3, 4

    def f(x, k):
        return (
            x * getattr(A, f"a{k}"),
            getattr(A, "no", None),
            hasattr(A, "a1"),
            getattr(torch, "sin")(x),  # noqa: B009
            getattr(x, "shape")[0],  # noqa: B009
        )

    return f, lambda i: (x_of(i), 1 + i % 2)


@case
def module_attributes():
    import types

    m = types.ModuleType("settings")
    m.scale, m.table, m.helper = 2, [1], lambda x: x + 1

    class Old:
        k = 1

    class New:
        k = 5

    m.Kind = Old

    def f(x):
        m.table.append(m.scale)
        m.seen = len(m.table)
        return m.helper(x) * m.scale + len(m.table) + m.Kind.k

    def arguments(i):
        m.scale = i
        m.Kind = [Old, New, Old][i]
        m.helper = [lambda x: x + 1, lambda x: x * 4, lambda x: x + 1][i]
        return (x_of(i),)

    return f, arguments, lambda: (m.table, m.seen)


@case
def integers_that_change():
    def f(x, n):
        y = x * n
        for k in range(n):
            y = y + k
        return (
            y,
            n + 1,
            [0] * n,
            n if n > 1 else -n,
            f"{n}",
            n == 2,
            {1: "a", 2: "b", 3: "c"}[n],
            isinstance(n, int),
            type(n),
        )

    return f, lambda i: (x_of(i), i + 1)


@case
def integers_in_containers_that_change():
    state = {"step": 0, "sizes": [1, 2]}

    def f(x):
        state["step"] += 1
        state["sizes"].append(state["step"] * 2)
        return x * state["step"] + sum(state["sizes"]), state["step"] % 2 == 0, x.repeat(state["step"])

    return f, lambda i: (x_of(i),), lambda: state


@case
def dictionary_looked_up_by_changing_number():
    table = {k: k * k for k in range(10)}

    def f(x, n):
        own = {k: k + 1 for k in range(10)}
        return x * table[n] + own[n], n in table, table.get(n + 1), [10, 20, 30, 40, 50, 60][n]

    return f, lambda i: (x_of(i), i + 2)


@case
def floats_that_change():
    def f(x, a):
        return x * a + (1 if a > 1.0 else 2), a * 2, math.sqrt(a)

    return f, lambda i: (x_of(i), [0.5, 1.5, 2.5][i])


@case
def bools_and_none_that_change():
    def f(x, a):
        if a is None:
            return x
        return x * 2 if a else x * 3

    return f, lambda i: (x_of(i), [None, True, False][i])


@case
def negative_and_large_integers():
    def f(x, a, b):
        return x[a], x * a, abs(a), -a, a // 2, a % 3, b * 2, x + b % 1000, a if a > -2 else 0

    return f, lambda i: (x_of(i), -1 - i, 10**30 + i)


@case
def views_of_a_dict_given():
    d = {"a": 1}

    def f(keys, values, x):
        return x * len(keys), list(keys), sum(values), len(values)

    def arguments(i):
        d[i] = i
        return d.keys(), d.values(), x_of(i)

    return f, arguments


@case
def sets_of_objects():
    class K:
        pass

    a, b = K(), K()
    s = {a}

    def f(k, x):
        return x * (1 if k in s else 2), len(s)

    return f, lambda i: ((a, b, a)[i], x_of(i))


@case
def lock_held():
    import threading

    lock, n = threading.Lock(), [0]

    def f(x):
        with lock:
            n[0] += 1
        return x * n[0]

    return f, lambda i: (x_of(i),), lambda: n


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_builtins(make, backend: str) -> None:
    case.run(make, backend)


@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_builtins_with_frames_kept(make) -> None:
    case.run(make, "eager", nested=True)


def test_the_greater_of_a_number_that_is_not_known_is_no_question():
    def f(x):
        return torch.ones(max(x.item(), 4)), torch.zeros(min(3, x.item(), 9))

    with config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(f, backend="eager", fullgraph=True)
        assert [[len(t) for t in compiled(torch.tensor(n))] for n in (2, 7)] == [[4, 2], [7, 3]]


def test_functions_of_no_module_are_mapped_inside_blocks() -> None:
    names: dict = {"torch": torch}
    exec("def run(v):\n    with torch.no_grad():\n        return torch.func.vmap(lambda row: row * 2)(v)", names)
    x = torch.ones(2, 3)
    assert torch.compile(names["run"])(x).tolist() == [[2.0] * 3] * 2


def test_what_wraps_a_compiled_function_is_more_than_it() -> None:
    inner = torch.compile(lambda x: x * 2)

    @functools.wraps(inner)
    def outer(x):
        return inner(x) + 1

    x = torch.ones(2, 3)
    assert torch.compile(outer)(x).tolist() == [[3.0] * 3] * 2
    assert torch.compile(lambda y: outer(y) * 2)(x).tolist() == [[6.0] * 3] * 2
    for transform in (torch.func.jacrev, torch.func.jacfwd, torch.func.vmap):
        assert torch.equal(torch.compile(transform(inner))(x), transform(inner)(x))
    assert torch.compile(inner)(x).tolist() == [[2.0] * 3] * 2
