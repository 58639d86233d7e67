"""What a module takes as a name, a parameter, a buffer or a submodule; the fused loss of a linear layer; embeddings."""

import pytest

import pullback as torch
from pullback.nn import module_hooks

nn = torch.nn


def test_names_and_kinds():
    module = nn.Linear(1, 1)
    for act, kind in (
        (lambda: module.register_buffer(3, torch.ones(1)), TypeError),
        (lambda: module.register_buffer("a.b", torch.ones(1)), KeyError),
        (lambda: module.register_buffer("", torch.ones(1)), KeyError),
        (lambda: module.register_buffer("weight", torch.ones(1)), KeyError),
        (lambda: module.register_buffer("b", 3), TypeError),
        (lambda: module.register_parameter("p", torch.ones(1)), TypeError),
        (lambda: module.register_parameter("p", nn.Parameter(torch.ones(1)) * 2), (TypeError, ValueError)),
        (lambda: module.add_module("m", 3), TypeError),
        (lambda: setattr(module, "weight", torch.ones(1)), TypeError),
    ):
        with pytest.raises(kind):
            act()
    module.register_module("child", nn.ReLU())
    del module.child
    module.register_buffer("kept", torch.ones(1))
    del module.kept
    assert not list(module.children()) and not list(module.buffers())


def test_assigning_before_the_constructor():
    class Early(nn.Module):
        def __init__(self, value):
            self.thing = value

    for value in (nn.Parameter(torch.ones(1)), nn.ReLU()):
        with pytest.raises(AttributeError, match="before Module.__init__"):
            Early(value)


def test_hooks_of_registration():
    seen = []
    handles = [
        module_hooks.register_module_parameter_registration_hook(lambda m, name, p: seen.append(name)),
        module_hooks.register_module_buffer_registration_hook(lambda m, name, b: seen.append(name)),
        module_hooks.register_module_module_registration_hook(lambda m, name, c: seen.append(name)),
    ]
    try:
        module = nn.Module()
        module.p, module.c = nn.Parameter(torch.ones(1)), nn.ReLU()
        module.register_buffer("b", torch.ones(1))
        module.register_parameter("q", nn.Parameter(torch.ones(1)))
        module.add_module("d", nn.ReLU())
    finally:
        for handle in handles:
            handle.remove()
    assert seen == ["p", "c", "b", "q", "d"]


def test_a_module_that_is_compiled_in_place():
    module = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    x = torch.ones(1, 2)
    wanted = module(x)
    module.compile(backend="eager")
    assert torch.allclose(module(x), wanted) and torch.allclose(module._call_impl(x), wanted)


def test_embeddings():
    table = nn.Embedding.from_pretrained(torch.eye(3), freeze=False, padding_idx=0)
    assert table.weight.requires_grad and table(torch.tensor([2])).tolist() == [[0.0, 0.0, 1.0]]
    assert "padding_idx=0" in repr(table) and "max_norm=1.0" in repr(nn.Embedding(2, 2, max_norm=1.0))
    bag = nn.EmbeddingBag.from_pretrained(torch.eye(3), mode="sum")
    assert bag(torch.tensor([[0, 1]])).tolist() == [[1.0, 1.0, 0.0]] and "mode='sum'" in repr(bag)
    for make in (
        lambda: nn.Embedding(2, 2, padding_idx=5),
        lambda: nn.Embedding(2, 2, padding_idx=-5),
        lambda: nn.Embedding.from_pretrained(torch.ones(2)),
        lambda: nn.EmbeddingBag.from_pretrained(torch.ones(2)),
    ):
        with pytest.raises((AssertionError, ValueError)):
            make()
