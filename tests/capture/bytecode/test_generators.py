"""Interpreted generators behave as real ones, also towards native code and across breaks."""

import contextlib
import gc
import inspect
import types
import weakref

import pullback as torch
from pullback.capture.bytecode.binding import frame_of
from pullback.capture.bytecode.frame import Frame
from pullback.capture.bytecode.generators import Generator
from pullback.capture.bytecode.machine import Machine, interpret
from pullback.capture.bytecode.world import Break, World
from pullback.surface.compiler import graph_break


def counting(n, log=None):
    try:
        for i in range(n):
            got = yield i
            if log is not None:
                log.append(got)
        return "end"
    finally:
        if log is not None:
            log.append("closed")


def made(*args):
    return interpret(counting, *args)


def test_it_is_a_generator_to_those_who_ask():
    g = made(3)
    assert type(g) is Generator and isinstance(g, types.GeneratorType) and inspect.isgenerator(g)
    assert iter(g) is g and repr(g).startswith("<generator object counting")
    assert (g.__name__, g.gi_code, g.gi_running) == ("counting", counting.__code__, False)


def test_native_code_may_consume_it_after_the_run():
    assert list(made(3)) == [0, 1, 2]
    assert sum(made(4)) == 6
    log = []
    g = made(2, log)
    assert (next(g), g.send("x")) == (0, 1)
    g.close()
    assert log == ["x", "closed"]
    assert list(g) == []


def test_what_nobody_holds_is_closed_at_once():
    log = []
    gc.disable()
    try:
        g = made(2, log)
        next(g)
        del g
        assert log == ["closed"]
    finally:
        gc.enable()


def test_a_finished_generator_lets_go_of_its_locals():
    class Thing:
        pass

    def holding():
        thing = Thing()
        yield weakref.ref(thing)

    def consume(close):
        g = holding()
        found = list(zip(g))[0][0] if not close else next(g)
        g.close()
        return found(), g is not None

    for close in (False, True):
        assert interpret(consume, close) == (None, True)


def test_a_loop_runs_the_generator_in_the_same_machine():
    depths = []

    class Looking(World):
        def load_global(self, frame, name):
            if name == "range":
                depths.append((len(self.machine.frames), self.machine.outer is None))
            return super().load_global(frame, name)

    def loop():
        return [x + 0 for x in counting(2)]

    def native():
        return list(zip(counting(2), "ab"))

    assert Machine(Looking(), [frame_of(loop, (), {})]).run() == [0, 1]
    assert depths[0][0] >= 2 and depths[0][1]
    del depths[:]
    assert Machine(Looking(), [frame_of(native, (), {})]).run() == [(0, "a"), (1, "b")]
    assert depths == [(1, False)]


def test_a_break_in_a_nested_run_puts_generators_back():
    """What a native consumer took from a generator is taken again when its step is executed again."""

    class RefusesOnce(World):
        refused = False
        undone = []

        def mark_nested(self):
            return "mark"

        def undo_nested(self, mark):
            self.undone.append(mark)

        def binary(self, name, a, b, inplace):
            if b == 100 and not self.refused:
                self.refused = True
                raise Break("once")
            return super().binary(name, a, b, inplace)

    def numbers():
        n = 0
        n += 1
        yield n
        n += 1
        yield n
        yield n + 100

    def outer():
        g = numbers()
        first = next(g)
        return first, list(g)

    world = RefusesOnce()
    frames = [frame_of(outer, (), {})]
    try:
        Machine(world, frames).run()
    except Break:
        pass
    assert world.refused and world.undone == ["mark"] and len(frames) == 1
    assert Machine(world, frames).run() == (1, [2, 102])


def test_exceptions_leave_no_cycles():
    """What only a cycle keeps alive would be closed late."""

    def f():
        try:
            1 / 0
        except ZeroDivisionError:
            int("x")

    def half():
        g = counting(2)
        next(g)
        try:
            g.throw(ValueError)
        except ValueError:
            pass
        h = counting(2)
        next(h)
        h.close()

    gc.collect()
    gc.disable()
    frames = lambda: [one for one in gc.get_objects() if type(one) is Frame]
    try:
        others = frames()  # of whatever else was compiled in this process
        for _ in range(3):
            try:
                interpret(f)
            except ValueError:
                pass
            interpret(half)
        assert [one for one in frames() if not any(one is other for other in others)] == []
    finally:
        gc.enable()


def test_a_break_between_values_leaves_both_frames():
    class NoCalls(World):
        def call(self, function, args, kwargs):
            if function is len:
                raise Break("len")
            return super().call(function, args, kwargs)

    def lengths(xs):
        for x in xs:
            yield len(x)

    def outer():
        return [n * 2 for n in lengths(["a", "bb"])]

    frames = [frame_of(outer, (), {})]
    try:
        Machine(NoCalls(), frames).run()
    except Break:
        pass
    assert frames[-1].code is lengths.__code__ and frames[-1].current.name == "CALL"
    assert Machine(World(), frames).run() == [2, 4]


def test_a_generator_made_by_a_compiled_function_may_compile():
    """The machine that advances it runs the package itself, which captures meanwhile, as it is."""

    def values(x):
        y = x.sin()
        yield torch.compile(lambda v: v.cos() * 2, backend="eager")(y)
        yield list(map(torch.compile(lambda v: v.exp(), backend="aot_eager"), [y, y * 2]))

    x = torch.linspace(0, 1, 3)
    found = list(torch.compile(values, backend="eager")(x))
    assert torch.equal(found[0], x.sin().cos() * 2) and torch.equal(found[1][1], (x.sin() * 2).exp())


def test_what_a_dropped_generator_does_is_done_once_per_call():
    seen = []

    @contextlib.contextmanager
    def block(x):
        try:
            seen.append(x)
            yield x
        finally:
            graph_break()
            seen.append(x.cos())

    def steps(x):
        try:
            yield x + 1
            yield x + 2
        finally:
            seen.append(x.cos())

    def with_block(x):
        with block(x) as y:
            return y.sin()

    def by_hand(x):
        manager = block(x)
        y = manager.__enter__()
        manager.__exit__(None, None, None)
        return y * 2

    def left_alone(x):
        return next(steps(x)) * 2

    def left_by_break(x):
        for v in steps(x):  # noqa: B007
            break
        return v * len(seen)

    def deleted(x):
        it = steps(x)
        y = next(it)
        del it
        return y * len(seen)

    def given_away(x):
        it = steps(x)
        next(it)
        return next(it), it

    for f in (with_block, by_hand, left_alone, left_by_break, deleted, given_away):
        runs = []
        for call in (f, torch.compile(f, backend="eager")):
            seen.clear()
            results = [float(torch.as_tensor(call(torch.ones(1))[0]).sum()) for _ in range(3)]
            gc.collect()
            runs.append((results, [round(float(t), 5) for t in seen]))
        assert runs[0] == runs[1], f.__name__
