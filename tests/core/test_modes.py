"""Ambient state: blocks and decorators set it and give it back, on every way out and in every thread."""

from __future__ import annotations

import threading

import pytest

import pullback as torch


@pytest.mark.parametrize(
    ("block", "inside"), [(torch.no_grad, False), (torch.enable_grad, True), (torch.inference_mode, False)]
)
def test_blocks_give_the_mode_back(block, inside) -> None:
    assert torch.is_grad_enabled()
    with block():
        assert torch.is_grad_enabled() is inside
    assert torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), block():
        1 / 0
    assert torch.is_grad_enabled()


def test_decorators_and_generators() -> None:
    @torch.no_grad()
    def function():
        return torch.is_grad_enabled()

    @torch.no_grad()
    def generator():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    assert function() is False
    seen = []
    for value in generator():
        seen.append((value, torch.is_grad_enabled()))
    assert seen == [(False, True)] * 2


def test_set_grad_enabled_works_as_a_call_and_as_a_block() -> None:
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_each_thread_has_its_own() -> None:
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_nothing_is_recorded_without_grad() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        y = x * 2
    assert y.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        (x * y).sum().backward()
