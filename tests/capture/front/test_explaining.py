"""`compile(..., explain=True)`: the account of a compiled function, backward included."""

import pullback as torch
from pullback.core import events


def wave(x):
    return (x.sin() * 2).sum()


def test_a_function_says_what_became_of_it(tmp_path):
    compiled = torch.compile(wave, explain=True)
    x = torch.ones(3, requires_grad=True)
    compiled(x).backward()
    account = compiled.explain(tmp_path / "report.html")
    assert account.functions[0].name == "wave" and {"captured", "joint"} <= {g.kind for g in account.graphs}
    assert "wave" in (tmp_path / "report.html").read_text() and not events.listeners
    assert compiled.explain() is account


def test_a_module_and_a_decorator_do_too():
    @torch.compile(explain=True, backend="eager")
    def double(x):
        return x * 2

    model = torch.compile(torch.nn.Linear(2, 1), explain=True, backend="eager")
    assert torch.equal(double(torch.ones(2)), torch.full((2,), 2.0)) and model(torch.ones(1, 2)).shape == (1, 1)
    assert model.explain().graphs and double.explain().functions
    assert not events.listeners


def test_without_it_there_is_no_account():
    assert not hasattr(torch.compile(wave), "explain") and not events.listeners
