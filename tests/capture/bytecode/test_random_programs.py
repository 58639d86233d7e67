"""Random programs of loops, exceptions, contexts and arithmetic: interpreted, broken or not, they do what Python does."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.capture.bytecode.compare import outcome
from tests.capture.bytecode.test_machine import run_refused, run_whole

NAMES = ("a", "b", "c")
PRELUDE = """
class M:
    def __init__(self, log, swallow):
        self.log, self.swallow = log, swallow
    def __enter__(self):
        self.log.append("in")
        return len(self.log)
    def __exit__(self, kind, value, traceback):
        self.log.append(("out", kind and kind.__name__))
        return self.swallow

def program():
    log = []
    a, b, c, fuel = 1, 2, 3, 60
    try:
        result = body(log, fuel, a, b, c)
    except Exception as error:
        return log, error
    return log, result

def gen(log, n, fuel):
    try:
        for i in range(n % 4):
            got = yield i
            log.append(got)
    finally:
        log.append("gone")
    return n

"""

expressions = st.recursive(
    st.sampled_from([*NAMES, "0", "1", "2", "7", "len(log)"]),
    lambda inner: st.one_of(
        st.builds(
            "({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "//", "%", "<", "==", "and", "or", "&"]), inner
        ),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("sum(x + {} for x in range({} % 4))".format, inner, inner),
        st.builds("len([x for x in range({} % 5) if x % 2 or {}])".format, inner, inner),
        st.builds("(lambda x, *y, z={}: x - z + len(y))({}, {})".format, inner, inner, inner),
        st.builds("(-{})".format, inner),
        st.builds("list(gen(log, {}, fuel))[-1]".format, inner),
    ),
    max_leaves=6,
)
ERRORS = ("ZeroDivisionError", "ValueError", "IndexError", "(KeyError, TypeError)", "Exception")


def indent(lines):
    return ["    " + line for line in lines]


def block(statements):
    return [line for statement in statements for line in statement] or ["pass"]


simple = st.one_of(
    st.builds(lambda n, e: [f"{n} = {e}"], st.sampled_from(NAMES), expressions),
    st.builds(lambda n, o, e: [f"{n} {o}= {e}"], st.sampled_from(NAMES), st.sampled_from("+-*"), expressions),
    st.builds(lambda e: [f"log.append({e})"], expressions),
    st.builds(lambda e: [f"return {e}"], expressions),
    st.builds(lambda e, x: [f"if {x}:", f"    raise ValueError({e})"], expressions, expressions),
    st.builds(lambda e, x: [f"if {x}:", f"    raise KeyError({e}) from IndexError(1)"], expressions, expressions),
    st.just(["raise"]),
    st.builds(lambda n: [f"del {n}"], st.sampled_from(NAMES)),
    st.builds(
        lambda m, n, e: [f"{m}, *{n} = range({e} % 3)", f"{n} = len({n})"],
        st.sampled_from("ab"),
        st.just("c"),
        expressions,
    ),
)


def compound(inner):
    blocks = st.lists(inner, min_size=1, max_size=3).map(block)
    leave = st.sampled_from([["pass"], ["break"], ["continue"], ["pass"]])
    return st.one_of(
        st.builds(lambda e, x, y: [f"if {e}:", *indent(x), "else:", *indent(y)], expressions, blocks, blocks),
        st.builds(
            lambda n, e, x, c, l, y: [f"for {n} in range({e} % 4):", *indent(x), f"    if {c}:", *indent(indent(l)), "else:", *indent(y)],
            st.sampled_from(NAMES), expressions, blocks, expressions, leave, blocks,
        ),
        st.builds(
            lambda e, x, l: ["while fuel > 0:", "    fuel -= 1", f"    if not {e}:", "        break", *indent(x), *indent(l)],
            expressions, blocks, leave,
        ),
        st.builds(
            lambda x, k, y, z, w: ["try:", *indent(x), f"except {k} as error:", "    log.append(repr(error))", *indent(y), "else:", *indent(z), "finally:", *indent(w)],
            blocks, st.sampled_from(ERRORS), blocks, blocks, blocks,
        ),
        st.builds(lambda x, y: ["try:", *indent(x), "finally:", *indent(y)], blocks, blocks),
        st.builds(lambda s, n, x: [f"with M(log, {s}) as {n}:", *indent(x)], st.booleans(), st.sampled_from(NAMES), blocks),
        st.builds(lambda n, e, x: [f"for {n} in gen(log, {e}, fuel):", *indent(x)], st.sampled_from(NAMES), expressions, blocks),
        st.builds(
            lambda e, x: ["def inner():", "    nonlocal a, b", *indent([line.replace("return", "b =") for line in x]), f"    return {e}", "c = inner()"],
            expressions, blocks,
        ),
    )  # fmt: skip


bodies = st.lists(st.recursive(simple, compound, max_leaves=10), min_size=1, max_size=5).map(block)


def compiled(body):
    source = PRELUDE + "\n".join(["def body(log, fuel, a, b, c):", *indent(body), "    return a, b, c", ""])
    space = {"__name__": "random_program"}
    try:
        exec(compile(source, "<random>", "exec"), space)
    except SyntaxError:  # a nonlocal of a name that is deleted, and its like
        return None, source
    return space["program"], source


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(bodies)
def test_random_programs_do_what_they_do_in_python(body):
    program, source = compiled(body)
    if program is None:
        return
    expected = outcome(program)
    assert outcome(lambda: run_whole(program)) == expected, source
    assert outcome(lambda: run_refused(program, False)) == expected, source
    assert outcome(lambda: run_refused(program, True)) == expected, source
