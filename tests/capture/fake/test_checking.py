"""Modes that put fakes beside real tensors: shape rules that lie are found, deep copies are fakes."""

from __future__ import annotations

import copy

import pytest

import pullback as torch
from pullback import library, nn
from pullback.capture.fake.checking import CrossRefFakeMode, FakeCopyMode, try_convert_fake_to_real
from pullback.capture.fake.mode import FakeTensor, FakeTensorMode, MetadataMismatchError


def test_what_agrees_passes():
    with CrossRefFakeMode():
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
        out = model(torch.randn(2, 3, 8, 8)).view(2, -1)
        assert out.shape == (2, 144) and torch.full((2, 2), 1).dtype is torch.int64
        assert out[out > 0].ndim == 1  # fakes have no opinion


@pytest.mark.parametrize("lie", [lambda x: x.new_empty(3), lambda x: torch.empty_like(x).double(), lambda x: x.t()])
def test_shape_rules_that_lie_are_found(lie):
    with library._scoped_library("lying", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2, "CPU")
        lib.impl("twice", lie, "Meta")
        x = torch.ones(2, 3)
        with pytest.raises(MetadataMismatchError, match="lying"), CrossRefFakeMode():
            torch.ops.lying.twice(x)
        with CrossRefFakeMode(lambda op: op.namespace == "lying"):
            assert torch.ops.lying.twice(x).sum() == 12


def test_deep_copies_are_fakes():
    mode = FakeTensorMode()
    model = nn.BatchNorm2d(3)
    model.part = model.running_mean[1:]
    with FakeCopyMode(mode):
        twin = copy.deepcopy(model)
    assert all(isinstance(t, FakeTensor) for t in twin.state_dict().values()) and isinstance(twin.weight, nn.Parameter)
    assert twin.weight.requires_grad and twin.weight.shape == (3,) and not isinstance(model.weight, FakeTensor)
    assert twin.part.untyped_storage() is twin.running_mean.untyped_storage()


def test_fakes_back_to_what_they_were_made_of():
    mode, x = FakeTensorMode(), torch.ones(2)
    assert try_convert_fake_to_real([mode.from_tensor(x), 3])[0] is x
    made = [mode.from_tensor(x) + 1]
    assert try_convert_fake_to_real(made) is made
