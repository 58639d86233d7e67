"""Random programs with much Python in them do, compiled, what they do: a few of them, within a time limit."""

from __future__ import annotations

import time

import pytest

from tests.capture.fuzz import KINDS, TARGETS, differences, generate

SECONDS = 6  # for each target; `python -m tests.capture.fuzz` runs as many as wanted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_programs_are_what_they_were(target, kind):
    started = time.time()
    for seed in range(100):
        source = generate(seed, kind=kind)
        found = differences(source, target)
        assert not found, f"seed {seed}: {found[0]}\n{source.partition('def program')[2]}"
        if time.time() - started > SECONDS:
            break


# Programs that once differed: (seed, length, target).
FOUND = [(2, 7, "eager"), (1065, 7, "aot_eager"), (53, 12, "aot_eager"), (53, 12, "compiled autograd")]


@pytest.mark.parametrize(("seed", "length", "target"), FOUND)
def test_found(seed, length, target):
    assert not differences(generate(seed, length), target)


def test_a_difference_is_found():
    source = generate(0).replace("def program(", "def unused(") + "\nimport random\ndef program(x, box, items, step):\n"
    assert differences(source + "    return x * random.random()\n", "eager")
