"""The doctor answers every question, and a broken tool is an answer too."""

from pullback.cli import doctor


def test_every_question_is_answered():
    found = doctor.findings()
    assert found.keys() == doctor.QUESTIONS.keys()
    assert all(found.values())
    assert not [answer for answer in found.values() if answer.startswith("could not be read")]


def test_a_broken_tool_is_a_finding(monkeypatch):
    def broken():
        raise OSError("no such tool")

    monkeypatch.setitem(doctor.QUESTIONS, "GPU", broken)
    assert doctor.findings()["GPU"] == "could not be read: OSError: no such tool"


def test_the_table_prints(capsys):
    assert doctor.doctor() == 0
    assert "BLAS" in capsys.readouterr().out
