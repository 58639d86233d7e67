"""Laws of function transforms that need no reference: forward against reverse, batch against loop, order against order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as torch
from pullback.core.modes import ambient
from pullback.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from tests.laws.programs import RECOMPUTED, bounded, differentiable, inputs, numbers, program, programs

TRANSFORMS = {
    "grad": lambda f: grad(lambda x: f(x).sum()),
    "vjp": lambda f: lambda x: (lambda out, pull: pull(torch.ones_like(out))[0])(*vjp(f, x)),
    "jvp": lambda f: lambda x: jvp(f, (x,), (torch.ones_like(x),))[1],
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "hessian": lambda f: hessian(lambda x: f(x).sum()),
    "vmap": lambda f: lambda x: vmap(f)(x.unsqueeze(0))[0],
}


def close(a, b) -> None:
    assert a.shape == b.shape
    assert torch.allclose(a, b, rtol=1e-7, atol=1e-8, equal_nan=True), (a, b)


@bounded
@given(differentiable, inputs)
def test_forward_and_reverse_mode_are_transposes(names, drawn):
    f, x = program(names), numbers(*drawn)
    t, c = x.cos(), x.sin() + 0.5
    out, tangent = jvp(f, (x,), (t,))
    same, pull = vjp(f, x)
    close(out, same)
    close((tangent * c).sum(), (pull(c)[0] * t).sum())


@bounded
@given(programs, inputs)
def test_a_batch_is_its_examples(names, drawn):
    f = program(names)
    shape, seed, layout = drawn
    x = numbers((3, *shape), seed, layout)
    for g in (f, grad(lambda a: f(a).sum())):
        close(vmap(g)(x), torch.stack([g(e) for e in x]))
    close(vmap(f, in_dims=-1, out_dims=-1)(x.movedim(0, -1)), torch.stack([f(e) for e in x], -1))


@bounded
@given(differentiable, inputs)
def test_jacobians_are_the_same_by_rows_and_by_columns(names, drawn):
    f, x = program(names), numbers(*drawn)
    close(jacrev(f)(x), jacfwd(f)(x))


@bounded
@given(
    st.lists(
        st.sampled_from(["sin", "square", "quotient", "part_written", "inner_jvp", "custom", "softmax"]),
        min_size=1,
        max_size=2,
    ),
    inputs,
)
def test_second_derivatives_do_not_depend_on_their_order(names, drawn):
    f, x = program(names), numbers(*drawn)
    total = lambda a: f(a).sum()
    ways = [hessian(total)(x), jacrev(jacrev(total))(x), jacfwd(jacfwd(total))(x), jacrev(jacfwd(total))(x)]
    for way in ways[1:]:
        close(ways[0], way)


@bounded
@given(programs, inputs, st.sampled_from(sorted(TRANSFORMS)), st.sampled_from(["plain", "no_grad", "inference"]))
def test_a_transform_leaves_no_trace(names, drawn, name, around):
    f, x = program(names), numbers(*drawn)
    expected = TRANSFORMS[name](f)(x)
    before, version, state = x.clone(), x._version, vars(ambient).copy()
    context = {"plain": torch.enable_grad, "no_grad": torch.no_grad, "inference": torch.inference_mode}[around]
    with context():
        result = TRANSFORMS[name](f)(x)
    close(result, expected)
    assert torch.equal(x, before) and x._version == version and not x.requires_grad and x.grad is None
    assert not result.requires_grad and vars(ambient) == state


@bounded
@given(programs, inputs)
def test_transforms_agree_with_the_engine(names, drawn):
    f, x = program(names), numbers(*drawn)
    leaf = x.detach().clone().requires_grad_()
    f(leaf).sum().backward()
    gradient = torch.zeros_like(x) if leaf.grad is None else leaf.grad
    close(grad(lambda a: f(a).sum())(x), gradient)


@pytest.mark.parametrize("name", RECOMPUTED)
@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp"])
def test_recomputation_changes_nothing(name, transform):
    x = numbers((3,), 0)
    close(TRANSFORMS[transform](RECOMPUTED[name])(x), TRANSFORMS[transform](lambda y: y.sin() * y)(x))
