"""Kernels for built-in operators."""

import pytest

import pullback as torch
from pullback.library import Library, _scoped_library

pytestmark = pytest.mark.filterwarnings("ignore:Warning only once for all operators")


def test_a_backend_kernel():
    x = torch.ones(2)
    x * x, -x, x.neg()  # the fast paths are made
    with _scoped_library("aten", "IMPL") as lib:
        lib.impl("neg", lambda x: x + 100, "CPU")
        lib.impl("mul.Tensor", lambda x, y: x + y, "CPU")
        assert (-x).tolist() == torch.neg(x).tolist() == x.neg().tolist() == [101, 101]
        assert (x * 3).tolist() == [4, 4] and torch.mul(x, x).tolist() == [2, 2]
        assert x.clone().mul_(x).tolist() == [1, 1]  # another operator
        out = torch.neg(torch.ones(2, requires_grad=True))
        assert out.tolist() == [101, 101] and out.grad_fn.name() == "NegBackward0"
        assert torch.neg(torch.ones(2, device="meta")).shape == (2,)
    assert (-x).tolist() == [-1, -1] and (x * 3).tolist() == [3, 3]
    assert torch.ops.aten.neg.default.layer is None


def test_an_autograd_kernel():
    with _scoped_library("aten", "IMPL") as lib:
        lib.impl("exp", lambda x: x * 5, "AutogradCPU")
        x = torch.ones(1, requires_grad=True)
        torch.exp(x).backward()
        assert x.grad.item() == 5
    assert torch.exp(torch.zeros(1)).item() == 1


def test_an_inplace_kernel():
    def fill(x):
        x.fill_(9)
        return x

    assert torch.ones(1).neg_().item() == -1  # also where the function was called before
    with _scoped_library("aten", "IMPL") as lib:
        lib.impl("neg_", fill, "CPU")
        x = torch.ones(2)
        assert x.neg_() is x and x.tolist() == [9, 9]
        with pytest.raises(NotImplementedError, match="cannot be recorded"):
            (torch.ones(2, requires_grad=True) * 1).neg_()
    assert torch.ones(1).neg_().item() == -1


def test_a_composite_operator():
    from pullback.ops.system.operator import registry

    name, op = next((k, o) for k, o in registry.items() if o.body is not None and k == "matmul.default")
    body = op.body
    a = torch.ones(2, 2)
    with _scoped_library("aten", "IMPL") as lib:
        lib.impl(name.removesuffix(".default"), lambda x, y: x - y, "CPU")
        assert (a @ a).tolist() == torch.matmul(a, a).tolist() == [[0, 0], [0, 0]]
    assert op.body is body and (a @ a).tolist() == [[2, 2], [2, 2]]


def test_a_shape_rule():
    from pullback.capture.fake.mode import FakeTensorMode

    x = torch.ones(2)
    with _scoped_library("aten", "IMPL") as lib:
        lib.impl("neg", lambda x: x.new_empty(5), "Meta")
        assert torch.neg(x.to("meta")).shape == (5,)
        with FakeTensorMode() as mode:
            assert torch.neg(mode.from_tensor(x)).shape == (5,)
        assert torch.neg(x).tolist() == [-1, -1]
    assert torch.neg(x.to("meta")).shape == (2,)


def test_refusals():
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        Library("aten", "DEF")
    with pytest.raises(RuntimeError, match="there is no operator aten::nosuch"):
        Library("aten", "IMPL").impl("nosuch", lambda x: x, "CPU")


def test_autocast_passes_an_operator_by():
    a = torch.ones(2, 2)
    with torch.library._scoped_library("aten", "IMPL") as lib:
        lib.impl("mm", torch.library.fallthrough_kernel, "AutocastCPU")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.mm(a, a).dtype is torch.float32
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.mm(a, a).dtype is torch.bfloat16
