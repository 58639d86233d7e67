"""The ratchet fails on what is lost, tries a lost test twice, and only ever raises the records."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / ".ci" / "ratchet.py"


@pytest.fixture
def ratchet(tmp_path, monkeypatch):
    """The module with records in a folder of its own; `play` sets what the reference commands would answer."""
    spec = importlib.util.spec_from_file_location("ratchet", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "SHARED", tmp_path)
    monkeypatch.setattr(module, "PASSING", tmp_path / "passing.txt")
    monkeypatch.setattr(module, "FLOORS", tmp_path / "floors.json")
    monkeypatch.setattr(sys, "argv", ["ratchet"])

    def play(suites=(), counts="", passing=(), floors=None):
        rounds = iter(suites)

        def run(command):
            if command[0] != "conformance/run":
                return counts
            log = Path(command[command.index("--json") + 1])
            log.write_text("".join(json.dumps({"test": t, "outcome": o}) + "\n" for t, o in next(rounds)))
            return ""

        monkeypatch.setattr(module, "run", run)
        module.PASSING.write_text("\n".join(["# comment", *passing]) + "\n")
        module.FLOORS.write_text(json.dumps(floors or {}))

    module.play = play
    return module


def test_a_test_that_still_passes_is_fine(ratchet, capsys):
    ratchet.play([[("aot::a", "pass"), ("aot::b", "pass"), ("aot::c", "fail")]], passing=["aot::a"])
    assert ratchet.main() == 0
    assert "1 more than on record" in capsys.readouterr().out


def test_a_lost_test_fails_after_two_tries(ratchet, capsys):
    ratchet.play([[("aot::a", "fail")], [("aot::a", "hang")]], passing=["aot::a"])
    assert ratchet.main() == 1
    assert "lost  aot::a: hang" in capsys.readouterr().out


def test_a_second_try_may_save_it(ratchet):
    ratchet.play([[("aot::a", "hang")], [("aot::a", "pass")]], passing=["aot::a"])
    assert ratchet.main() == 0


def test_a_name_that_several_tests_share_passes_only_if_all_do(ratchet):
    rows = [("aot::a", "fail"), ("aot::a", "pass")]
    ratchet.play([rows, rows], passing=["aot::a"])
    assert ratchet.main() == 1


def test_a_listed_test_that_is_gone_is_lost(ratchet, capsys):
    ratchet.play([[], []], passing=["aot::a"])
    assert ratchet.main() == 1
    assert "aot::a: not there" in capsys.readouterr().out


def test_counts_are_held_at_their_floors(ratchet):
    said = "7 of 9 operators agree in full, 0 are missing; 70 of 90 cases agree"
    ratchet.play(counts=said, floors={"vectors": {"operators": 7, "cases": 70}})
    assert ratchet.main() == 0
    ratchet.play(counts=said, floors={"vectors": {"operators": 8, "cases": 70}})
    assert ratchet.main() == 1


def test_a_check_that_breaks_counts_as_nothing(ratchet):
    ratchet.play(counts="Traceback", floors={"expressions": {"agree": 1}})
    assert ratchet.main() == 1


def test_update_raises_and_never_lowers(ratchet, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["ratchet", "--update", "--add", "aot", "expressions"])
    rows = [("aot::b", "pass"), ("aot::a", "fail")]
    ratchet.play([rows, rows], "5 of 9 agree; 0 errors", passing=["aot::a"], floors={"random": {"agree": 9}})
    assert ratchet.main() == 1
    assert ratchet.PASSING.read_text().split() == ["aot::a", "aot::b"]
    assert json.loads(ratchet.FLOORS.read_text()) == {"expressions": {"agree": 5}, "random": {"agree": 9}}


def test_without_reference_material_there_is_nothing_to_hold(ratchet, monkeypatch, tmp_path):
    monkeypatch.setattr(ratchet, "SHARED", tmp_path / "absent")
    assert ratchet.main() == 0
