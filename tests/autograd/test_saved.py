"""Saved-tensor hooks: packing, identity in the graph, nesting, refusals, hooks of single tensors."""

import pytest

import pullback as torch
from pullback.autograd import graph


def test_backward_sees_what_unpack_returns():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    log = []

    def pack(t):
        log.append("pack")
        return t.detach() * 10

    with graph.saved_tensors_hooks(pack, lambda t: (log.append("unpack"), t / 10)[1]):
        y = x * x
    y.sum().backward()
    assert log == ["pack", "pack", "unpack", "unpack"] and x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("fn", [lambda x: x**3, torch.exp, lambda x: x * x * x, lambda x: torch.stack([x, x]).prod(0)])
def test_history_survives_packing(fn):
    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    expected = torch.autograd.functional.hessian(lambda x: fn(x).sum(), x.detach())
    with graph.saved_tensors_hooks(lambda t: t.detach().numpy().copy(), torch.from_numpy):
        (g,) = torch.autograd.grad(fn(x).sum(), x, create_graph=True)
        result = torch.stack([torch.autograd.grad(v, x, retain_graph=True)[0] for v in g])
    assert torch.allclose(result, expected)


def test_the_innermost_pair_counts():
    x = torch.ones(2, requires_grad=True)
    seen = []
    outer = graph.saved_tensors_hooks(lambda t: (seen.append("outer"), t)[1], lambda t: t)
    inner = graph.saved_tensors_hooks(lambda t: (seen.append("inner"), t)[1], lambda t: t)
    with outer:
        with inner:
            x.exp()
        x.exp()
    x.exp()
    assert seen == ["inner", "outer"]


def test_disabling():
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="^not here$"):
            with graph.save_on_cpu():
                pass
    with graph.save_on_cpu():
        x = torch.ones(2, requires_grad=True)
        x.exp().sum().backward()
    assert torch.allclose(x.grad, torch.ones(2).exp())


def test_hooks_of_one_tensor():
    x = torch.tensor([2.0], requires_grad=True)
    y = x**2
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t * 3, lambda t: t)
    assert y.grad_fn._saved_self.item() == 6.0
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y.backward()
    assert x.grad.item() == 12.0
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def test_hooks_that_misbehave():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="modifying its input in place"):
        with graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
            (x * 1).exp()
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type int"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        torch.autograd.SavedTensor()


def test_mutation_allowed():
    x = torch.ones(2, requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        y = x * 2
        z = y.sin() * y
        y.zero_()
        z.sum().backward()
    with torch.no_grad():
        two = torch.full((2,), 2.0)
        assert torch.allclose(x.grad, 2 * (two.cos() * two + two.sin()))


def test_multi_grad_hooks_and_edges():
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    seen = []
    handle = graph.register_multi_grad_hook(
        (a, b), lambda gs: seen.append([None if g is None else g.tolist() for g in gs])
    )
    (a * 2 + b * 3).sum().backward()
    (a * 2).sum().backward()
    assert seen == [[[2.0, 2.0], [3.0, 3.0]], [[2.0, 2.0], None]]
    handle.remove()
    (a * 2 + b).sum().backward()
    assert len(seen) == 2
    y = a * 2
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn
    assert torch.autograd.grad((y * 3).sum(), edge)[0].tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(torch.ones(1))
    assert isinstance(y.grad_fn, graph.Node) and not isinstance(1, graph.Node)


def test_results_written_into_views_are_packed_too():
    x = torch.rand(4, dtype=torch.float64, requires_grad=True)

    def fn(x):
        y = x * 2
        y[1:].exp_()  # saves its own result
        return (y * y).sum()

    expected = torch.autograd.functional.hessian(fn, x)
    with graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        result = torch.autograd.functional.hessian(fn, x)
    assert torch.allclose(result, expected)


def test_saved_results_without_gradients_get_no_history_from_their_tangents() -> None:
    """Mean and rate of a layer norm carry tangents, and are no places from which gradients come back."""
    x, weight = torch.randn(3, 2, 4), torch.randn(4)
    slopes = torch.func.jacrev(lambda w: torch.nn.functional.layer_norm(x, [4], w))
    pulled = lambda w: torch.func.vjp(slopes, w)[1](torch.ones(3, 2, 4, 4))[0]
    assert torch.func.jvp(pulled, (weight,), (weight,))[1].tolist() == [0] * 4  # it is linear in the weight
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    for hooked in (False, True):
        with torch.autograd.forward_ad.dual_level(), hooks if hooked else torch.enable_grad():
            dual = torch.autograd.forward_ad.make_dual(x.clone().requires_grad_(), x)
            out, mean, _ = torch.native_layer_norm(dual, [4], weight, None, 1e-5)
            assert out.grad_fn._saved_out1.grad_fn is None and not mean.requires_grad
