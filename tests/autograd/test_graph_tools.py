"""Hooks over several tensors, edges, budgets, and the Jacobians that old programs ask `gradcheck` for."""

import sys

import pytest

import pullback as torch
import pullback.autograd.gradcheck  # noqa: F401

gradcheck = sys.modules["pullback.autograd.gradcheck"]  # the package has a function of that name


def leaves():
    return [torch.ones(2, requires_grad=True) for _ in range(3)]


def test_a_hook_for_the_first_gradient_of_several():
    a, b, c = leaves()
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook([a, b], seen.append, mode="any")
    (a * 2 + b * 3 + c).sum().backward()
    assert len(seen) == 1 and seen[0].tolist() in ([2.0, 2.0], [3.0, 3.0])
    (a * 2).sum().backward()
    assert len(seen) == 2  # once in each backward
    handle.remove()
    (a * 2).sum().backward()
    assert len(seen) == 2
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        torch.autograd.graph.register_multi_grad_hook([a], seen.append, mode="some")


def test_the_edge_of_a_leaf_and_of_a_result():
    (a, *_) = leaves()
    assert torch.autograd.graph.get_gradient_edge(a).node.name().endswith("AccumulateGrad")
    edge = torch.autograd.graph.get_gradient_edge(a * 2)
    assert edge.output_nr == 0 and "Mul" in edge.node.name()


def test_a_budget_is_a_number_of_a_compiled_region():
    with pytest.raises(TypeError, match="expects a float, got str"):
        torch.autograd.graph.region_activation_memory_budget("half")
    with pytest.raises(ValueError, match="must be in"):
        torch.autograd.graph.region_activation_memory_budget(2.0)
    with pytest.raises(RuntimeError, match="only be used inside a torch.compile region"):
        torch.autograd.graph.region_activation_memory_budget(0.5)


@pytest.mark.filterwarnings(
    "ignore:.*deprecated:FutureWarning", "ignore:.*:UserWarning", "ignore:.*:DeprecationWarning"
)
def test_jacobians_of_old_programs():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    (numerical,) = gradcheck.get_numerical_jacobian(lambda given: given[0] ** 2, (x,))
    wanted = torch.tensor([[2.0, 0.0], [0.0, 4.0]], dtype=torch.float64)
    assert torch.allclose(numerical, wanted, atol=1e-5)
    result, same, sizes, types = gradcheck.get_analytical_jacobian((x,), x**2)
    assert torch.equal(result[0], wanted) and same and sizes and types
    with pytest.raises(ValueError, match="grad_out"):
        gradcheck.get_numerical_jacobian(lambda given: given[0], (x,), grad_out=2.0)
    with pytest.raises(ValueError, match="grad_out"):
        gradcheck.get_analytical_jacobian((x,), x * 2, grad_out=2.0)
    with pytest.raises(ValueError, match="complex"):
        gradcheck.get_analytical_jacobian((x,), x * 1j)
    with pytest.raises(ValueError, match="complex"):
        gradcheck.get_numerical_jacobian(lambda given: given[0] * 1j, (x,))


def test_complex_inputs_are_checked_in_both_parts():
    z = torch.randn(2, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: z * z.conj(), (z,), check_forward_ad=True)
    assert torch.autograd.gradcheck(lambda z: (z * 2).exp(), (z,), fast_mode=True, check_forward_ad=True)


def function_with(jvp_rule, in_place=False, view=False):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if in_place:
                ctx.mark_dirty(x)
                x.mul_(2)
                return x
            return x.view_as(x) if view else x * 2

        @staticmethod
        def jvp(ctx, t):
            return jvp_rule(t)

    return F


def tangent_of(function, x, t):
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, t)
        return torch.autograd.forward_ad.unpack_dual(function.apply(dual)).tangent


def test_tangents_of_custom_functions():
    x, t = torch.ones(2), torch.full((2,), 3.0)
    assert tangent_of(function_with(lambda t: t * 2), x, t).tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError):
        tangent_of(function_with(lambda t: (t, t)), x, t)
    assert tangent_of(function_with(lambda t: t.mul_(2), in_place=True), x.clone(), t.clone()).tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="in-?place|inplace"):
        tangent_of(function_with(lambda t: t * 2, in_place=True), x.clone(), t.clone())
    assert tangent_of(function_with(lambda t: t.view_as(t), view=True), x, t).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="view"):
        tangent_of(function_with(lambda t: t * 2, view=True), x, t)


def test_graphs_own_the_tensors_that_they_keep():
    a = torch.rand(2, requires_grad=True)
    assert a._use_count() == 1
    doubled = a * 2
    assert a._use_count() == 2  # its AccumulateGrad
    square, wave = a * a, a.sin()
    assert a._use_count() == 5
    del doubled, square, wave
    assert a._use_count() == 1
