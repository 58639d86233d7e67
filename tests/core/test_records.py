"""Records: tuples with named fields."""

from __future__ import annotations

import pickle

import pytest

from pullback.core.records import Record


class Point(Record):
    """A point and its weight."""

    x: int
    y: int = 0
    weight: float = 1.0

    def shifted(self, by: int) -> Point:
        return self._replace(x=self.x + by)


def test_fields_are_given_by_position_by_name_and_by_default() -> None:
    assert tuple(Point(1, 2, 0.5)) == tuple(Point(1, weight=0.5, y=2)) == (1, 2, 0.5)
    assert tuple(Point(3)) == (3, 0, 1.0)


def test_a_record_is_a_tuple() -> None:
    x, y, weight = point = Point(1, 2)
    assert (x, y, weight) == (point.x, point.y, point.weight) == point
    assert hash(point) == hash((1, 2, 1.0)) and point == Point(1, 2) != Point(1, 3)
    assert repr(point) == "Point(x=1, y=2, weight=1.0)"


def test_a_record_does_not_change() -> None:
    with pytest.raises(AttributeError):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        Point(1).z = 2  # type: ignore[attr-defined]
    assert Point(1).shifted(2) == Point(3)


def test_a_record_is_pickled() -> None:
    restored = pickle.loads(pickle.dumps(Point(1, 2)))
    assert type(restored) is Point and restored == Point(1, 2)


@pytest.mark.parametrize("args, named", [((), {}), ((1, 2, 3, 4), {}), ((1,), {"x": 2}), ((1,), {"z": 2})])
def test_wrong_fields_are_refused_by_name(args: tuple, named: dict) -> None:
    with pytest.raises(TypeError, match="Point has the fields x, y, weight"):
        Point(*args, **named)
