"""Captured programs that use the language: calls, closures, generators, exceptions, contexts, patterns, control flow."""

import contextlib
import functools
import warnings

import pytest

import pullback as torch
from tests.capture.bytecode.capture_cases import BACKENDS, Cases, x_of

case = Cases()


def scale(x, k=2):
    return x * k


def add_one(x):
    return x + 1


@torch.compiler.disable
def note(log, value):
    log.append(value)


# ---- functions
@case(graphs=1)
def arguments_of_all_kinds():
    def g(a, b=2, /, c=3, *rest, d, e=5, **more):
        return a * b + c + sum(rest) + d - e + sum(more.values())

    def f(x):
        return g(x, d=1) + g(x, 1, 2, 3, 4, d=2, z=9) + g(*[x, 2], **{"d": 1, "w": 3})  # noqa: PIE804

    return f, lambda i: (x_of(i),)


@case
def star_args_of_the_program():
    def f(*xs, k=1, **named):
        total = k
        for x in xs:
            total = total + x
        return total, named

    return f, lambda i: tuple(x_of(k) for k in range(i + 1))


@case
def wrong_arguments():
    def g(a, *, b):
        return a + b

    def f(x, i):
        try:
            return g(x) if i == 0 else g(x, 1) if i == 1 else g(x, b=1, c=2)
        except TypeError as error:
            return x, str(error)

    return f, lambda i: (x_of(i), i)


@case
def function_returned():
    def f(x):
        k = x.sum()

        def inner(y, m=2):
            return y * k + m

        inner.note = "made"
        return inner, inner(x)

    return f, lambda i: (x_of(i),)


@case
def functions_that_share_a_cell():
    def f(x):
        n = x

        def up():
            nonlocal n
            n = n + 1

        def read():
            return n

        up()
        return up, read, read()

    return f, lambda i: (x_of(i),)


@case
def recursion():
    def power(x, n):
        return x if n == 0 else power(x, n - 1) * 2 + n

    def f(x):
        return power(x, 4)

    return f, lambda i: (x_of(i),)


@case
def recursion_in_closure():
    def f(x):
        def go(n):
            return x if n == 0 else go(n - 1) + n

        return go(3)

    return f, lambda i: (x_of(i),)


@case
def lambdas_in_a_list():
    def f(x):
        result = [lambda v, k=k: v * k for k in range(3)]
        late = [lambda: k for k in range(3)]  # noqa: B023
        return [g(x) for g in result], [g() for g in late]

    return f, lambda i: (x_of(i),)


@case
def decorated_with_wraps():
    def twice(g):
        @functools.wraps(g)
        def wrapped(*args, **kwargs):
            return g(g(*args, **kwargs), **kwargs)

        return wrapped

    @twice
    def g(x, k=3):
        return x * k

    def f(x):
        return g(x), g(x, k=2), g.__name__, g.__wrapped__(x)

    return f, lambda i: (x_of(i),)


@case
def decorator_inside():
    def f(x):
        def shift(g):
            @functools.wraps(g)
            def wrapped(v):
                return g(v) + 1

            return wrapped

        @shift
        def double(v):
            """Twice."""
            return v * 2

        return double(x), double.__name__, double.__doc__

    return f, lambda i: (x_of(i),)


@case
def partial_functions():
    def g(a, b, c=1):
        return a * b + c

    fixed = functools.partial(g, c=3)

    def f(x):
        mine = functools.partial(g, 2, c=5)
        return fixed(x, 2) + mine(x), mine

    return f, lambda i: (x_of(i),)


@case
def partial_changes():
    def g(x, k):
        return x * k

    def f(h, x):
        return h(x)

    return f, lambda i: (functools.partial(g, k=i + 1), x_of(i))


@case
def lru_cached_helper():
    @functools.lru_cache
    def table(n):
        return n * 2

    def f(x):
        return x * table(3) + table(3)

    return f, lambda i: (x_of(i),)


@case
def global_function_replaced():
    global add_one

    def plus(x):
        return x + 1

    add_one = plus

    def f(x):
        return add_one(x)

    def arguments(i):
        global add_one
        add_one = [plus, scale, plus][i]
        return (x_of(i),)

    return f, arguments


@case
def walrus_and_conditionals():
    def f(x, k):
        if (n := len(x.shape) + k) > 1:
            x = x * n
        y = x if k else x + 1
        return y, n, (k and 3) or 4, not k

    return f, lambda i: (x_of(i), i % 2)


@case
def unpacking():
    def f(x, pairs):
        a, (b, *c), d = pairs
        first, *rest = x
        return a * x + b, c, d, first + rest[-1]

    return f, lambda i: (x_of(i), (1, [2, 3 + i, 4], 5))


@case
def unpacking_errors():
    def f(x, items):
        try:
            a, b = items
        except ValueError as error:
            return x, str(error)
        return x * a + b

    return f, lambda i: (x_of(i), [(1, 2), (1,), (1, 2, 3)][i])


@case
def loops_with_else():
    def f(x, stop):
        for k in range(4):
            if k == stop:
                break
            if k % 2:
                continue
            x = x * 2 + k
        else:
            x = x - 100
        n = 3
        while n:
            n -= 1
            x = x + n
        else:
            x = x + 0.5
        return x

    return f, lambda i: (x_of(i), [2, 9, 0][i])


@case
def large_loop():
    def f(x):
        for k in range(200):
            x = x + k
        return x

    return f, lambda i: (x_of(i),)


@case
def loop_on_data():
    def f(x):
        n = 0
        while x.sum() < 20:
            x = x * 2 + 1
            n += 1
        return x, n

    return f, lambda i: (x_of(i).abs() + 0.1,)


@case
def branch_on_data():
    def f(x):
        y = x * 2
        if y.sum() > 0:
            z = y + 1
        else:
            z = y - 1
        return z * 3

    return f, lambda i: (x_of(i),)


@case
def branch_on_data_in_helper():
    log = []

    def helper(x):
        log.append("in")
        if x.sum() > 0:
            log.append("positive")
            return x + 1
        return x - 1

    def f(x):
        log.append("before")
        y = helper(x * 2)
        log.append("after")
        return helper(y) * 2

    return f, lambda i: (x_of(i),), lambda: log


@case
def break_in_two_frames_in_a_loop():
    log = []

    def inner(x, k):
        note(log, ("inner", k))
        return x * k

    def outer(x, k):
        log.append(k)
        y = inner(x + 1, k)
        log.append(-k)
        return y

    def f(x):
        for k in range(1, 4):
            x = outer(x, k) + 1
        return x

    return f, lambda i: (x_of(i),), lambda: log


@case
def item_in_arithmetic():
    def f(x):
        n = x.sum().item()
        return x * n, int(n), float(n) > 0

    return f, lambda i: (x_of(i),)


@case
def disabled_function():
    log = []

    def f(x):
        a = x * 2
        note(log, a)
        b = a + 1
        note(log, len(log))
        return b

    return f, lambda i: (x_of(i),), lambda: log


@case
def inner_compiled_function():
    inner = torch.compile(lambda x: x * 3, backend="eager")

    def f(x):
        return inner(x) + 1

    return f, lambda i: (x_of(i),)


@case
def local_variables_asked_for():
    def f(x, k):
        y = x * 2
        return sorted(locals()), y

    return f, lambda i: (x_of(i), i)


@case
def local_variables_used():
    def f(x, k):
        return locals()["x"] * locals()["k"]

    return f, lambda i: (x_of(i), i)


@case
def deleted_names():
    def f(x):
        y = x * 2
        del x
        try:
            return x + y  # noqa: F821
        except UnboundLocalError as error:
            return y, str(error)

    return f, lambda i: (x_of(i),)


@case
def unbound_cell():
    def f(x, k):
        def g():
            return later

        try:
            out = g()
        except NameError as error:
            out = str(error)
        later = x
        return out, g()

    return f, lambda i: (x_of(i), i)


@case
def undefined_global():
    def f(x):
        try:
            return x * not_there  # noqa: F821
        except NameError as error:
            return x, str(error)

    return f, lambda i: (x_of(i),)


@case
def match_statement():
    def f(x, shape):
        match shape:
            case {"kind": "scale", "by": k}:
                return x * k
            case [a, b, *rest] if len(rest) < 3:
                return x + a - b, rest
            case str() | None:
                return x
            case _:
                return -x

    return f, lambda i: (x_of(i), [{"kind": "scale", "by": 3}, [1, 2, 3], "s"][i])


@case
def match_classes():
    class Point:
        __match_args__ = ("a", "b")

        def __init__(self, a, b):
            self.a, self.b = a, b

    def f(x, p):
        match p:
            case Point(1, b):
                return x * b
            case Point(a=a):
                return x + a
        return x

    return f, lambda i: (x_of(i), Point([1, 5, 1][i], [3, 3, 8][i]))


# ---- comprehensions and generators
@case
def comprehensions():
    def f(x):
        k = 3
        a = [x * j for j in range(k) if j != 1]
        b = {j: x + j for j in range(2)}
        c = {j % 2 for j in range(5)}
        d = sum(x * j for j in range(k))
        e = [[i * j + k for i in range(2)] for j in range(2)]
        return a, b, c, d, e

    return f, lambda i: (x_of(i),)


@case
def generators_inside():
    def numbers(x, n):
        for k in range(n):
            got = yield x * k
            if got:
                x = x + got

    def outer(x):
        value = yield from numbers(x, 2)
        yield x, value

    def f(x):
        g = numbers(x, 3)
        a = next(g)
        b = g.send(5)
        return a, b, list(outer(x)), next(g), next(g, "end")

    return f, lambda i: (x_of(i),)


@case
def generator_returned_after_break():
    log = []

    def numbers(x):
        for k in range(3):
            note(log, k)
            yield x * k

    def f(x):
        total = x
        for t in numbers(x):
            total = total + t
        return total

    return f, lambda i: (x_of(i),), lambda: log


@case
def generator_with_finally():
    log = []

    def numbers(x):
        try:
            yield x
            yield x + 1
        finally:
            log.append("closed")

    def f(x):
        g = numbers(x)
        a = next(g)
        g.close()
        return a

    return f, lambda i: (x_of(i),), lambda: log


@case
def generator_throw():
    def numbers(x):
        while True:
            try:
                yield x
            except ValueError as error:
                x = x + float(str(error))

    def f(x):
        g = numbers(x)
        next(g)
        return g.throw(ValueError("2"))

    return f, lambda i: (x_of(i),)


@case
def generator_kept_between_breaks():
    log = []

    def f(x):
        g = (x * k for k in range(4))
        a = next(g)
        note(log, 1)
        b = next(g)
        note(log, 2)
        return a, b, list(g)

    return f, lambda i: (x_of(i),), lambda: log


@case
def iterators_kept_between_breaks():
    log, outside = [], [1, 2, 3]

    def f(x):
        pairs = zip(outside, enumerate([x, x + 1, x + 2]))
        names = iter({"a": 1, "b": 2}.items())
        for k, (i, t) in pairs:
            note(log, k)
            x = x + t * k + i
            if k == 2:
                break
        return x, next(names), list(pairs)

    return f, lambda i: (x_of(i),), lambda: log


# ---- exceptions
@case
def raised_and_caught():
    class Own(Exception):
        def __init__(self, value):
            super().__init__("own", value)
            self.value = value

    def g(x):
        raise Own(x * 2)

    def f(x):
        try:
            return g(x)
        except Own as error:
            return error.value + 1, error.args[0]
        finally:
            x.add_(1)

    return f, lambda i: (x_of(i),)


@case
def raised_out():
    def f(x, i):
        y = x * 2
        if i == 1:
            raise ValueError(f"bad {i}") from KeyError("cause")
        return y

    return f, lambda i: (x_of(i), i)


@case
def reraised_after_break():
    log = []

    def f(x, i):
        try:
            if i:
                raise ValueError("inner")
            return x
        except ValueError as error:
            note(log, str(error))
            raise RuntimeError("outer") from error
        finally:
            note(log, "finally")

    return f, lambda i: (x_of(i), i), lambda: log


@case
def bare_raise_after_break():
    log = []

    def f(x, i):
        try:
            return x / (0 if i is None else 1) + (1 // i)
        except ZeroDivisionError:
            note(log, "caught")
            raise

    return f, lambda i: (x_of(i), i), lambda: log


@case
def errors_of_operators_caught():
    def f(x, y):
        try:
            return x @ y
        except RuntimeError:
            return x.sum() + y.sum()

    return f, lambda i: (x_of(i, 2, 3), x_of(i, 3 + i % 2, 2))


@case
def error_of_operator():
    def f(x, y):
        return (x * 2) + y

    return f, lambda i: (x_of(i, 3), x_of(i, 3 + i))


@case
def finally_order():
    log = []

    def f(x):
        for k in range(3):
            try:
                if k == 1:
                    continue
                x = x + k
            except ValueError:
                log.append("never")
            else:
                log.append(("else", k))
            finally:
                log.append(("finally", k))
        return x

    return f, lambda i: (x_of(i),), lambda: log


@case
def assertions():
    def f(x, n):
        assert n < 2, f"n is {n}"
        assert x.shape[0] == 3
        return x * n

    return f, lambda i: (x_of(i), i)


@case
def exception_groups():
    def f(x):
        try:
            raise ExceptionGroup("many", [ValueError("a"), KeyError("b")])
        except* ValueError as group:
            x = x + len(group.exceptions)
        except* KeyError:
            x = x * 2
        return x

    return f, lambda i: (x_of(i),)


@case
def exceptions_kept():
    def f(x):
        errors = []
        for k in range(2):
            try:
                raise ValueError(k)
            except ValueError as error:
                errors.append(error)
        return errors, x

    return f, lambda i: (x_of(i),)


# ---- contexts
class Logged:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, traceback):
        self.log.append(("exit", kind and kind.__name__))
        return self.swallow


@case
def context_of_a_class():
    log = []

    def f(x, i):
        with Logged(log) as a, Logged(log, True):
            x = x + len(a.log)
            if i:
                raise ValueError("swallowed")
        return x

    return f, lambda i: (x_of(i), i), lambda: log


@case
def context_with_break_inside():
    log = []

    def f(x):
        with Logged(log):
            x = x * 2
            note(log, "inside")
            x = x + 1
        return x

    return f, lambda i: (x_of(i),), lambda: log


@case
def contextmanager_functions():
    log = []

    @contextlib.contextmanager
    def scope(name):
        log.append(name)
        try:
            yield len(log)
        except ValueError:
            log.append("error")
        finally:
            log.append("end")

    def f(x, i):
        with scope("a") as n:
            x = x * n
            if i:
                raise ValueError
        with scope("b"), contextlib.suppress(KeyError):
            x = x + {}["no"]
        return x

    return f, lambda i: (x_of(i), i), lambda: log


@case
def contextmanager_with_break_inside():
    log = []

    @contextlib.contextmanager
    def scope():
        log.append("in")
        yield 3
        log.append("out")

    def f(x):
        with scope() as k:
            x = x * k
            note(log, "body")
            x = x + 1
        return x

    return f, lambda i: (x_of(i),), lambda: log


@case
def exit_stack():
    log = []

    def f(x):
        with contextlib.ExitStack() as stack:
            stack.enter_context(Logged(log))
            stack.callback(log.append, "callback")
            with contextlib.nullcontext(5) as n:
                x = x * n
        return x

    return f, lambda i: (x_of(i),), lambda: log


@case
def gradient_modes():
    def f(x):
        w = x.detach().requires_grad_()
        with torch.no_grad():
            a = w * 2
        with torch.enable_grad():
            b = w * 3
        with torch.set_grad_enabled(False):
            c = w * 4
        return a.requires_grad, b.requires_grad, c.requires_grad, a + c

    return f, lambda i: (x_of(i),)


@case
def no_grad_with_break_inside():
    log = []

    def f(x):
        with torch.no_grad():
            a = x * 2
            note(log, torch.is_grad_enabled())
            b = x * 3
        return a.requires_grad, b.requires_grad, x * 4, torch.is_grad_enabled()

    return f, lambda i: (x_of(i).requires_grad_(),), lambda: log


@case
def gradient_modes_as_decorators():
    @torch.no_grad()
    def g(x):
        return x * 2

    @torch.inference_mode()
    def h(x):
        return x * 3

    def f(x):
        return g(x).requires_grad, h(x) * 1, (x * 2).requires_grad

    return f, lambda i: (x_of(i).requires_grad_(),)


@case
def grad_mode_left_switched():
    def f(x, on):
        torch.set_grad_enabled(on)
        return x * 2

    def arguments(i):
        torch.set_grad_enabled(True)
        return x_of(i).requires_grad_(), i % 2 == 0

    def state():
        on = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        return on

    return f, arguments, state


@case
def autocast_context():
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
        return y.dtype, (x @ x).dtype, y.float()

    return f, lambda i: (x_of(i, 3, 3),)


@case
def grad_mode_of_caller_changes():
    def f(x):
        return x * 2, torch.is_grad_enabled()

    def run(x, i):
        with torch.set_grad_enabled(i != 1):
            return f(x)

    return run, lambda i: (x_of(i).requires_grad_(), i)


# ---- other worlds
@case
def warnings_inside():
    def f(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("careful", stacklevel=1)
        return x * 2, [str(w.message) for w in caught]

    return f, lambda i: (x_of(i),)


@case
def imports_inside():
    def f(x):
        import math
        from collections import OrderedDict as Table

        return x * math.pi, Table(a=1)

    return f, lambda i: (x_of(i),)


@case
def class_made_inside():
    def f(x):
        class Box:
            size = 3

            def __init__(self, v):
                self.v = v

        return Box(x).v * Box.size

    return f, lambda i: (x_of(i),)


@case
def f_strings():
    def f(x, n):
        return x, f"{n:>4}|{n!r}|{x.shape[0]:03d}|{'a' + str(n)}", "%d-%s" % (n, "q"), "{}:{k}".format(n, k=2)  # noqa: UP031, UP032

    return f, lambda i: (x_of(i), i)


@case
def text_of_tensors_and_objects():
    class P:
        def __init__(self, v):
            self.v = v

        def __repr__(self):
            return f"P({self.v})"

    p = P(1)

    def f(x):
        p.v += 1
        return f"{x.sum()}", f"{p}", f"{p!r:>8}", str(p), repr([p]), "%s" % p, "{}".format(p), x  # noqa: UP031, UP032

    return f, lambda i: (x_of(i),), lambda: p


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_language(make, backend: str) -> None:
    case.run(make, backend)


@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_language_with_frames_kept(make) -> None:
    case.run(make, "eager", nested=True)
