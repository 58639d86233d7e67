"""The demonstration learns its text, says so when it did not, and draws what happened."""

import math
import xml.etree.ElementTree

import pytest

import pullback as torch
from pullback.cli import demo, main
from pullback.cli.demo_model import LanguageModel, sample
from pullback.cli.loss_curve import as_svg, as_text


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as the command does
    yield
    torch.set_num_threads(before)


def test_it_learns_and_writes(capsys, tmp_path):
    picture = tmp_path / "loss.svg"
    assert demo.demo(steps=120, plain=True, picture=str(picture)) == 0
    out = capsys.readouterr().out
    assert "120 steps in" in out and "The keeper " in out and str(picture) in out
    assert xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg")


def test_what_the_compiler_made_of_the_step_is_a_page(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo.webbrowser, "open", lambda address: pytest.fail("there is no screen"))
    main(["demo", "--steps", "20", "--plain", "--html"])
    page = (tmp_path / "demo-report.html").read_text()
    assert (
        "demo-report.html" in capsys.readouterr().out
        and page.startswith("<!doctype html>")
        and "native code of a" in page
    )


def test_too_few_steps_are_not_called_a_success(capsys):
    assert demo.demo(steps=1, plain=True) == 1


def test_a_seed_decides_everything():
    def losses(seed):
        torch.manual_seed(seed)
        return demo.train(LanguageModel(len(demo.SYMBOLS), context=8, width=16), 3, lambda step, loss: None)[0]

    assert losses(1) == losses(1) != losses(2)


def test_compiled_steps_learn_the_same(tmp_path):
    def losses(compiled):
        torch.manual_seed(0)
        model = LanguageModel(len(demo.SYMBOLS), context=8, width=16)
        return demo.train(model, demo.EAGER + 4, lambda step, loss: None, compiled)[0]

    assert losses(True) == pytest.approx(losses(False), rel=1e-4)


def test_the_speed_is_told_once_there_is_something_to_tell():
    assert demo.speedup([1.0] * (demo.EAGER + 3)) is None
    told = demo.speedup([0.1] * demo.EAGER + [3.0, 1.0] + [0.02] * 20)
    assert "5.0 times as fast" in told and "4.0 s of compiling" in told


def test_the_model_never_looks_ahead():
    model = LanguageModel(len(demo.SYMBOLS))
    text = demo.encode(demo.TEXT[:48]).unsqueeze(0)
    with torch.no_grad():
        torch.testing.assert_close(model(text)[:, :20], model(text[:, :20]))
    assert demo.decode(sample(model, text, 5)[0]).startswith(demo.TEXT[:48])


def test_pairs_of_letters_leave_what_they_should():
    assert demo.pair_entropy("abababab") == 0.0
    assert math.isclose(demo.pair_entropy("aabba"), math.log(2))


def test_steps_must_be_a_count(capsys):
    with pytest.raises(SystemExit):
        main(["demo", "--steps", "0"])
    assert "above zero" in capsys.readouterr().err


def test_the_curve_falls_on_the_page():
    lines = as_text([3.0, 2.0, 1.0], width=3, height=3).split("\n")
    assert [line[9:] for line in lines[:3]] == ["•", " •", "  •"]
    assert lines[0].startswith("  3.000") and lines[2].startswith("  1.000")


def test_what_is_not_finite_leaves_a_gap():
    assert as_text([1.0, math.nan, 2.0]).count("•") == 2
    assert as_svg([1.0, 2.0, math.nan, math.inf, 1.0]).count("<polyline") == 2
    assert "nan" not in as_svg([math.nan]) and as_text([1.0])
