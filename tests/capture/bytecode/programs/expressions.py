"""Operators, strings, displays, unpacking, loops, comprehensions, patterns."""

# ruff: noqa

from dataclasses import dataclass

from .table import program


@program
def arithmetic():
    a, b = 17, 5
    return a + b, a - b, a * b, a / b, a // b, a % b, a**b, a << b, a >> b, a & b, a | b, a ^ b, -a, +a, ~a, not a


@program
def augmented():
    a = 7
    a += 3
    a -= 1
    a *= 5
    a //= 2
    a %= 17
    a **= 2
    a <<= 2
    a >>= 1
    a &= 127
    a |= 8
    a ^= 3
    a /= 4
    xs = ys = [1]
    xs += [2]
    xs *= 2
    return a, ys, xs is ys


@program
def comparisons():
    a, b, c = 1, 2, 3
    return a < b < c, a < b > c, a == b != c, a <= a, c >= b, a in [1], a not in [1], a is b, a is not b


@program
def chained_with_effects():
    seen = []

    def note(x):
        seen.append(x)
        return x

    return note(1) < note(2) < note(0) < note(9), seen


@program
def boolean_operators():
    out = []
    for a in (0, 1, "", "x", None):
        for b in ([], [1]):
            out.append((a and b, a or b, not a, a and b or 5, (a or b) and 6))
    return out


@program
def conditional():
    return [("a" if x else "b") if x != 2 else "c" for x in range(4)]


@program
def none_tests():
    out = []
    for x in (None, 0, 1):
        if x is None:
            out.append("none")
        if x is not None:
            out.append(x)
        while x is not None:
            x = None
    return out


@program
def walrus():
    xs = [y := 1, y**2, (z := y + 5)]
    while (y := y + 1) < 5:
        xs.append(y)
    return xs, y, z, [w := i for i in range(3)], w


@program
def strings():
    x, width, name = 3.14159, 10, "pi"
    return (
        f"{name}={x:.2f} {x!r:>{width}} {name!s} {'é'!a} {x=} {{}} {name:^{width}}",
        "%s-%d" % (name, 3),
        "{}".format(x),
    )


@program
def slices():
    xs = list(range(10))
    ys = xs[2:5], xs[:3], xs[7:], xs[::2], xs[::-1], xs[-3:-1], xs[:]
    xs[1:3] = ["a", "b", "c"]
    del xs[4:6]
    xs[::3] = [0] * len(xs[::3])
    xs[0] = "first"
    del xs[1]
    return ys, xs


@program
def displays():
    xs, d = [1, 2], {"a": 1}
    return (
        [*xs, 3, *xs],
        (*xs, *"ab"),
        {*xs, 5},
        {**d, "b": 2, "a": 9},
        {1: 2, "x": [3]},
        [],
        (),
        {},
        {1, 2},
        {"k1": xs, "k2": d},
    )


@program
def large_display():
    return [1, 2, 3, 4, 5, 6, 7, 8, 9], {1, 2, 3, 4, 5}, (1, [2], 3), {"a": 1, "b": 2, "c": 3, "d": 4}


@program
def unpacking():
    a, b = 1, 2
    a, b = b, a
    (c, (d, *e)), f = (1, (2, 3, 4)), 5
    *g, h = range(4)
    i, *j, k = "abcdef"
    [m, n] = {1: 2, 3: 4}
    for p, (q, *r) in [(1, "abc"), (2, "de")]:
        pass
    return a, b, c, d, e, f, g, h, i, j, k, m, n, p, q, r


@program
def attributes():
    class Thing:
        shared = 1

        @property
        def double(self):
            return self.x * 2

    t = Thing()
    t.x = 4
    t.x += 1
    Thing.shared = 2
    before = t.double, t.shared, hasattr(t, "x")
    del t.x
    return before, hasattr(t, "x"), getattr(t, "nothing", "default")


@program
def deleting():
    a, b = 1, {"k": 1, "l": 2}
    del b["k"]
    del a
    try:
        a
    except UnboundLocalError as error:
        return b, str(error)


@program
def assertions():
    assert True
    try:
        assert 1 == 2, "words"
    except AssertionError as error:
        return error.args


@program
def loops():
    out = []
    for i in range(5):
        if i == 1:
            continue
        if i == 4:
            break
        out.append(i)
    else:
        out.append("never")
    for i in ():
        pass
    else:
        out.append("else")
    n = 3
    while n:
        n -= 1
        if n == 1:
            continue
    else:
        out.append("done")
    while True:
        n += 1
        if n > 3:
            break
    return out, n, i


@program
def nested_loops():
    out = []
    for i in range(3):
        for j in range(3):
            if j == i:
                break
            out.append((i, j))
        else:
            out.append("full")
    return out


@program
def comprehensions():
    x = "outer"
    a = [x for x in range(3)]
    b = {x: y for x, y in zip("ab", (1, 2))}
    c = {x % 2 for x in range(5)}
    d = [(i, j) for i in range(3) if i for j in range(i) if j or i > 1]
    e = [[y * i for y in range(3)] for i in range(2)]
    return a, b, c, d, e, x


@program
def comprehension_closures():
    fs = [lambda: i for i in range(3)]
    gs = [lambda k=i: k + len(fs) for i in range(3)]
    i = 10
    hs = [(lambda: i + j)() for j in range(2)]
    return [f() for f in fs], [g() for g in gs], hs, i


@program
def comprehension_raises():
    x = 5
    try:
        [1 // x for x in (1, 0)]
    except ZeroDivisionError:
        return x


@program
def comprehension_unbound():
    ys = [x for x in range(2)]
    try:
        return x
    except NameError as error:
        return type(error), ys


@program
def generator_expressions():
    return sum(x * x for x in range(5)), list(y for y in "abc"), any(x > 3 for x in range(9)), max(x for x in (1, 3, 2))


@program
def matching():
    @dataclass
    class Point:
        x: int
        y: int

    def f(value):
        match value:
            case 0 | 1:
                return "small"
            case int(n) if n > 100:
                return "big", n
            case int():
                return "int"
            case "a" | "b" as letter:
                return letter
            case []:
                return "empty"
            case [x]:
                return "one", x
            case [1, *rest, 9]:
                return "between", rest
            case (a, b):
                return "two", a, b
            case {"kind": "k", "value": v, **others}:
                return v, others
            case {"only": None}:
                return "none"
            case Point(x=0, y=y):
                return "on axis", y
            case Point(x, y):
                return x, y
            case str() | bytes():
                return "text"
            case None:
                return "nothing"
            case [Point(0, 0), [p, q], {"r": r}]:
                return p, q, r
            case _:
                return "other"

    values = [
        0, 500, 50, "a", [], [4], [1, 2, 3, 9], (1, 2), {"kind": "k", "value": 3, "z": 4}, {"only": None}, {"only": 1},
        Point(0, 3), Point(4, 5), "text", b"t", None, 2.5, [Point(0, 0), [1, 2], {"r": 3}], {1}, range(2),
    ]  # fmt: skip
    return [f(v) for v in values]


@program
def matching_errors():
    class A:
        __match_args__ = ("x",)
        x = 1

    out = []
    for cls in (A, 5):
        try:
            match A():
                case cls(1):
                    out.append("one")
            match A():
                case cls(1, 2):
                    out.append("never")
        except TypeError as e:
            out.append(str(e))
    return out
