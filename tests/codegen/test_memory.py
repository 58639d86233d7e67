"""Buffers that live at the same time never share memory, and those that do not live together do."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.codegen import memory
from pullback.codegen.memory import bytes_of, in_parts, in_use, lifetimes, plan
from pullback.core import dtype as dtypes
from pullback.ops.lowering.loops import Buffer


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 2000), st.integers(0, 20), st.integers(0, 6)), min_size=1, max_size=25))
def test_places_of_the_living_are_apart(given_spans):
    buffers = [Buffer(f"b{n}", dtypes.float32, size) for n, (size, _, _) in enumerate(given_spans)]
    order: list = [(set(), set()) for _ in range(30)]
    for b, (_, first, length) in zip(buffers, given_spans, strict=True):
        order[first][0].add(b)
        order[first + length][1].add(b)
    offsets, total = plan(order, set())
    spans = lifetimes(order)
    for b, start in offsets.items():
        assert start % 64 == 0 and start + bytes_of(b) <= total
        for other, place in offsets.items():
            together = spans[b][0] <= spans[other][1] and spans[other][0] <= spans[b][1]
            if other is not b and together:
                assert start + bytes_of(b) <= place or place + bytes_of(other) <= start


def test_memory_is_used_again():
    a, b = Buffer("a", dtypes.float32, 100), Buffer("b", dtypes.float32, 100)
    offsets, total = plan([({a}, set()), (set(), {a}), ({b}, set()), (set(), {b})], set())
    assert offsets[a] == offsets[b] == 0 and total == bytes_of(a)


def test_what_the_caller_gives_has_no_place():
    a = Buffer("a", dtypes.float32, 100)
    assert plan([({a}, set())], {a}) == ({}, 0)


def test_bytes_in_use_rise_and_fall():
    """What is read for the last time counts until then; a result of the caller's counts to the end; what comes in does not."""
    x, a, b, out = (Buffer(name, dtypes.float32, 1024, "temporary") for name in ("x", "a", "b", "out"))
    order = [({a}, {x}), ({b}, {a}), ({out}, {b}), ({a}, {x})]
    assert in_use(order[:3], {x}, {out}) == [4096, 8192, 8192]
    assert in_use([({out}, {x}), ({a}, {x}), ({b}, {a})], {x}, {out}) == [4096, 8192, 12288]
    assert max(in_use(order[:3], {x}, {out})) - 4096 <= plan(order[:3], {x, out})[1]


def _chain(monkeypatch, count: int):
    """A backward of `count` steps, each with one value that it reads last and that is larger than what it writes; the last writes two
    that are as large as all."""
    monkeypatch.setattr(memory, "LEAST", 64)
    monkeypatch.setattr(memory, "WORTH", 64)
    saved = [Buffer(f"s{n}", dtypes.float32, 1000) for n in range(count)]
    steps = [Buffer(f"t{n}", dtypes.float32, 200) for n in range(count)]
    wide = [Buffer(f"w{n}", dtypes.float32, 1500) for n in range(2)]
    order = [({t}, {s, *steps[max(n - 1, 0) : n]}) for n, (s, t) in enumerate(zip(saved, steps, strict=True))]
    return saved, [*order, ({wide[0]}, {steps[-1]}), ({wide[1]}, {wide[0]})]


def test_arenas_are_as_late_as_what_came_in_is_gone(monkeypatch):
    saved, order = _chain(monkeypatch, 6)
    parts = in_parts(order, set(saved), set(), set(saved))
    assert parts is not None and parts.dead == [{saved[0]}, set(saved[1:4])] and parts.cuts == [1, 4]
    gone = [0, *accumulate(sum(map(bytes_of, dead)) for dead in parts.dead)]
    needed = [sum(parts.arenas[: k + 1]) - gone[k] for k in range(3)]
    assert max(needed) == parts.arenas[0] == bytes_of(Buffer("t", dtypes.float32, 200)) < plan(order, set(saved))[1]


def test_places_in_parts_are_apart_and_in_arenas_that_are_there(monkeypatch):
    saved, order = _chain(monkeypatch, 9)
    parts = in_parts(order, set(saved), set(), set(saved[:7]))
    spans, starts = lifetimes(order), [0, *accumulate(parts.arenas)]
    for b, start in parts.offsets.items():
        arena = max(k for k, at in enumerate(starts[:-1]) if at <= start)
        assert start + bytes_of(b) <= starts[arena + 1] and spans[b][0] >= [0, *parts.cuts][arena]
        for other, place in parts.offsets.items():
            if other is not b and spans[b][0] <= spans[other][1] and spans[other][0] <= spans[b][1]:
                assert start + bytes_of(b) <= place or place + bytes_of(other) <= start


def test_one_arena_will_do_where_nothing_is_gone_before_most_is_needed(monkeypatch):
    saved, order = _chain(monkeypatch, 4)
    assert in_parts(order, set(saved), set(), set()) is None
    assert in_parts(order[::-1], set(saved), set(), set(saved)) is None


def test_results_are_made_with_the_part_that_writes_them_and_count_from_then_on(monkeypatch):
    saved, order = _chain(monkeypatch, 6)
    early, late = Buffer("early", dtypes.float32, 100), Buffer("late", dtypes.float32, 5000)
    order = [({early}, {saved[0]}), *order, ({late}, {saved[5]})]
    kept = {early, late}
    parts = in_parts(order, set(saved), kept, set(saved))
    assert parts is not None and kept.isdisjoint(parts.offsets)
    assert early in parts.born[0] and late in parts.born[-1] and sum(map(len, parts.born)) == 2
    ends = [*parts.cuts, len(order)]
    spans = lifetimes(order)
    assert all(spans[b][0] < ends[k] for k, born in enumerate(parts.born) for b in born)
