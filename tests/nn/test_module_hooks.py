"""Hooks: order, what they see, what they change, when they are removed."""

import warnings

import pytest

import pullback as torch
from pullback import nn
from pullback.nn import module_hooks


def test_forward_hooks_change_arguments_and_results():
    m = nn.Sequential(nn.Identity())
    first = m.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    m.register_forward_hook(lambda module, args, out: out + 1)
    assert m(torch.ones(1)).item() == 3
    first.remove()
    assert m(torch.ones(1)).item() == 2


def test_order_and_keywords():
    seen = []

    class Takes(nn.Module):
        def forward(self, x, y=0):
            return x + y

    m = Takes()
    m.register_forward_pre_hook(lambda module, args, kwargs: seen.append("second"), with_kwargs=True)
    m.register_forward_pre_hook(lambda module, args: seen.append("first"), prepend=True)
    m.register_forward_hook(lambda module, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    m.register_forward_pre_hook(lambda module, args, kwargs: (args, {"y": 5}), with_kwargs=True)
    assert m(torch.ones(1), y=1).item() == 6
    assert seen == ["first", "second", {"y": 5}]
    m.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple of"):
        m(torch.ones(1))


def test_hooks_that_are_always_called_run_after_an_error():
    m, seen = nn.Linear(2, 2), []
    m.register_forward_hook(lambda module, args, out: seen.append(out), always_call=True)
    m.register_forward_hook(lambda module, args, out: seen.append("not"))
    with pytest.raises(RuntimeError):
        m(torch.ones(1, 7))
    assert seen == [None]


def test_full_backward_hooks_see_and_change_gradients():
    m, seen = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), []
    m[0].register_full_backward_hook(lambda module, g_in, g_out: seen.append((g_in[0].shape, g_out[0].shape)))
    m[1].register_full_backward_pre_hook(lambda module, g_out: (g_out[0] * 2,))
    m.register_full_backward_hook(lambda module, g_in, g_out: (g_in[0] * 3,))
    x = torch.ones(3, 2, requires_grad=True)
    m(x).sum().backward()
    plain = torch.ones(3, 2, requires_grad=True)
    torch.tanh(m[0].forward(plain)).sum().backward()
    assert torch.allclose(x.grad, plain.grad * 6)
    assert seen == [((3, 2), (3, 2))]


def test_a_full_backward_hook_without_gradients_of_inputs():
    m, seen = nn.Linear(2, 2), []
    m.register_full_backward_hook(lambda module, g_in, g_out: seen.append(g_in))
    m(torch.ones(1, 2)).sum().backward()
    assert seen == [(None,)]


def test_the_two_kinds_of_backward_hooks_do_not_mix():
    m, seen = nn.Linear(2, 2), []
    m.register_backward_hook(lambda module, g_in, g_out: seen.append(len(g_out)))
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        m.register_full_backward_hook(lambda *args: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == [1]


def test_global_hooks_see_every_module():
    seen = []
    with (
        module_hooks.register_module_forward_pre_hook(lambda module, args: seen.append(type(module).__name__)),
        module_hooks.register_module_parameter_registration_hook(lambda module, name, p: seen.append(name)),
    ):
        nn.Sequential(nn.Linear(1, 1), nn.ReLU())(torch.ones(1, 1))
    nn.Linear(1, 1)(torch.ones(1, 1))
    assert seen == ["weight", "bias", "Sequential", "Linear", "ReLU"]


def test_full_hooks_say_that_no_input_wanted_a_gradient():
    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda *args: None)
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        layer(torch.rand(1, 2)).sum().backward()


def test_older_hooks_say_that_they_miss_nodes():
    class Twice(torch.nn.Module):
        def forward(self, x):
            return x.clone().clone()

    module = Twice()
    module.register_backward_hook(lambda *args: None)
    with pytest.warns(FutureWarning, match="the forward contains multiple autograd Nodes"):
        module(torch.rand(2, requires_grad=True))
