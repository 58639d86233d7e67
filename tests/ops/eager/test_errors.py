"""What a user sees of an error: one traceback, with the lines of generated functions in it."""

from __future__ import annotations

import traceback

import pytest

import pullback as torch

F = torch.nn.functional
CALLS = {
    "add": lambda: torch.ones(2) + torch.ones(3),
    "mul": lambda: torch.mul(torch.ones(2), torch.ones(3)),
    "add_": lambda: torch.ones(2).add_(torch.ones(3)),
    "lt": lambda: torch.ones(2) < torch.ones(3),
    "where": lambda: torch.where(torch.ones(2) > 0, torch.ones(3), torch.ones(4)),
    "lerp": lambda: torch.lerp(torch.ones(2), torch.ones(3), 0.5),
    "mm": lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 3)),
    "matmul": lambda: torch.ones(2, 3) @ torch.ones(2, 3),
    "bmm": lambda: torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 3, 4)),
    "addmm": lambda: torch.addmm(torch.ones(2), torch.ones(2, 3), torch.ones(2, 3)),
    "linear": lambda: F.linear(torch.ones(2, 3), torch.ones(2, 2)),
    "cat": lambda: torch.cat([torch.ones(2, 3), torch.ones(3, 2)]),
    "stack": lambda: torch.stack([torch.ones(2), torch.ones(3)]),
    "view": lambda: torch.ones(4).view(3),
    "reshape": lambda: torch.ones(4).reshape(3),
    "transpose": lambda: torch.ones(4).transpose(0, 3),
    "permute": lambda: torch.ones(4, 2).permute(0, 0),
    "expand": lambda: torch.ones(4).expand(3),
    "squeeze": lambda: torch.ones(4).squeeze(3),
    "select": lambda: torch.ones(4)[5],
    "index": lambda: torch.ones(4)[torch.tensor([5])],
    "sum": lambda: torch.ones(4).sum(3),
    "softmax": lambda: F.softmax(torch.ones(4), 3),
    "layer_norm": lambda: F.layer_norm(torch.ones(4), (3,)),
    "embedding": lambda: F.embedding(torch.tensor([9]), torch.ones(2, 2)),
    "gather": lambda: torch.gather(torch.ones(2, 2), 0, torch.tensor([[7, 7]])),
    "cross_entropy": lambda: F.cross_entropy(torch.ones(2, 3), torch.zeros(3, dtype=torch.int64)),
    "conv2d": lambda: F.conv2d(torch.ones(1, 2, 4, 4), torch.ones(1, 3, 2, 2)),
    "wrong type": lambda: torch.mul(torch.ones(2), "2"),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_error_is_one_traceback(name: str) -> None:
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as caught:
        CALLS[name]()
    text = "".join(traceback.format_exception(caught.value))
    assert text.count("Traceback (most recent call last)") == 1, text


@pytest.mark.parametrize(("label", "call"), [("torch.mul", CALLS["mul"]), ("Tensor.__add__", CALLS["add"])])
def test_a_traceback_shows_the_line_of_a_generated_function(label: str, call) -> None:
    with pytest.raises(RuntimeError):
        call()  # the first call of a function is its stub's
    with pytest.raises(RuntimeError) as caught:
        call()
    frames = [f for f in traceback.extract_tb(caught.value.__traceback__) if f.filename == f"<pullback: {label}>"]
    assert len(frames) == 1
    assert frames[0].line.startswith(("return ", "out_ = ")), frames
    assert frames[0].name == label.rpartition(".")[2]
