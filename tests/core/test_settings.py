"""Settings: names, changes for a block, changes for tests."""

import pytest

from pullback.core.settings import Settings


def make() -> Settings:
    return Settings("part", depth=3, name="x")


def test_unknown_names_raise() -> None:
    s = make()
    with pytest.raises(AttributeError, match="part.config has no setting 'deep'"):
        s.deep = 1
    with pytest.raises(AttributeError, match="no setting 'deep'"):
        s.deep  # noqa: B018
    with pytest.raises(AttributeError, match="no setting 'deep'"):
        s.patch(deep=1)


def test_patch_restores_after_errors() -> None:
    s = make()
    with pytest.raises(ZeroDivisionError), s.patch(depth=5, name="y"):
        assert (s.depth, s.name) == (5, "y")
        1 / 0  # noqa: B018
    assert (s.depth, s.name) == (3, "x")


def test_patch_forms_nest() -> None:
    s = make()
    with s.patch("depth", 1), s.patch({"depth": 2}):
        assert s.depth == 2
    assert s.depth == 3


def test_patch_decorates_functions_and_test_cases() -> None:
    s = make()

    @s.patch(depth=7)
    def read() -> int:
        return s.depth

    @s.patch(depth=8)
    class Case:
        def test_it(self) -> int:
            return s.depth

        def other(self) -> int:
            return s.depth

    assert (read(), Case().test_it(), Case().other(), s.depth) == (7, 8, 3, 3)


def test_delete_gives_the_default_back() -> None:
    s = make()
    s.depth = 9
    del s.depth
    assert s.depth == 3
