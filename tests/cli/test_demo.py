"""The demonstration fits its curve, and says so when it did not."""

from pullback.cli import demo


def test_the_fit_reaches_the_noise(capsys):
    assert demo.demo(plain=True) == 0
    out = capsys.readouterr().out
    assert "●" in out and "400 steps" in out


def test_too_few_steps_are_not_called_a_success():
    assert demo.demo(steps=1, plain=True) == 1


def test_plot_places_marks_at_the_edges():
    lines = demo.plot([0.0, 1.0], [0.0, 0.0], [1.0, 0.5], width=5, height=3).split("\n")
    assert lines == ["  ●", "      ●", "  ·   ·"]
