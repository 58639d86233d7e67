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


def test_packages_that_ask_for_torch(monkeypatch):
    class Installed:
        def __init__(self, name, version, *requires):
            self.metadata, self.version, self.requires = {"Name": name}, version, requires

    installed = [
        Installed("Some_Package", "1.0", "torch>=2"),
        Installed("other", "2.0", "torch; python_version > '3'", "numpy"),
        Installed("third", "1", "torch; extra == 'gpu'", "torchvision"),
        Installed("fourth", "3.1", "torch"),
    ]
    monkeypatch.setattr(doctor.importlib.metadata, "distributions", lambda: installed)
    monkeypatch.setattr(doctor, "TRIED", {"some-package": ("0.9", ""), "fourth": ("3.1", "stops at once")})
    assert doctor._for_torch() == (
        "run as on PyTorch: Some_Package 1.0 (tried: 0.9), fourth 3.1: stops at once; "
        "not tried: other (`pullback scan NAME` lists what they would miss)"
    )
