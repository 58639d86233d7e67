"""Which overload a call means: found by its arguments once, then by their types."""

from __future__ import annotations

import re

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.ops.system.operator import find


def test_plans_of_calls_with_lists_of_integers():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for _ in range(3):  # the first call looks for the overload, others know it
        assert x.sum((0, 1)).tolist() == x.sum([0, 1]).tolist() == [60, 66, 72, 78]
        assert x.sum((-1,), True).shape == (2, 3, 1) and x.sum(1).shape == (2, 4)
        assert x.sum((0, 1), dtype=torch.float64).dtype is torch.float64
        assert x.sum(()).tolist() == 276
        assert (
            torch.linalg.vector_norm(x, 2, dim=[0, 1]).shape == torch.linalg.vector_norm(x, 2, dim=(0, 1)).shape == (4,)
        )
        for wrong in ((0, True), (0, 1.5), (0, "x")):
            with pytest.raises(TypeError):
                x.sum(wrong)
        with pytest.raises(IndexError):
            x.sum((0, 5))


def test_out_decides_in_which_dtype_sums_are_computed():
    x = torch.full((3,), 0.1, dtype=torch.float16)
    exact = float(x[0]) * 3
    for f in (torch.sum, torch.nansum):
        assert f(x, 0, out=torch.empty((), dtype=torch.float64)).item() == exact
    assert torch.mean(x, 0, out=torch.empty((), dtype=torch.float64)).item() == float(x[0])
    assert torch.cumsum(x, 0, out=torch.empty(3, dtype=torch.float64))[-1].item() == exact
    assert torch.sum(torch.tensor([True, True]), 0, out=torch.empty((), dtype=torch.bool)).item() is True


def test_places_are_not_rounded_into_an_out_of_floats():
    x = torch.zeros(2)
    for call in (torch.argmax, torch.argmin, lambda x, out: torch.bucketize(x, x, out=out)):
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype long int, but got float instead"):
            call(x, out=torch.empty(0))


def test_the_name_of_an_operator_is_called_for_the_whole():
    op = torch.ops.aten.add.Tensor
    assert op.name() == "aten::add.Tensor" and op.name == "add"
    assert torch.ops.aten.sin.default.name() == "aten::sin"


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "mean", "nansum", "softmax", "log_softmax"])
def test_an_out_of_another_dtype_than_was_asked_for(name):
    x, out = torch.ones(3, 4), torch.zeros(0)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype double, but got float instead"):
        getattr(torch, name)(x, 0, dtype=torch.float64, out=out)
    wide = torch.zeros(0, dtype=torch.float64)
    assert getattr(torch, name)(x, 0, dtype=torch.float64, out=wide) is wide


def test_out_of_all_overloads_of_a_name():
    out = torch.empty(0)
    assert torch.ops.aten.add(torch.ones(2), 1, out=out) is out and out.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.ops.aten.add(torch.ones(2, requires_grad=True), 1, out=out)


X = torch.arange(4.0).reshape(2, 2)
IMAGE = X.reshape(1, 1, 2, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda out: torch.gather(X, 0, torch.tensor([[0, 1]]), out=out),
        lambda out: torch.index_select(X, 0, torch.tensor([1]), out=out),
        lambda out: torch.tril(X, out=out),
        lambda out: torch.softmax(X, 0, out=out),
        lambda out: torch.log_softmax(X, 0, out=out),
        lambda out: torch.renorm(X, 2, 0, 1, out=out),
        lambda out: torch.cross(torch.ones(3), torch.ones(3), dim=0, out=out),
        lambda out: find("upsample_nearest2d.default").function(IMAGE, (4, 4), out=out),
        lambda out: find("reflection_pad1d.default").function(X, (1, 1), out=out),
        lambda out: find("avg_pool2d.default").function(IMAGE, 2, out=out),
    ],
)
def test_results_are_not_cast_on_the_way_out(call):
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
        call(torch.empty(0, dtype=torch.float64))
    out = torch.empty(0)
    assert call(out) is out and out.numel()


def test_mode_names_the_output_of_another_dtype():
    for dtypes, role in (((torch.float64, torch.int64), "values"), ((torch.float32, torch.int32), "indices")):
        outs = tuple(torch.empty(0, dtype=d) for d in dtypes)
        with pytest.raises(RuntimeError, match=f"expected scalar type '.*' but got '.*' for {role} output"):
            torch.mode(X, out=outs)


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda x: F.pad(x, ("a", "b")),
            "argument 'pad' (position 2) must be tuple of ints, but found element of type str at pos 0",
        ),
        (
            lambda x: F.pad(x, (1, "a")),
            "argument 'pad' failed to unpack the object at pos 2 with error \"type must be tuple of ints,but got str\"",
        ),
        (lambda x: torch.zeros(2, 1.5), "'size' failed to unpack the object at pos 2"),
        (
            lambda x: x.flip(["a"]),
            "argument 'dims' (position 1) must be tuple of ints, but found element of type str at pos 0",
        ),
        (lambda x: torch.flip(x, ["a"]), "argument 'dims' (position 2)"),
        (lambda x: x.add("a"), "add(): argument 'other' (position 1) must be Tensor, not str"),
        (lambda x: x.mul_("a"), "mul_(): argument 'other' (position 1) must be Tensor, not str"),
        (lambda x: torch.add(x, "a"), "add(): argument 'other' (position 2) must be Tensor, not str"),
        (lambda x: torch.linspace(0, 1, 2.5), "linspace(): argument 'steps' (position 3) must be int, not float"),
        (lambda x: x.requires_grad_(1), "argument 'requires_grad' (position 1) must be bool, not int"),
        (lambda x: setattr(x, "requires_grad", "yes"), "requires_grad must be a bool"),
        (lambda x: torch.tensor(1.0, requires_grad="no"), "argument 'requires_grad' must be bool, not str"),
        (lambda x: torch.set_grad_enabled(0), "argument 'enabled' (position 1) must be bool, not int"),
        (
            lambda x: x.clone(memory_format="channels_last"),
            "clone(): argument 'memory_format' must be torch.memory_format",
        ),
        (lambda x: x.contiguous(memory_format=0), "contiguous(): argument 'memory_format' must be torch.memory_format"),
        (lambda x: torch.round(x, decimals=1.5), "argument 'decimals' must be int, not float"),
        (lambda x: torch.polygamma(2.5, x), "argument 'n' (position 1) must be int, not float"),
    ],
)
def test_values_of_the_wrong_type_are_named_with_their_place(call, words):
    with pytest.raises(TypeError, match=re.escape(words)):
        call(torch.ones(2, 3))
