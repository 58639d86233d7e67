"""Custom functions under autocast, how a mode is entered by hand, and what it refuses."""

import pytest

import pullback as torch
from pullback.amp.autocast import enter_autocast, exit_autocast


def test_a_custom_function_runs_as_its_forward_was_called():
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a @ a

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            seen.append((a @ a).dtype)
            return g.float() @ a.T + a.T @ g.float()

    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = Product.apply(x)
    assert y.dtype is torch.bfloat16
    y.sum().backward()
    assert seen == [torch.bfloat16] and x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_inputs_are_cast_and_autocast_is_off_inside():
    class Kept(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, a):
            assert not torch.is_autocast_enabled("cpu")
            return a * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            assert not torch.is_autocast_enabled("cpu")
            return g * 2

    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = Kept.apply(x)
    assert y.dtype is torch.float32
    assert Kept.apply(x).dtype is torch.bfloat16  # outside, nothing is cast
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_mode_by_hand():
    mode = enter_autocast("cpu", torch.bfloat16, True, True)
    try:
        assert torch.is_autocast_enabled("cpu") and torch.mm(torch.ones(2, 2), torch.ones(2, 2)).dtype is torch.bfloat16
    finally:
        exit_autocast(mode)
    assert not torch.is_autocast_enabled("cpu")


def test_what_is_refused():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(3)
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'vulkan'"):
        torch.autocast("vulkan")
    with pytest.warns(UserWarning, match="float64|not supported"):
        mode = torch.autocast("cpu", dtype=torch.float64)
    with mode:
        assert not torch.is_autocast_enabled("cpu")


def test_the_numbers_of_a_scaler():
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_interval(7)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (3.0, 0.25, 7)
    assert [t.item() for t in scaler.scale([torch.ones(()), torch.ones(())])] == [8.0, 8.0]
    with pytest.raises(AssertionError, match="backoff factor must be < 1.0"):
        torch.amp.GradScaler("cpu", backoff_factor=2.0)
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    parameter = torch.nn.Parameter(torch.ones(2, dtype=torch.float16))
    parameter.grad = torch.ones(2, dtype=torch.float16)
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.unscale_(torch.optim.SGD([parameter], lr=1.0))
    off = torch.amp.GradScaler("cpu", enabled=False)
    off.update()
    assert off._get_growth_tracker() == 0 and off.scale(torch.ones(2)).tolist() == [1.0, 1.0]
