"""What inference mode makes of tensors from outside of it, and of the wish to record inside of it."""

from __future__ import annotations

import pytest

import pullback as torch


@pytest.mark.parametrize("view", [lambda t: t.detach(), lambda t: t.data, lambda t: t.view(-1), lambda t: t[0]])
@pytest.mark.parametrize("compiles", [False, True])
def test_a_view_of_a_tensor_from_outside_is_no_inference_tensor(view, compiles) -> None:
    weight = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        kept = (torch.compile(view, backend="aot_eager") if compiles else view)(weight)
    assert not kept.is_inference()
    assert (weight * kept.detach()).requires_grad  # it may be saved for a gradient, and written
    kept.detach().add_(1)


@pytest.mark.parametrize("switch", [torch.enable_grad, lambda: torch.set_grad_enabled(True)])
def test_nothing_is_recorded_in_inference_mode_whatever_is_asked_for(switch) -> None:
    weight = torch.ones(3, requires_grad=True)
    with torch.inference_mode():
        with switch():
            assert torch.is_grad_enabled() and torch.is_inference_mode_enabled()
            made = torch.ones(3) * weight
            assert not made.requires_grad and made.is_inference()
            assert torch.func.grad(lambda x: (x * x).sum())(torch.ones(2)).tolist() == [2, 2]
            with torch.inference_mode(False):
                assert (weight * 2).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled() and (weight * 2).requires_grad


def test_compiled_functions_do_as_they_are_called() -> None:
    weight = torch.ones(3, requires_grad=True)

    @torch.compile(backend="aot_eager")
    def f(x):
        with torch.enable_grad():
            inside = torch.is_grad_enabled(), x * weight
        return inside, torch.is_grad_enabled()

    with torch.inference_mode():
        (enabled, made), after = f(torch.ones(3))
        assert enabled and not after and not made.requires_grad
        with torch.enable_grad():
            assert f(torch.ones(3))[1]
    assert f(torch.ones(3))[0][1].requires_grad
