"""Parameters, closures, decorators, imports, and what does not belong elsewhere."""

# ruff: noqa

import functools
from collections import OrderedDict

from .table import program


COUNTER = 0


@program
def defaults():
    def f(a, b=2, /, c=3, *args, d, e=5, **kwargs):
        return a, b, c, args, d, e, kwargs

    xs, kw = (7, 8, 9, 10), {"d": 1, "z": 2}
    return f(1, d=4), f(1, 2, 3, 4, d=5), f(*xs, **kw), f(*xs, e=0, **kw, y=3), f(1, *[2], c=5, d=6)


@program
def star_calls():
    def f(*args, **kwargs):
        return args, kwargs

    return f(*[1], *(2, 3), a=1, b=2), f(*range(2)), f(), f(*"ab", 1), f(1, *(), k=1)


def called_wrongly(call):
    try:
        call()
    except TypeError as error:
        return str(error)


@program
def call_errors():
    def f(a, b, *, c):
        return a

    def g(a, /, b=1):
        return a

    calls = [
        lambda: f(),
        lambda: f(1),
        lambda: f(1, 2),
        lambda: f(1, 2, 3, c=4),
        lambda: f(1, 2, c=3, d=4),
        lambda: f(1, a=2, c=3),
        lambda: g(a=1),
        lambda: g(1, 2, 3),
        lambda: f(*1),
        lambda: f(**1),
        lambda: f(**{"c": 1}, **{"c": 2}),
        lambda: f(1, 2, **{1: 2}),
        lambda: f.__name__(),
        lambda: (lambda: 1)(2),
    ]
    return [called_wrongly(call) for call in calls]


@program
def unpack_errors():
    out = []
    for value in (5, [1], [1, 2, 3], "", None):
        try:
            a, b = value
        except (TypeError, ValueError) as error:
            out.append(str(error))
        try:
            a, b, *c = value
        except (TypeError, ValueError) as error:
            out.append(str(error))
    for bad in (lambda: [*1], lambda: {**1}, lambda: {*1}, lambda: {[]: 1}, lambda: {**[1]}):
        try:
            bad()
        except TypeError as error:
            out.append(str(error))
    return out


@program
def closures():
    def counter(start):
        count = start

        def up(by=1):
            nonlocal count
            count += by
            return count

        def down():
            nonlocal count
            count -= 1
            return count

        return up, down

    up, down = counter(10)
    return up(), up(5), down(), counter(0)[0]()


@program
def deep_closures():
    a = 1

    def f():
        b = 2

        def g():
            c = 3

            def h():
                return a + b + c

            return h

        return g()()

    a = 100
    return f()


@program
def closure_of_argument():
    def f(x, *args, **kw):
        def g():
            nonlocal x
            x += 1
            return x, args, kw

        return g(), g(), x

    return f(1, 2, k=3)


@program
def unbound_cells():
    def f():
        def g():
            return later

        try:
            g()
        except NameError as error:
            out = [type(error), str(error)]
        try:
            later
        except NameError as error:
            out += [type(error), str(error)]
        later = 1
        out.append(g())
        del later
        try:
            g()
        except NameError as error:
            out += [str(error)]
        return out

    return f()


@program
def globals_stored():
    global COUNTER, TEMPORARY
    COUNTER = 1
    COUNTER += 1
    TEMPORARY = 3
    del TEMPORARY
    try:
        TEMPORARY
    except NameError as error:
        return COUNTER, str(error), error.name


@program
def recursion():
    def fact(n):
        return 1 if n == 0 else n * fact(n - 1)

    return fact(20)


@program
def endless_recursion():
    def f():
        return f()

    try:
        f()
    except RecursionError as error:
        return str(error)[:32]


@program
def decorators():
    def twice(f):
        @functools.wraps(f)
        def inner(*args):
            return f(*args) * 2

        return inner

    def times(n):
        return lambda f: lambda *args: f(*args) * n

    @twice
    @times(5)
    def f(x, y: int = 1) -> int:
        """Doc."""
        return x + y

    return f(1, 2)


@program
def function_attributes():
    def f(a, b: "int" = 2, *, c: str = "x") -> list:
        """Doc."""

    return f.__name__, f.__qualname__, f.__doc__, f.__defaults__, f.__kwdefaults__, f.__annotations__, f.__module__


@program
def lambdas():
    return (
        (lambda x, *y, z=3: (x, y, z))(1, 2),
        list(map(lambda v: v + 1, [1, 2])),
        sorted("bca", key=lambda c: -ord(c)),
    )


@program
def partials():
    f = functools.partial(lambda *a, **k: (a, k), 1, x=2)
    return f(3, y=4), f(x=5)


@program
def local_names():
    a = 1
    b = [2]

    def inner():
        return b

    return sorted(locals()), sorted(vars()), dir(), globals()["COUNTER"] is COUNTER, eval("a + 1"), eval("x", {"x": 7})


@program
def imports():
    import math
    import os.path
    from collections import deque as d
    from os import path, sep

    try:
        from math import nothing_here
    except ImportError as error:
        words = str(error).split("(")[0]
    try:
        import no_such_module
    except ModuleNotFoundError as error:
        name = error.name
    return math.pi, d([1]).pop(), path is os.path, sep, words, name


@program
def wide_names():
    total = 0
    for k in range(3):
        total += k
    source = "def f():\n x0 = 0\n" + "".join(f" x{i} = x{i - 1} + {i}\n" for i in range(1, 300)) + " return x299\n"
    space = {}
    exec(source, space)
    return space["f"](), total


@program
def many_steps():
    total = 0
    for i in range(3):
        if i % 2:
            total += i * 3 + (i - 1) * (i + 2) - i**2 + (i << 2) + (i | 8) + (i & 3) + (i ^ 5) + int(f"{i}{i}")
            total += i * 3 + (i - 1) * (i + 2) - i**2 + (i << 2) + (i | 8) + (i & 3) + (i ^ 5) + int(f"{i}{i}")
            total += i * 3 + (i - 1) * (i + 2) - i**2 + (i << 2) + (i | 8) + (i & 3) + (i ^ 5) + int(f"{i}{i}")
            total += i * 3 + (i - 1) * (i + 2) - i**2 + (i << 2) + (i | 8) + (i & 3) + (i ^ 5) + int(f"{i}{i}")
            total += i * 3 + (i - 1) * (i + 2) - i**2 + (i << 2) + (i | 8) + (i & 3) + (i ^ 5) + int(f"{i}{i}")
            total += i * 3 + (i - 1) * (i + 2) - i**2 + (i << 2) + (i | 8) + (i & 3) + (i ^ 5) + int(f"{i}{i}")
            total += i * 3 + (i - 1) * (i + 2) - i**2 + (i << 2) + (i | 8) + (i & 3) + (i ^ 5) + int(f"{i}{i}")
            total += i * 3 + (i - 1) * (i + 2) - i**2 + (i << 2) + (i | 8) + (i & 3) + (i ^ 5) + int(f"{i}{i}")
        else:
            total -= 1
    return total


@program
def ordered():
    d = OrderedDict(a=1)
    d["b"] = 2
    d.move_to_end("a")
    return list(d.items()), [*d], dict(d)


@program
def annotated_locals():
    x: int = 3
    y: "no such thing"
    (z): list[int] = [x]
    return x, z


@program
def iterators_in_python():
    class Down:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            return self

        def __next__(self):
            if not self.n:
                raise StopIteration
            self.n -= 1
            return self.n

    a, b, *c = Down(4)
    return list(Down(3)), [x for x in Down(2)], a, b, c, 2 in Down(4)


@program
def exec_and_eval():
    space = {"k": 3}
    exec("y = k * 2\ndef f(): return y + k", space)
    return space["y"], space["f"](), eval("[k for _ in range(2)]", space)


@program
def features_of_the_future_are_those_of_the_caller():
    space = {}
    exec("x: int = 1\ndef f(a: int): return a", space)
    code = compile("y: int = 1", "<c>", "exec")
    exec(code, space)
    return space["__annotations__"], space["f"].__annotations__, eval("  1 + 1"), eval(compile("3", "<c>", "eval"))
