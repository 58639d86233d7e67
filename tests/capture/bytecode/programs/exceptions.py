"""try in all its forms, contexts, groups, context managers."""

# ruff: noqa

import contextlib
import sys

from .table import program


@program
def try_forms():
    out = []

    def f(n):
        try:
            out.append("try")
            if n == 1:
                raise ValueError(n)
            if n == 2:
                raise KeyError(n)
            if n == 3:
                return "returned"
            if n == 4:
                raise OSError(n)
        except ValueError as e:
            out.append(e.args)
        except (KeyError, IndexError):
            out.append("lookup")
            return "from except"
        else:
            out.append("else")
        finally:
            out.append("finally")
        return "end"

    for n in range(5):
        try:
            out.append(f(n))
        except OSError as e:
            out.append(e)
    return out


@program
def finally_returns():
    def f():
        try:
            1 / 0
        finally:
            return "swallowed"

    def g():
        for i in range(3):
            try:
                if i == 1:
                    continue
                if i == 2:
                    break
            finally:
                out.append(i)
        return "left"

    def h():
        try:
            return out
        finally:
            out.append("late")

    def k():
        while True:
            try:
                return 1
            finally:
                break
        return 2

    out = []
    return f(), g(), list(h()), k()


@program
def contexts():
    def chain(error):
        out = []
        while error is not None:
            out.append((type(error).__name__, error.args, error.__suppress_context__, type(error.__cause__).__name__))
            error = error.__context__
        return out

    out = []
    try:
        try:
            1 / 0
        except ZeroDivisionError:
            raise KeyError("second")
    except KeyError as e:
        out.append(chain(e))
    try:
        try:
            1 / 0
        except ZeroDivisionError as e:
            raise KeyError("third") from e
    except KeyError as e:
        out.append(chain(e))
    try:
        try:
            [][0]
        except IndexError:
            raise KeyError from None
    except KeyError as e:
        out.append(chain(e))
    try:
        try:
            {}["x"]
        except KeyError:
            int("no")
    except ValueError as e:
        out.append(chain(e))
    return out


def fails(n):
    if n == 0:
        raise ValueError("deep")
    try:
        fails(n - 1)
    except ValueError as e:
        raise RuntimeError(n)


@program
def escaping_with_context():
    try:
        {}[0]
    except KeyError:
        int("x")


@program
def escaping_chain():
    try:
        try:
            1 / 0
        finally:
            None.attribute
    except AttributeError as e:
        raise LookupError("last") from e


@program
def bare_raise():
    out = []

    def again():
        raise

    try:
        try:
            1 / 0
        except ZeroDivisionError as e:
            e.add_note("noted")
            raise
    except ZeroDivisionError as e:
        out.append((e.__notes__, e.__context__))
    try:
        try:
            int("q")
        except ValueError:
            again()
    except ValueError as e:
        out.append((e.args, e.__context__))
    try:
        raise
    except RuntimeError as e:
        out.append(e.args)
    try:
        again()
    except RuntimeError as e:
        out.append(e.args)
    return out


@program
def raise_forms():
    class Mine(Exception):
        def __init__(self, x=0):
            super().__init__(x, "mine")

    out = []
    for what in (Mine, Mine(3), 5, int, None, "text"):
        try:
            raise what
        except Exception as e:
            out.append((type(e).__name__, e.args))
        try:
            raise what from ValueError
        except Exception as e:
            out.append((type(e).__name__, e.args, type(e.__cause__).__name__))
        try:
            raise KeyError from what
        except Exception as e:
            out.append((type(e).__name__, e.args, type(e.__cause__).__name__))
    return out


@program
def exception_variable():
    e = "before"
    try:
        raise ValueError(1)
    except ValueError as e:
        pass
    try:
        return e
    except UnboundLocalError as error:
        return str(error)


@program
def wrong_except_class():
    try:
        try:
            1 / 0
        except 5:
            pass
    except TypeError as e:
        return e.args, type(e.__context__)


@program
def exc_info_in_handler():
    out = [sys.exc_info()[0]]

    def inside():
        return sys.exc_info()[1]

    try:
        1 / 0
    except ZeroDivisionError as e:
        out.append(sys.exc_info()[1] is e)
        out.append(inside() is e)
        try:
            [].pop()
        except IndexError as f:
            out.append(sys.exc_info()[1] is f)
        out.append(sys.exc_info()[1] is e)
    out.append(sys.exc_info()[0])
    return out


@program
def nested_handlers():
    out = []
    for i in range(4):
        try:
            try:
                try:
                    if i == 0:
                        raise ValueError(i)
                    if i == 1:
                        raise KeyError(i)
                    out.append(("fine", i))
                except ValueError as e:
                    out.append(("inner", i))
                    raise TypeError(i) from e
                finally:
                    out.append(("f1", i))
                    if i == 2:
                        raise OSError(i)
            except KeyError as e:
                out.append(("outer", i))
        except (TypeError, OSError) as e:
            out.append((type(e).__name__, e.__context__, e.__cause__))
    return out


@program
def exception_groups():
    out = []
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2), ExceptionGroup("h", [ValueError(3), OSError(4)])])
        except* ValueError as e:
            out.append(("values", [type(x).__name__ for x in e.exceptions]))
        except* KeyError as e:
            out.append(("keys", sys.exc_info()[1] is e, len(e.exceptions)))
    except BaseException as e:
        out.append((type(e).__name__, e.args[0], repr(e.exceptions)))
    try:
        raise TypeError("bare")
    except* TypeError as e:
        out.append((type(e).__name__, e.exceptions[0].args))
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError:
            raise OSError("new")
        except* KeyError:
            raise
    except BaseException as e:
        out.append(repr(e))
    try:
        out.append("ok")
    except* ValueError:
        out.append("never")
    else:
        out.append("else")
    finally:
        out.append("finally")
    return out


class Manager:
    def __init__(self, log, name, swallow=False, fail=None):
        self.log, self.name, self.swallow, self.fail = log, name, swallow, fail

    def __enter__(self):
        self.log.append(("enter", self.name))
        if self.fail == "enter":
            raise RuntimeError("enter")
        return self.name

    def __exit__(self, kind, value, traceback):
        self.log.append(("exit", self.name, kind and kind.__name__, value and value.args))
        if self.fail == "exit":
            raise RuntimeError("exit")
        return self.swallow


@program
def with_blocks():
    log = []
    with Manager(log, "a") as a, Manager(log, "b"):
        log.append(a)
    with Manager(log, "swallow", swallow=True):
        raise ValueError("gone")
    for how in ("enter", "exit"):
        try:
            with Manager(log, "outer"):
                with Manager(log, how, fail=how):
                    log.append("body")
                    raise KeyError("body")
        except Exception as e:
            log.append((repr(e), repr(e.__context__)))

    def returns():
        for i in range(5):
            with Manager(log, i):
                if i == 0:
                    continue
                if i == 1:
                    return i

    log.append(returns())
    return log


@program
def with_errors():
    class NoExit:
        def __enter__(self):
            return 1

    out = []
    for what in (5, NoExit()):
        try:
            with what:
                pass
        except TypeError as e:
            out.append(str(e))
    return out


@program
def context_managers():
    log = []

    @contextlib.contextmanager
    def managed(name):
        log.append(("in", name))
        try:
            yield name.upper()
        except KeyError as e:
            log.append(("caught", e.args))
        finally:
            log.append(("out", name))

    with managed("x") as x:
        log.append(x)
    with managed("y"):
        raise KeyError("k")
    try:
        with managed("z"):
            raise ValueError("v")
    except ValueError as e:
        log.append(repr(e))
    with contextlib.suppress(IndexError):
        [][1]
    with contextlib.ExitStack() as stack:
        stack.enter_context(managed("s"))
        stack.callback(log.append, "callback")
    with contextlib.nullcontext(3) as n:
        log.append(n)
    return log


@program
def global_function_calls():
    out = []
    try:
        fails(3)
    except RuntimeError as e:
        while e:
            out.append(repr(e))
            e = e.__context__
    return out


@program
def group_raised_again():
    out = []
    try:
        try:
            raise ExceptionGroup("eg", [TypeError(1), ValueError(2)])
        except* TypeError as e:
            raise
        except* ValueError:
            pass
    except ExceptionGroup as e:
        out.append((e.message, repr(e.exceptions)))
    try:
        try:
            raise ExceptionGroup("eg", [TypeError(1), ValueError(2)])
        except* TypeError as e:
            raise e
    except ExceptionGroup as e:
        out.append((e.message, repr(e.exceptions)))
    return out
