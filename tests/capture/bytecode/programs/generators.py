"""yield, send, throw, close, delegation."""

# ruff: noqa

import sys

from .table import program


@program
def generators():
    def count(n):
        try:
            for i in range(n):
                got = yield i
                log.append(got)
            return "end"
        finally:
            log.append("closed")

    log = []
    g = count(3)
    first = next(g), g.send("sent"), list(g)
    h = count(5)
    next(h)
    h.close()
    k = count(1)
    next(k)
    try:
        next(k)
    except StopIteration as e:
        log.append(e.value)
    try:
        next(k)
    except StopIteration as e:
        log.append(e.value)
    return first, log, [x for x in count(2)], next(count(0), "default")


@program
def generator_throws():
    def g():
        while True:
            try:
                got = yield
                log.append(got)
            except ValueError as e:
                log.append(e.args)
                yield "handled"

    log = []
    a = g()
    next(a)
    a.send(1)
    log.append(a.throw(ValueError("v")))
    try:
        a.throw(KeyError("k"))
    except KeyError as e:
        log.append(repr(e))
    log.append(list(a))
    b = g()
    try:
        b.throw(ValueError("unstarted"))
    except ValueError as e:
        log.append(repr(e))
    try:
        g().send(1)
    except TypeError as e:
        log.append(str(e))
    return log


@program
def delegation():
    def inner(n):
        try:
            got = yield n
            log.append(("inner", got))
            yield n + 1
        except KeyError:
            log.append("inner caught")
            yield "recovered"
        finally:
            log.append("inner closed")
        return "result"

    def outer():
        r = yield from inner(1)
        log.append(r)
        s = yield from [10, 20]
        log.append(s)
        r = yield from inner(5)
        return r

    log = []
    g = outer()
    out = [next(g), g.send("x"), next(g), next(g), next(g), g.throw(KeyError("t"))]
    try:
        next(g)
    except StopIteration as e:
        out.append(e.value)
    h = outer()
    next(h)
    h.close()
    return out, log


@program
def delegation_throw_ends_inner():
    def inner():
        try:
            yield 1
        except ValueError:
            return "ended"

    def outer():
        r = yield from inner()
        yield r
        try:
            yield from iter([1, 2])
        except KeyError as e:
            yield e.args

    g = outer()
    out = [next(g), g.throw(ValueError), next(g), g.throw(KeyError("q"))]
    return out, list(g)


@program
def generator_errors():
    def stops():
        yield 1
        raise StopIteration("inside")

    def itself():
        yield next(g)

    def ignores():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    out = []
    try:
        list(stops())
    except RuntimeError as e:
        out.append((e.args, repr(e.__cause__)))
    g = itself()
    try:
        next(g)
    except ValueError as e:
        out.append(e.args)
    k = ignores()
    next(k)
    try:
        k.close()
    except RuntimeError as e:
        out.append(e.args)
    k.close()

    def raises():
        yield 1
        1 / 0

    for loop in (lambda: [x for x in raises()], lambda: list(raises()), lambda: dict(raises())):
        try:
            loop()
        except (ZeroDivisionError, TypeError) as e:
            out.append(repr(e))
    return out


@program
def generator_handles_exceptions():
    def g():
        try:
            1 / 0
        except ZeroDivisionError:
            yield sys.exc_info()[0].__name__
            yield repr(sys.exc_info()[1])
        yield sys.exc_info()[0]

    out = list(g())
    try:
        raise KeyError("outside")
    except KeyError:
        a = g()
        out += [next(a), repr(sys.exc_info()[1]), next(a), next(a)]
    return out


@program
def generator_pipeline():
    def numbers(n):
        yield from range(n)

    def squares(xs):
        for x in xs:
            yield x * x

    def tree(depth):
        if depth:
            yield from tree(depth - 1)
            yield depth
            yield from tree(depth - 1)

    a = squares(x for x in numbers(6) if x % 2)
    return (
        list(a),
        list(tree(3)),
        dict(zip("abc", numbers(9))),
        list(enumerate(squares([1, 2]))),
        ",".join(str(x) for x in numbers(3)),
    )


@program
def generator_abandoned():
    log = []

    def g():
        try:
            yield 1
        finally:
            log.append("dropped")

    for x in g():
        break
    a = g()
    next(a)
    del a
    return log


@program
def context_of_what_is_thrown():
    def f():
        try:
            raise KeyError("a")
        except KeyError:
            yield

    def g():
        yield from f()

    out = []
    for make in (f, g):
        a = make()
        next(a)
        try:
            a.throw(ValueError("thrown"))
        except ValueError as e:
            out.append(repr(e.__context__))
    return out
