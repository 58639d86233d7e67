"""Random programs behave the same as they are and in every form that the compiler gives them."""

import pytest

from tests.joint.generator import generate
from tests.joint.programs import Line, Program, shrink
from tests.joint.targets import TARGETS

CHUNKS, CHUNK = 20, 100
NAMES = tuple(TARGETS)
# What is known to differ, and is no error: seed -> why
KNOWN: dict[int, str] = {}


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_compiled_is_eager(chunk):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        if seed in KNOWN:
            continue
        program, target = generate(seed), NAMES[seed % len(NAMES)]
        reasons = TARGETS[target](program)
        assert not reasons, f"{target}, seed {seed}: {reasons}\n{program.source()}"


def test_a_seed_makes_one_program():
    assert generate(7) == generate(7)
    assert generate(7).source() != generate(8).source()


def test_programs_cover_what_they_are_for():
    text = "".join(generate(seed).source() for seed in range(300))
    for part in (
        "_()",
        "no_grad",
        "def g",
        "out=",
        ".data",
        ".detach()",
        "batch_norm",
        "as_strided",
        "view_as_real",
        "dropout",
        "> 0] =",
    ):
        assert part in text, part


def test_shrinking_keeps_what_fails():
    program = Program(
        0,
        (Line("a1 = torch.ones(2)"), Line("a2 = torch.ones(3)")),
        ("a1", "a2"),
        (Line("v3 = a1 + 1"), Line("v4 = a2 * 2"), Line("v3.add_(v4.sum())"), Line("v5 = v3.sin()")),
        ("v5", "v4"),
    )
    small = shrink(program, lambda p: any(line.text == "v4 = a2 * 2" for line in p.body))
    assert [line.text for line in small.body] == ["v4 = a2 * 2"]
    assert small.arguments == ("a2",) and small.results == ()


def test_a_wrong_form_is_seen():
    """The comparison itself can fail: a form that forgets a write, or an alias, differs."""
    from tests.joint.compare import differences, observe

    program = Program(
        0,
        (Line("a1 = torch.ones(2)"),),
        ("a1",),
        (Line("a1.add_(1)"), Line("v2 = a1.view(2)")),
        ("v2",),
    )
    seen = observe(program, lambda f, make: f)
    assert not differences(seen, observe(program, lambda f, make: f))
    assert differences(seen, observe(program, lambda f, make: lambda a: f(a.clone())))
    assert differences(seen, observe(program, lambda f, make: lambda a: [r.clone() for r in f(a)]))
