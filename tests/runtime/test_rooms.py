"""Programs that run one after the other work in one memory, and leave none behind."""

from __future__ import annotations

from pullback.runtime import rooms
from pullback.runtime.rooms import LARGE, Rooms


class Owner:
    """Something that can die."""


def bytes_kept() -> int:
    return sum(len(memory) for memory, _ in rooms._free)


def test_large_memory_is_shared_and_grows_to_what_the_largest_needs():
    before, first, second = bytes_kept(), Owner(), Owner()
    size = before + LARGE
    small, large = Rooms(first, size), Rooms(second, 2 * size)
    room = small.take()
    assert len(room[0]) >= size and room[1] % 64 == 0
    small.give(room)
    larger = large.take()
    assert len(larger[0]) >= 2 * size
    large.give(larger)
    assert small.take() is larger
    small.give(larger)
    assert bytes_kept() == 2 * size
    del second, large
    assert bytes_kept() < 2 * size
    del first, small, room
    assert bytes_kept() <= before


def test_two_calls_at_once_have_memory_of_their_own():
    owner = Owner()
    shared = Rooms(owner, 3 * LARGE)
    one, other = shared.take(), shared.take()
    assert one[1] != other[1]
    shared.give(one)
    shared.give(other)
    del owner


def test_small_memory_stays_with_its_program():
    one, other = Rooms(Owner(), 100), Rooms(Owner(), 100)
    room = one.take()
    one.give(room)
    assert other.take() is not room and one.take() is room
