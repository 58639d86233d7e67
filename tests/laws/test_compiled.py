"""The law of compilation: what a compiled program gives, and its gradient, is what eager calls give, in every layout and dtype."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as torch
import pullback.nn.functional as F
from pullback import func
from pullback.autograd import forward_ad
from tests.laws.programs import bounded, differentiable, inputs, numbers, program
from tests.laws.test_layouts import CALLS

UNCOMPILED = {"inner_grad", "inner_jvp", "inner_vmap", "custom"}  # the laws of transforms have these
IMAGES = {
    "conv": lambda x: F.conv2d(x, x.new_ones(2, x.shape[1], 1, 1)),
    "pool": lambda x: F.max_pool2d(x, 2),
    "average": lambda x: F.avg_pool2d(x, 2),
    "normalized": lambda x: F.batch_norm(x, None, None, training=True),
    "resized": lambda x: F.interpolate(x, scale_factor=2.0),
    "padded": lambda x: F.pad(x, (2, 2, 2, 2), mode="reflect"),
    "shuffled": lambda x: F.pixel_unshuffle(x, 2),
    "rolled": lambda x: x.roll(1, 2),
    "flipped": lambda x: x.flip((1, 3)),
    "stacked": lambda x: torch.stack([x, x + 1], 1).sum(1),
    "activated": F.gelu,
}
TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}


@bounded
@given(differentiable, inputs)
def test_compiled_programs_are_eager_programs(names, drawn):
    run = program([n for n in names if n not in UNCOMPILED] or ["sin"])
    results = []
    for function in (run, torch.compile(run)):
        x = numbers(*drawn).requires_grad_()
        out = function(x)
        (gradient,) = torch.autograd.grad(out.sum(), x)
        results.append((out.detach(), gradient))
    (out, gradient), (compiled, compiled_gradient) = results
    assert (compiled.shape, compiled.dtype, compiled.stride()) == (out.shape, out.dtype, out.stride())
    torch.testing.assert_close(compiled, out)
    torch.testing.assert_close(compiled_gradient, gradient)


@bounded
@given(st.sampled_from(sorted(CALLS)), inputs, st.sampled_from(sorted(TOLERANCE)))
def test_compiled_calls_lie_as_eager_calls_do(name, drawn, dtype):
    x = numbers(*drawn).to(getattr(torch, dtype))
    x = x if x.ndim else x.reshape(1)
    out, compiled = CALLS[name](x), torch.compile(CALLS[name])(x)
    assert (compiled.shape, compiled.dtype, compiled.stride()) == (out.shape, out.dtype, out.stride())
    torch.testing.assert_close(compiled, out, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@bounded
@given(st.lists(st.sampled_from(sorted(IMAGES)), min_size=1, max_size=3), st.booleans())
def test_images_keep_their_format_through_compiled_programs(names, last):
    def run(x):
        for name in names:
            x = IMAGES[name](x)
        return x

    x = numbers((2, 4, 16, 16), 3)
    x = x.contiguous(memory_format=torch.channels_last) if last else x
    results = []
    for function in (run, torch.compile(run)):
        leaf = x.clone().requires_grad_()
        out = function(leaf)
        (gradient,) = torch.autograd.grad(out.square().sum(), leaf)
        results.append((out.detach(), gradient))
    (out, gradient), (compiled, compiled_gradient) = results
    assert compiled.stride() == out.stride() and compiled_gradient.stride() == gradient.stride()
    torch.testing.assert_close(compiled, out)
    torch.testing.assert_close(compiled_gradient, gradient)


@pytest.mark.parametrize("name", sorted(IMAGES))
def test_each_operator_on_images(name):
    x = numbers((2, 4, 16, 16), 3).contiguous(memory_format=torch.channels_last)
    out, compiled = IMAGES[name](x), torch.compile(IMAGES[name])(x)
    assert compiled.stride() == out.stride()
    torch.testing.assert_close(compiled, out)


def _dual(f):
    def run(v):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(f(forward_ad.make_dual(v, torch.cos(v)))).tangent

    return run


TRANSFORMED = {
    "plain": torch.sin,
    "grad": func.grad(lambda v: v.sin().sum()),
    "value": lambda v: func.grad_and_value(lambda u: u.sin().sum())(v)[1],
    "vjp": lambda v: func.vjp(torch.sin, v)[1](v)[0],
    "jacrev": func.jacrev(torch.sin),
    "jacfwd": func.jacfwd(torch.sin),
    "hessian": func.hessian(lambda v: v.sin().sum()),
    "linearize": lambda v: func.linearize(torch.sin, v)[1](v),
    "vmap": func.vmap(torch.sin),
    "closed over": lambda v: func.grad(lambda u: (u.sin() * v).sum())(v.detach()),
    "cond": lambda v: torch.cond(v.sum() > 0, lambda u: u.sin(), lambda u: u.cos(), (v,)),
}


@pytest.mark.filterwarnings("ignore:compile")
@pytest.mark.parametrize("name", sorted(TRANSFORMED))
def test_compiled_functions_push_tangents_through_transforms(name):
    """By levels that they open themselves, and by `jvp`; of what was compiled, and around it."""
    f, x = TRANSFORMED[name], torch.tensor([0.3, 0.7, 0.2], dtype=torch.float64)
    expected = _dual(f)(x)
    assert expected.abs().sum() > 0
    pushed = lambda g: lambda v: func.jvp(g, (v,), (torch.cos(v),))[1]
    for call in (torch.compile(_dual(f)), _dual(torch.compile(f)), torch.compile(pushed(f)), pushed(torch.compile(f))):
        assert torch.allclose(call(x), expected)


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("size", [3, 50])
def test_compiled_functions_read_strided_memory_forwards_and_backwards(size, dims):
    memory = torch.arange(4.0 * size * size, dtype=torch.float64).reshape(2 * size, 2 * size)
    for x in (memory[::2, ::2], memory[:size, ::2], memory[::2, 0], memory.t()[::2, :size]):
        turned = dims if x.ndim > 1 else (0,)
        f = lambda x, turned=turned: x.flip(turned) * x
        assert torch.equal(torch.compile(f)(x), f(x))
