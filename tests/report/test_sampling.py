"""Profiles: seconds add up, fall to the right kind of work, and name the program's lines."""

import sys
import time

import numpy as np

import pullback as torch
from pullback.report.flame import data_of, flame_page
from pullback.report.sampling import KINDS, Profile, kind_of, program_frames, sampling


def busy(seconds: float) -> int:
    count, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        count += 1
    return count


def test_seconds_add_up_and_name_lines():
    begun = time.perf_counter()
    with sampling() as profile:
        busy(0.3)
    taken = time.perf_counter() - begun
    assert 0 < profile.seconds <= taken and profile.looks > 3
    assert abs(sum(profile.by_kind.values()) - profile.seconds) < 1e-6 and set(profile.by_kind) <= set(KINDS)
    assert profile.by_kind["Python"] > 0.5 * profile.seconds
    assert any(file == __file__ and name == "busy" for file, _, name in profile.by_line)
    assert abs(profile.root.seconds - profile.seconds) < 1e-9


def test_time_inside_numpy_is_of_the_line_that_calls_it():
    profile = Profile()

    def look(*_):
        profile.add(sys._getframe(1), 1.0)  # the stack that ends in NumPy
        return 0

    np.apply_along_axis(look, 0, np.zeros((1, 1)))
    ((file, _, name),) = profile.by_line
    assert file == __file__ and name.startswith("test_time_inside_numpy")


def kinds_inside(call) -> str:
    """What a stack that ends in an operator, a hook or a loader is said to do."""
    seen = []
    call(lambda *_: seen.append(kind_of(program_frames(sys._getframe(1)))))
    return seen[0]


def test_kinds():
    x = torch.ones(3, requires_grad=True)

    def in_hook(look):
        y = (x * 2).sum()
        y.register_hook(look)
        y.backward()

    class Data(torch.utils.data.Dataset):
        def __init__(self, look):
            self.look = look

        def __len__(self):
            return 1

        def __getitem__(self, i):
            self.look()
            return 0

    assert kinds_inside(in_hook) == "engine"
    assert kinds_inside(lambda look: list(torch.utils.data.DataLoader(Data(look)))) == "data loading"
    assert kinds_inside(lambda look: look()) == "Python"


def test_the_page_holds_the_numbers():
    profile = Profile()
    profile.add(sys._getframe(), 1.5)
    data = data_of(profile)
    assert data["kinds"] == [["Python", 1.5]] and data["lines"][0][0] == __file__
    assert "</script>" in flame_page(profile) and '"seconds": 1.5' in flame_page(profile)
