"""Modules as functions of their state: ties, names, what a call assigns, ensembles."""

import pytest

import pullback as torch
from pullback import nn
from pullback.func import functional_call, grad, stack_module_state, vmap
from pullback.func.functional_modules import (
    combine_state_for_ensemble,
    functional_init,
    make_functional,
    make_functional_with_buffers,
)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count = self.count + 1
        return x * self.count


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = nn.Linear(2, 2)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(self.a(x))


def test_what_a_call_assigns_is_in_the_dict_afterwards():
    module, state = Counting(), {"count": torch.tensor(4.0)}
    assert functional_call(module, state, torch.tensor(1.0)).item() == 5
    assert state["count"].item() == 5 and module.count.item() == 0


def test_tied_tensors_get_one_value():
    module, w = Tied(), torch.eye(2)
    x = torch.ones(1, 2)
    expected = functional_call(module, {"a.weight": w, "b.weight": w}, x)
    assert torch.equal(functional_call(module, {"b.weight": w}, x), expected)
    with pytest.raises(ValueError, match=r"got multiple values for keys \['a.weight', 'b.weight'\], which are tied"):
        functional_call(module, {"a.weight": w, "b.weight": w * 2}, x)
    functional_call(module, {"a.weight": w, "b.weight": w * 2}, x, tie_weights=False)


def test_other_names_are_attributes_for_the_time_of_the_call():
    module = nn.Linear(1, 1)
    functional_call(module, {"extra": torch.ones(1)}, torch.ones(1, 1))
    assert not hasattr(module, "extra")
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'extra'.\n\tMissing key\(s\): 'bias', 'weight'"):
        functional_call(module, {"extra": torch.ones(1)}, torch.ones(1, 1), strict=True)
    with pytest.raises(TypeError, match="is not an instance of torch.Tensor"):
        functional_call(module, {"weight": 1.0}, torch.ones(1, 1))


def test_dicts_may_not_repeat_a_name():
    with pytest.raises(ValueError, match=r"\['weight'\] appeared in multiple dictionaries"):
        functional_call(nn.Linear(1, 1), ({"weight": torch.ones(1, 1)},) * 2, torch.ones(1, 1))


def test_modules_that_are_not_alike_are_not_stacked():
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        stack_module_state([nn.Linear(1, 1), nn.Linear(1, 1).eval()])
    with pytest.raises(RuntimeError, match="Expected weight from each model to have the same .requires_grad"):
        stack_module_state([nn.Linear(1, 1), nn.Linear(1, 1).requires_grad_(False)])


def test_a_module_as_a_function_of_its_parameters():
    module, x = Tied(), torch.ones(1, 2)
    function, params = make_functional(module)
    assert len(params) == 3 and torch.equal(function(params, x), module(x))
    gradients = grad(lambda p: function(p, x).sum())(params)
    module(x).sum().backward()
    assert all(torch.allclose(g, p.grad) for g, p in zip(gradients, params, strict=True))
    with pytest.raises(RuntimeError, match="`model` has buffers"):
        make_functional(Counting())


def test_an_ensemble_of_modules():
    models, x = [nn.BatchNorm1d(3).eval() for _ in range(2)], torch.randn(2, 4, 3)
    function, params, buffers = combine_state_for_ensemble(models)
    expected = torch.stack([m(v) for m, v in zip(models, x, strict=True)])
    assert torch.allclose(vmap(function)(params, buffers, x), expected)
    assert len(make_functional_with_buffers(models[0], disable_autograd_tracking=True)[1]) == 2
    weights, fn, names = functional_init(nn.Linear, (5,))(3, 2)
    assert names == ("weight", "bias") and vmap(fn)(weights, (torch.ones(5, 3),)).shape == (5, 2)


def test_parameters_under_other_names_leave_with_the_call():
    class Names(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(1, 1)

        def forward(self):
            return [name for name, _ in self.named_parameters()]

    module, extra = Names(), nn.Parameter(torch.ones(1))
    assert functional_call(module, {"inner.extra": extra}) == ["inner.weight", "inner.bias", "inner.extra"]
    assert module() == ["inner.weight", "inner.bias"] and not hasattr(module.inner, "extra")
