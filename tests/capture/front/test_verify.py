"""`config.verify`: each compiled call is compared with an uncompiled one, and leaves no more behind than one call does."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.front.config import config
from pullback.capture.front.verify import VerificationError

COUNT = 0


@pytest.fixture(autouse=True)
def verify():
    with config.patch(verify=True):
        yield


def wrong(change):
    """A backend whose graphs give something else."""

    def backend(gm, examples):
        return lambda *args: tuple(change(o) if isinstance(o, torch.Tensor) else o for o in gm(*args))

    return backend


def test_a_right_program_passes_and_has_its_effects_once(capsys):
    log, table = [], {}

    def f(x, table, result):
        global COUNT
        COUNT += 1
        table["calls"] = table.get("calls", 0) + 1
        log.append(table["calls"])
        result.append(x * 2)
        print("called")
        return x.sin() * table["calls"] + torch.rand(3)

    global COUNT
    COUNT, result = 0, []
    compiled = torch.compile(f, backend="aot_eager")
    for _ in range(3):
        x = torch.ones(3, requires_grad=True)
        compiled(x, table, result).sum().backward()
    assert (COUNT, table, log, len(result)) == (3, {"calls": 3}, [1, 2, 3], 3)
    assert torch.allclose(x.grad, x.detach().cos() * 3)
    assert capsys.readouterr().out == "called\n" * 3


def test_modules_with_state():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5))
    compiled = torch.compile(model, backend="aot_eager")
    for _ in range(3):
        compiled(torch.randn(4, 3)).sum().backward()
    assert model[1].num_batches_tracked.item() == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t + 1, r"its result is tensor\(\[3., 3.\]"),
        (lambda t: t.double(), "its result.dtype is torch.float64, not torch.float32"),
        (lambda t: t.detach(), "its result.requires_grad is False, not True"),
        (lambda t: t * 1 + (t - t.detach()), "the gradient of tensor 0 of its arguments"),
    ],
)
def test_a_wrong_result_raises(change, words):
    with pytest.raises(VerificationError, match=words):
        torch.compile(lambda x: x * 2, backend=wrong(change))(torch.ones(2, requires_grad=True))


def test_a_wrong_effect_raises():
    kept = []

    def f(x):
        kept.append(x * 2)
        return x

    with pytest.raises(VerificationError, match=r"the variable 'kept' around it\[0\] is tensor"):
        torch.compile(f, backend=wrong(lambda t: t + 1))(torch.ones(2))


def test_errors_are_the_programs_own():
    def f(x):
        x.mul_(2)
        raise ValueError("no")

    x = torch.ones(2)
    with pytest.raises(ValueError, match="no"):
        torch.compile(f, backend="eager")(x)
    assert x.tolist() == [2.0, 2.0]


def test_results_of_earlier_calls_are_copied_with_a_history():
    x = torch.ones(3, requires_grad=True)
    result = torch.compile(lambda t: t.mul_(3), backend="aot_eager")(x * 2)
    result.sum().backward()
    assert x.grad.tolist() == [6.0] * 3


def test_what_cannot_be_copied_is_said():
    def numbers():
        yield 1.0

    with pytest.warns(RuntimeWarning, match="is not checked: a .* cannot be copied"):
        assert torch.compile(lambda x, it: x * next(it), backend="eager")(torch.ones(1), numbers()).tolist() == [1.0]
