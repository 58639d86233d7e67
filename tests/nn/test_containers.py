"""Containers behave as the Python containers they are named after."""

from collections import OrderedDict

import pytest

import pullback as torch
from pullback import nn


def _kinds(modules):
    return [type(m).__name__ for m in modules]


def test_sequential():
    m = nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.ReLU()))
    assert m(torch.ones(1, 2)).shape == (1, 3) and m.a is m[0] and len(m) == 2
    m.append(nn.Tanh())
    m.insert(0, nn.Identity())
    assert _kinds(m) == ["Identity", "Linear", "ReLU", "Tanh"] and list(m._modules) == ["0", "1", "2", "3"]
    assert _kinds(m[1:3]) == ["Linear", "ReLU"] and isinstance(m[-1], nn.Tanh)
    del m[0]
    assert _kinds(m + nn.Sequential(nn.GELU())) == ["Linear", "ReLU", "Tanh", "GELU"]
    assert len(m * 2) == 6 and isinstance(m.pop(0), nn.Linear) and len(m) == 2
    with pytest.raises(IndexError, match="index 5 is out of range"):
        m[5]


def test_module_list():
    m = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    m += [nn.GELU()]
    m.insert(1, nn.Identity())
    assert _kinds(m) == ["ReLU", "Identity", "Tanh", "GELU"] and _kinds(m[::2]) == ["ReLU", "Tanh"]
    del m[1:3]
    assert list(m._modules) == ["0", "1"]
    with pytest.raises(NotImplementedError, match=r"Module \[ModuleList\] is missing"):
        m(1)


def test_module_dict():
    m = nn.ModuleDict({"a": nn.ReLU()})
    m.update([("b", nn.Tanh())])
    assert list(m) == ["a", "b"] and "a" in m and _kinds(m.values()) == ["ReLU", "Tanh"]
    assert isinstance(m.pop("a"), nn.ReLU) and len(m) == 1
    with pytest.raises(ValueError, match="ModuleDict update sequence element #0 has length 1; 2 is required"):
        m.update([["a"]])


def test_parameter_containers():
    state = nn.ParameterList([torch.ones(2), nn.Parameter(torch.ones(3)), 3])
    assert [type(p).__name__ for p in state] == ["Parameter", "Parameter", "int"] and len(list(state.parameters())) == 2
    table = nn.ParameterDict({"a": torch.ones(2)})
    table["b"] = torch.zeros(1)
    assert list(table) == ["a", "b"] and [n for n, _ in table.named_parameters()] == ["a", "b"]
    assert list(table | nn.ParameterDict({"c": torch.ones(1)})) == ["a", "b", "c"]
    assert "Parameter containing: [torch.FloatTensor of size 2]" in repr(table)
