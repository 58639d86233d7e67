"""Steps are the same small set in every version, with targets that are steps and handlers that are found."""

import gc
import sys
import types

from pullback.capture.bytecode.assembled import binder, instruction
from pullback.capture.bytecode.machine import HANDLERS
from pullback.capture.bytecode.steps import exception_table, steps_of
from tests.capture.bytecode import programs

JUMPS = {"JUMP", "FOR_ITER", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE"}


def codes(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes(const)


def all_codes():
    for function in programs.PROGRAMS.values():
        yield from codes(function.__code__)


def test_every_step_has_a_handler():
    assert {step.name for code in all_codes() for step in steps_of(code)} - set(HANDLERS) == set()


def test_targets_are_steps():
    for code in all_codes():
        steps = steps_of(code)
        for step in steps:
            if step.name in JUMPS:
                assert 0 <= step.arg < len(steps)


def test_handlers_come_from_the_exception_table():
    def f():
        try:
            print()
        except ValueError:
            return 1

    steps = steps_of(f.__code__)
    place = next(i for i, step in enumerate(steps) if step.name == "CALL")
    target, depth, with_place = steps.handler(place)
    assert (steps[target].name, depth, with_place) == ("PUSH_EXC_INFO", 0, False)
    assert steps.handler(0) is None or steps[0].name != "LOAD_CONST"
    assert all(start < end for start, end, *_ in exception_table(f.__code__))


def test_calls_have_one_form():
    def f(g, x):
        return g(x, 1, k=2), x.m(3), g(*x, **x)

    found = [step.arg for step in steps_of(f.__code__) if step.name.startswith("CALL")]
    assert found == [(3, ("k",)), (1, ()), True]


def test_lines_are_those_of_the_source():
    def f(a):
        b = a + 1

        return b

    first = f.__code__.co_firstlineno
    assert {step.line - first for step in steps_of(f.__code__)} == {1, 3}


def test_steps_are_kept_as_long_as_their_code():
    from pullback.capture.bytecode import steps

    code = compile("def f(): return 1", "f.py", "exec").co_consts[0]  # never run: who watches code keeps what ran
    key = id(code)
    assert steps_of(code) is steps_of(code)
    assert key in steps._cache
    del code
    gc.collect()
    assert key not in steps._cache


def test_assembled_code_has_the_lines_that_it_says():
    """A tracing function walks the table of lines: one that does not fit would be read past its end."""
    traced = []

    def trace(frame, event, arg):
        traced.append(frame.f_lineno)
        return trace

    def f(a, *b, c=1, **d):
        x = [a + 1 for a in range(100)]
        return x

    code = binder(f.__code__)
    assert [(start, end) for start, end, _ in code.co_lines()] == [(0, len(code.co_code))]
    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        bound = types.FunctionType(code, {})
        found = bound(1, 2, c=3, e=4)
        matched = instruction("CHECK_EXC_MATCH", 0, 2, (("SWAP", 2), ("POP_TOP", 0)))(ValueError(), Exception)
    finally:
        sys.settrace(previous)
    assert found == (1, 3, (2,), {"e": 4}) and matched is True
    assert traced
