"""Every program of the table, run by the machine, does what it does in Python; broken anywhere, it goes on the same."""

import functools

from pullback.capture.bytecode.binding import frame_of
from pullback.capture.bytecode.frame import NULL, Frame
from pullback.capture.bytecode.machine import Machine, interpret, native_step
from pullback.capture.bytecode.world import Break, World
from tests.capture.bytecode.compare import outcome
from tests.capture.bytecode.programs import PROGRAMS

LONG = {"endless_recursion", "wide_names"}


def differing(run, programs=PROGRAMS):
    """Programs whose outcome under `run` is not that of a native call."""
    found = {}
    for name, function in programs.items():
        expected = outcome(function)
        got = outcome(functools.partial(run, function))
        if got != expected:
            found[name] = (expected, got)
    return found


def run_whole(function):
    return Machine(World(), [frame_of(function, (), {})]).run()


def test_programs_do_what_they_do_in_python():
    assert differing(run_whole) == {}


# Breaks.


class Refusing(World):
    """Refuses the first operation that it is asked for while it is armed."""

    armed = True


def refusing(name):
    plain = getattr(World, name)

    def operation(self, *args, **kwargs):
        if self.armed and self.machine is not None and self.machine.outer is None:
            self.armed = False
            raise Break(name)
        return plain(self, *args, **kwargs)

    return operation


for _name in vars(World):
    if not _name.startswith("_") and _name not in ("machine", "enters", "mark_nested", "undo_nested", "call_now"):
        setattr(Refusing, _name, refusing(_name))


class Rearming(Machine):
    def step(self):
        super().step()
        if self.outer is None:
            self.world.armed = True


class BreakingAt(Machine):
    """Breaks before the step with number `at`, in the machine that is run first."""

    at = None

    def step(self):
        if self.outer is None and self.count == self.at:
            raise Break("here")
        super().step()


def state(frames):
    return [(frame.index, list(frame.stack), dict(frame.locals), frame.waiting) for frame in frames]


def run_refused(function, natively):
    """Every step breaks once, at the first thing that it asks; then it is executed by a new machine, or natively."""
    world = Refusing()
    frames = [frame_of(function, (), {})]
    while True:
        try:
            return Rearming(world, frames).run()
        except Break:
            pass
        if natively:
            how, value = native_step(frames)
            if how == "returned":
                return value
            world.armed = True


def test_broken_at_every_step():
    assert differing(functools.partial(run_refused, natively=False)) == {}


def test_broken_at_every_step_and_stepped_over_natively():
    assert differing(functools.partial(run_refused, natively=True)) == {}


def run_broken_at(function, at):
    frames = [frame_of(function, (), {})]
    machine = BreakingAt(World(), frames)
    machine.at = at
    try:
        return machine.run()
    except Break:  # going on in here would make the break the context of what is raised later
        frames[:] = [frame.copy() if frame.generator is None else frame for frame in frames]
    return Machine(World(), frames).run()


def test_broken_once_at_each_step():
    for name, function in PROGRAMS.items():
        counted = Machine(World(), [frame_of(function, (), {})])
        expected = outcome(counted.run)
        if counted.count > 400 or name in LONG:
            continue
        for at in range(counted.count):
            assert outcome(functools.partial(run_broken_at, function, at)) == expected, (name, at)


def test_a_break_leaves_the_frames_as_they_were():
    class NoCalls(World):
        def call(self, function, args, kwargs):
            raise Break("no calls")

    def f(a):
        try:
            return [a, len((a, a)), a]
        except BaseException:
            return "caught"

    frames = [frame_of(f, (3,), {})]
    machine = Machine(NoCalls(), frames)
    for _ in range(2):
        before = None
        try:
            machine.run()
        except Break as stop:
            assert stop.reason == "no calls"
            assert machine.frames is frames and frames[0].current.name == "CALL"
            assert before is None or before == state(frames)
            before = state(frames)
    assert frames[0].stack[0] == 3 and frames[0].stack.count(NULL) == 1
    assert frames[0].where().endswith("in test_a_break_leaves_the_frames_as_they_were.<locals>.f")
    assert frames[0].line == f.__code__.co_firstlineno + 2
    assert Machine(World(), frames).run() == [3, 2, 3]


def test_a_subclass_may_take_another_exception_for_a_break():
    class Stop(Exception):
        pass

    class Stopping(Machine):
        def breaks(self, exception):
            return isinstance(exception, Stop) or super().breaks(exception)

    class Refuses(World):
        def binary(self, name, a, b, inplace):
            raise Stop

    def f(x):
        try:
            return x + 1
        except Exception:
            return "caught"

    frames = [frame_of(f, (1,), {})]
    assert outcome(Stopping(Refuses(), frames).run)[0] == "raised"
    assert Machine(World(), frames).run() == 2
    assert Machine(Refuses(), [frame_of(f, (1,), {})]).run() == "caught"


def test_a_frame_can_be_rebuilt_from_plain_data():
    def f(n):
        total = 0
        for i in range(n):
            total += i
        return total

    frames = [frame_of(f, (5,), {})]
    while frames:
        old = frames[0]
        rebuilt = Frame(old.code, old.globals, dict(old.locals), dict(old.cells), list(old.stack), old.index)
        how, value = native_step([rebuilt])
        if how == "returned":
            break
        frames = [rebuilt]
    assert value == 10


def test_calls_do_not_recurse():
    """Frames are pushed: the depth of the real stack stays that of one step."""

    def down(n):
        return 0 if n == 0 else 1 + down(n - 1)

    assert interpret(down, 500) == 500


def test_steps_are_counted():
    def f():
        return 1

    counts = []
    for _ in range(2):
        machine = Machine(World(), [frame_of(f, (), {})])
        machine.run()
        counts.append(machine.count)
    assert counts[0] == counts[1] == 2


def test_the_place_of_a_waiting_frame_is_its_call():
    seen = []

    class Looking(World):
        def load_global(self, frame, name):
            if name == "len":
                seen.extend(one.line - one.code.co_firstlineno for one in self.machine.frames)
            return super().load_global(frame, name)

    def inner():
        x = [1]
        return len(x)

    def outer():
        y = 1

        z = inner()
        return y + z

    assert Machine(Looking(), [frame_of(outer, (), {})]).run() == 2
    assert seen == [3, 2]


def test_call_now_runs_in_the_same_world():
    class Adding(World):
        def binary(self, name, a, b, inplace):
            if hasattr(type(a), "__add__") and type(a).__module__ == __name__:
                return self.call_now(type(a).__add__, (a, b))
            return super().binary(name, a, b, inplace) * 10

    class Number:
        def __init__(self, x):
            self.x = x

        def __add__(self, other):
            return self.x + other

    def f():
        return Number(1) + 2

    assert Machine(Adding(), [frame_of(f, (), {})]).run() == 30


def test_async_breaks():
    async def f():
        await g()

    async def g():
        return 1

    for function in (f,):
        try:
            Machine(World(), [frame_of(function, (), {})]).run()
        except Break as stop:
            assert stop.reason.startswith("async")
        else:
            raise AssertionError("no break")
