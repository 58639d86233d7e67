"""Places of maxima are saved in the narrowest integers that hold them, on devices; what comes of them is the same."""

from __future__ import annotations

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.capture.fake.mode import FakeTensorMode
from pullback.joint import narrow
from pullback.joint.aot import aot_function
from pullback.joint.partition import min_cut_rematerialization_partition


def saved_by(pool, *shape, device="cuda"):
    """The dtypes of integers that the forward of a pool gives its backward."""
    seen = []

    def compiler(module, inputs):
        seen.append([n.meta["val"].dtype for n in module.graph.output_node().all_input_nodes])
        return module

    with FakeTensorMode():
        x = torch.empty(*shape, device=device, requires_grad=True)
        f = aot_function(pool, compiler, partition_fn=min_cut_rematerialization_partition)
        f(x).sum().backward()
    return [d for d in seen[0] if not d.is_floating_point]


@pytest.mark.parametrize("side, dtype", [(8, torch.int8), (100, torch.int16), (300, torch.int64)])
def test_the_narrowest_integers_that_count_a_plane(side, dtype):
    assert saved_by(lambda x: F.max_pool2d(x, 2), 2, 3, side, side) == [dtype]


def test_elsewhere_they_stay_what_they_are():
    assert saved_by(lambda x: F.max_pool2d(x, 2), 2, 3, 8, 8, device="cpu") == [torch.int64]
    assert narrow.narrowest(1 << 15) is torch.int16 and narrow.narrowest((1 << 15) + 1) is None


def test_gradients_through_narrow_places(monkeypatch):
    monkeypatch.setattr(narrow, "DEVICE", "cpu")
    x = torch.randn(2, 3, 9, 9, requires_grad=True)
    f = lambda x: F.max_pool2d(x * 2, 3, 2, 1) ** 2
    (expected,) = torch.autograd.grad(f(x).sum(), x)
    compiled = aot_function(f, lambda m, inputs: m, partition_fn=min_cut_rematerialization_partition)
    (found,) = torch.autograd.grad(compiled(x).sum(), x)
    assert torch.equal(found, expected)
