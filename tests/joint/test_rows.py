"""Log-softmax of a device is saved as what it is made of; what comes of it is the same."""

from __future__ import annotations

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.capture.fake.mode import FakeTensorMode
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import Native
from pullback.joint import rows
from pullback.joint.aot import aot_function
from pullback.joint.partition import min_cut_rematerialization_partition


def loss(x, w, target):
    return F.cross_entropy((x.bfloat16() @ w.bfloat16()).float(), target)


def test_the_result_of_a_product_in_half_precision_is_saved_instead():
    seen = []

    def compiler(module, inputs):
        seen.append([n.meta["val"] for n in module.graph.output_node().all_input_nodes])
        return module

    with FakeTensorMode():
        x, w = (torch.empty(*s, device="cuda", requires_grad=True) for s in ((64, 32), (32, 500)))
        target = torch.empty(64, dtype=torch.int64, device="cuda")
        f = aot_function(loss, compiler, partition_fn=min_cut_rematerialization_partition)
        f(x, w, target).backward()
    assert [t.dtype for t in seen[0] if t.shape == (64, 500)] == [torch.bfloat16]


@pytest.mark.parametrize(
    "options", [{}, {"label_smoothing": 0.1}, {"reduction": "none"}, {"ignore_index": 2}, {"weight": torch.rand(7)}]
)
def test_gradients_are_the_same(options, monkeypatch):
    monkeypatch.setattr(rows, "DEVICE", "cpu")
    torch.manual_seed(0)
    x, target = torch.randn(6, 7, requires_grad=True), torch.randint(0, 7, (6,))
    f = lambda x: F.cross_entropy(x * 3, target, **options).sum() + (x.log_softmax(0) * x.sin()).sum()
    (expected,) = torch.autograd.grad(f(x), x)
    compiled = aot_function(f, lambda m, inputs: m, partition_fn=min_cut_rematerialization_partition)
    (found,) = torch.autograd.grad(compiled(x), x, create_graph=True)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    twice = torch.autograd.grad(torch.autograd.grad(f(x), x, create_graph=True)[0].square().sum(), x)
    torch.testing.assert_close(torch.autograd.grad(found.square().sum(), x), twice, rtol=1e-4, atol=1e-4)


def test_what_has_no_elements_stays():
    with FakeTensorMode():
        x = torch.empty(3, 0, device="cuda", requires_grad=True)
        f = aot_function(
            lambda x: x.log_softmax(1).sum(), lambda m, i: m, partition_fn=min_cut_rematerialization_partition
        )
        f(x).backward()


def test_few_elements_that_are_picked_are_computed_where_they_are_read():
    """The rows themselves are then written by nobody."""
    f = lambda x, at: (x * 2 - x.amax(1, keepdim=True)).exp().gather(1, at)
    x, at = torch.randn(9, 300), torch.randint(0, 300, (9, 1))
    native = Native(make_fx(f, tracing_mode="fake")(x, at))
    native.build()
    torch.testing.assert_close(native(x, at), f(x, at))
    assert "exp" in native.kernels[-1] and sum("exp" in k for k in native.kernels) == 1
    with pytest.raises((IndexError, RuntimeError)):
        native(x, at + 300)
