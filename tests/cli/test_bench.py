"""The command `bench`: rows of times, ratios to the best of the others, a table and a picture; libraries in processes."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

import pullback as torch
from pullback.cli import bench_work, main
from pullback.cli.bench import Row, installed, measure, picture, table


@pytest.mark.parametrize("way", ["eager", "whole step"])
@pytest.mark.parametrize("case", ["small MLP", "LSTM", "GPT 2×64", "convnet", "chain of small operators"])
def test_cases_train(case, way, monkeypatch):
    monkeypatch.setenv("CC", "")  # what is built is not at issue
    found = bench_work.answer({}, torch, {"case": case, "way": way, "seconds": 0.0})
    assert found["seconds"] > 0 and found["first"] > 0


class Library:
    """A library that answers at once."""

    def __init__(self, name, *answers):
        self.name, self.answers, self.asked = name, iter(answers), []

    def ask(self, case, way, seconds):
        self.asked.append(way)
        return next(self.answers)


def filled():
    ours = Library("pullback", *({"seconds": s, "first": 1.0} for s in (4e-3, 2e-3, 1e-3, 5e-3, 1e-3, 3e-3)))
    theirs = Library(
        "torch", {"seconds": 2e-3, "first": 1.0}, {"error": "RuntimeError: no compiler"}, {"seconds": 3e-3}
    )
    row = Row("LSTM")
    measure(row, [ours, theirs, Library("jax")], rounds=2, seconds=0.1)
    return row, ours, theirs


def test_the_best_round_counts_and_what_fails_is_not_asked_again():
    row, ours, theirs = filled()
    assert row.best == {
        ("pullback", "eager"): 4e-3, ("pullback", "compiled"): 1e-3, ("pullback", "whole step"): 1e-3, ("torch", "eager"): 2e-3,
    }  # fmt: skip
    assert row.errors == {("torch", "compiled"): "RuntimeError: no compiler"}
    assert theirs.asked == ["eager", "compiled", "eager"]
    assert row.ratio() == 0.5


def test_table_and_picture_show_every_way():
    row, _, _ = filled()
    names = ["pullback", "torch"]
    shown = table([row], names)
    cells = [list(column.cells)[0] for column in shown.columns]
    assert cells == ["LSTM", "4 ms", "1 ms", "1 ms", "2 ms", "-", "0.50"]
    drawn = ElementTree.fromstring(picture([row], names))
    words = [e.text for e in drawn.iter() if e.text]
    assert "2.00" in words and "0.50" in words and "PyTorch, compiled" in words


def test_without_others_there_is_no_ratio():
    row = Row("LSTM", {("pullback", "eager"): 1e-3})
    assert row.ratio() is None and row.peer() is None
    assert [c.header for c in table([row], ["pullback"]).columns][-1] == "pullback\nwhole step"


def test_an_alias_is_not_another_library(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.13.0+pullback" if name == "torch" else "0.9")
    assert installed() == ["pullback", "jax"]


def test_the_command_times_and_writes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("pullback.cli.bench.installed", lambda: ["pullback"])
    files = tmp_path / "a.svg", tmp_path / "a.json"
    words = ["bench", "--only", "small mlp", "--rounds", "1", "--seconds", "0.001"]
    assert main([*words, "--picture", str(files[0]), "--json", str(files[1])]) == 0
    assert "PyTorch is not installed here" in capsys.readouterr().out
    (row,) = json.loads(files[1].read_text())
    assert set(row["times"]) == {"pullback, eager", "pullback, compiled", "pullback, whole step"}
    assert "small MLP" in files[0].read_text()


def test_a_word_that_no_case_has(capsys):
    assert main(["bench", "--only", "quantum"]) == 2
    assert "small MLP" in capsys.readouterr().out
