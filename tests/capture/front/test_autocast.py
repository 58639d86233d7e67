"""Autocast around and inside of compiled functions: results, dtypes and gradients are those of the function itself."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.joint.aot import aot_function, nop
from pullback.joint.config import config
from pullback.utils.checkpoint import checkpoint

BACKENDS = ["eager", "aot_eager", "inductor"]
AROUND = {"none": (), "bfloat16": ("cpu", torch.bfloat16), "float16": ("cpu", torch.float16)}


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g.to(x.dtype) @ x


def product(x):
    return x @ x


def inner_contexts(f):
    def call(x):
        with torch.autocast("cpu", torch.float16):
            half = f(x)
        with torch.autocast("cpu", enabled=False):
            full = f(x)
        return half, full, f(x)

    return call


PROGRAMS = {
    "operator": product,
    "custom function": Square.apply,
    "checkpoint": lambda x: checkpoint(product, x, use_reentrant=False),
    "cond": lambda x: torch.cond(x.sum() > 0, product, lambda x: 2 * product(x), (x,)),
    "composite": lambda x: torch.einsum("ij,jk->ik", x, x),
    "transform": lambda x: torch.func.vmap(product)(x[None]),
    "float32 policy": lambda x: torch.linalg.multi_dot([x, x, x]),
    "gradient": lambda x: torch.autograd.grad((x @ x).sum(), x, create_graph=True)[0],
}


def results_and_gradients(f, x, around):
    with torch.autocast(*around) if around else torch.autocast("cpu", enabled=False):
        results = f(x)
    gradients = [torch.autograd.grad(r.float().sum(), x, retain_graph=True)[0] for r in results if r.requires_grad]
    return [*results, *gradients]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_contexts_inside_and_around(program, around, backend):
    x = torch.randn(3, 3, requires_grad=True)
    f = inner_contexts(program)
    expected = results_and_gradients(f, x, around)
    found = results_and_gradients(torch.compile(f, backend=backend), x, around)
    assert [t.dtype for t in found] == [t.dtype for t in expected]
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def test_another_precision_is_another_graph():
    x = torch.randn(8, 8)
    compiled = torch.compile(product, backend="eager")
    for precision in (torch.bfloat16, torch.float16, torch.bfloat16):
        with torch.autocast("cpu", precision):
            assert torch.equal(compiled(x), x @ x)


def test_compiled_ahead_of_time_under_autocast():
    def f(x):
        with torch.autocast("cpu", enabled=False):
            full = x @ x
        return full, x @ x

    x, compiled = torch.randn(3, 3), aot_function(f, nop)
    for precision in (torch.bfloat16, torch.float16):
        with torch.autocast("cpu", precision):
            assert [t.dtype for t in compiled(x)] == [torch.float32, precision]
    assert [t.dtype for t in compiled(x)] == [torch.float32, torch.float32]


@pytest.mark.parametrize(
    ("setting", "lower"), [("off", False), ("same_as_forward", True), ([{"device_type": "cpu"}], True), ([], False)]
)
def test_autocast_of_backward(setting, lower):
    x = torch.randn(3, 3, requires_grad=True)
    with config.patch(backward_pass_autocast=setting), torch.autocast("cpu"):
        out = torch.compile(Square.apply, backend="aot_eager")(x)
    found = torch.autograd.grad(out, x, torch.ones_like(out))[0]
    with torch.autocast("cpu", enabled=lower):
        expected = (torch.ones(3, 3) @ x).float()
    assert torch.equal(found, expected)


def test_misspelt_setting_of_backward():
    x = torch.randn(3, 3, requires_grad=True)
    with config.patch(backward_pass_autocast="on"), pytest.raises(ValueError, match="'off', 'same_as_forward'"):
        aot_function(product, nop)(x)


def test_backward_called_under_autocast_keeps_its_casts():
    x = torch.randn(3, 3, requires_grad=True)
    out = torch.compile(product, backend="aot_eager")(x)
    with torch.autocast("cpu"):
        found = torch.autograd.grad(out.sum(), x)[0]
    assert torch.equal(found, torch.autograd.grad((x @ x).sum(), x)[0])


def test_kernel_registered_for_autocast():
    with torch.library._scoped_library("autocast_test", "FRAGMENT") as library:
        library.define("same(Tensor x) -> Tensor")
        library.impl("same", torch.clone, "CompositeExplicitAutograd")
        library.impl("same", lambda x: x + 1, "AutocastCPU")
        same = torch.ops.autocast_test.same.default
        for backend in ("eager", "aot_eager"):
            compiled = torch.compile(lambda x: same(x), backend=backend)
            assert compiled(torch.zeros(())) == 0
            with torch.autocast("cpu"):
                assert compiled(torch.zeros(())) == 1
