"""Settings: names, changes for a block, changes for tests."""

import copy
import pickle
import warnings

import pytest

from pullback.core.settings import Settings


def make() -> Settings:
    return Settings("part", depth=3, name="x")


def test_unknown_names_raise() -> None:
    s = make()
    with pytest.raises(AttributeError, match="part has no setting 'deep'; did you mean 'depth'"):
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


DYNAMO = "torch._dynamo.config"


def of_pytorch() -> Settings:
    group = Settings(f"{DYNAMO}.part", depth=1)
    return Settings(DYNAMO, recompile_limit=8, part=group, inert=dict(verbose=False))


def warned(change) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        change()
    assert all(w.filename == __file__ for w in seen)
    return [str(w.message) for w in seen]


def test_a_setting_without_effect_says_so_once_when_it_is_changed() -> None:
    s = of_pytorch()
    assert warned(lambda: setattr(s, "verbose", False)) == []  # that is what is done here
    assert warned(lambda: setattr(s, "verbose", True)) == [f"{DYNAMO}.verbose has no effect here"]
    assert warned(lambda: setattr(s, "verbose", 2)) == [] and s.verbose == 2
    assert warned(lambda: setattr(s, "recompile_limit", 9)) == []


def test_a_name_that_only_pytorch_has_is_accepted_with_a_warning() -> None:
    s = of_pytorch()
    with pytest.raises(AttributeError, match="PyTorch has, but here it has no effect"):
        s.reorderable_logging_functions
    assert not hasattr(s, "reorderable_logging_functions")
    with pytest.warns(UserWarning, match="reorderable_logging_functions has no effect"):
        with s.patch(reorderable_logging_functions={1}):
            assert s.reorderable_logging_functions == {1}
    assert not hasattr(s, "reorderable_logging_functions")
    with pytest.raises(AttributeError, match="no setting 'recompile_limits'; did you mean 'recompile_limit'"):
        s.recompile_limits = 3
    with pytest.raises(AttributeError, match="did you mean 'reorderable_logging_functions'"):
        s.reorderable_loging_functions = ()


def test_settings_of_groups() -> None:
    s = Settings("torch._inductor.config", cpp=Settings("torch._inductor.config.cpp", threads=-1))
    with s.patch({"cpp.threads": 3}):
        assert s.cpp.threads == 3
    assert s.cpp.threads == -1
    with pytest.warns(UserWarning, match="torch._inductor.config.trace.enabled has no effect"):
        s.trace.enabled = True  # a group that only PyTorch has
    with pytest.raises(AttributeError, match="did you mean 'threads'"):
        s.patch("cpp.thread", 1)
    assert s.to_dict() == {"cpp.threads": -1, "trace.enabled": True}


def test_settings_are_saved_and_loaded() -> None:
    s = of_pytorch()
    saved, copied = s.save_config(), s.get_config_copy()
    s.recompile_limit, s.part.depth = 3, 5
    s.load_config(saved)
    assert (s.recompile_limit, s.part.depth) == (8, 1) and s.to_dict() == copied
    assert pickle.loads(pickle.dumps(s)).recompile_limit == copy.deepcopy(s).recompile_limit == 8


def test_every_setting_that_is_not_inert_is_read() -> None:
    from pathlib import Path

    import pullback
    from pullback.capture.front.config import config, native
    from pullback.joint.config import config as joint

    files = [
        p for p in Path(pullback.__file__).parent.rglob("*.py") if p.name not in ("config.py", "known_settings.py")
    ]
    text = "\n".join(p.read_text() for p in files)
    for settings in (config, native, native.cpp, joint):
        for name in set(settings._defaults) - settings._inert:
            assert f".{name}" in text, f"{settings._where}.{name} is read by nobody: make it inert"
