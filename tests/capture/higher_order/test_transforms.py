"""Function transforms inside captured programs."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.higher_order import wrap
from pullback.core.tree import tree_leaves
from pullback.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap

weight = torch.tensor([1.0, 2.0, 3.0])


def loss(x, scale=2.0):
    return (x * weight * scale).sin().sum()


PROGRAMS = {
    "grad": lambda x: grad(loss)(x) * 2,
    "grad of a closure": lambda x: grad(lambda y: (y * x).sum() + loss(y))(x.cos()),
    "value, keyword": lambda x: grad_and_value(loss)(x, scale=3.0),
    "has_aux": lambda x: grad(lambda y: (loss(y), {"y": y * 2}), has_aux=True)(x),
    "argnums": lambda x: grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, x * 2),
    "grad of grad": lambda x: grad(lambda y: grad(loss)(y).sum())(x),
    "vjp": lambda x: vjp(torch.sin, x)[1](x)[0] + vjp(torch.sin, x)[0],
    "jvp": lambda x: jvp(torch.sin, (x,), (x * 2,)),
    "jacrev": lambda x: jacrev(lambda y: y * y * weight)(x),
    "jacfwd": lambda x: jacfwd(lambda y: y.exp().outer(weight))(x),
    "hessian": lambda x: hessian(loss)(x),
    "vmap of grad": lambda x: vmap(grad(lambda y: (y * weight).sin().sum()))(torch.stack([x, x * 2])),
    "vmap along another": lambda x: vmap(grad(loss), in_dims=1, out_dims=1)(torch.stack([x, x * 2], 1)),
    "wrap": lambda x: wrap(lambda a, b: {"out": a * b + weight, "same": b}, x, x.cos()),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_gives_what_the_program_gives(name: str, backend: str) -> None:
    program = PROGRAMS[name]
    x = torch.tensor([0.1, 0.2, 0.3], requires_grad=True)
    y = x.detach().clone().requires_grad_()
    wanted, got = program(x), torch.compile(program, backend=backend, fullgraph=True)(y)
    leaves = [tree_leaves(v) for v in (wanted, got)]
    for a, b in zip(*leaves, strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(b, a)
            assert a.requires_grad == b.requires_grad
        else:
            assert a == b
    for part in leaves:
        sum((v * v).sum() for v in part if isinstance(v, torch.Tensor) and v.requires_grad).backward()
    torch.testing.assert_close(y.grad, x.grad)


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: lambda x: grad(lambda v: f(v).sum())(x),
        lambda f: lambda x: vjp(f, x)[1](x)[0],
        lambda f: lambda x: jvp(f, (x,), (x,))[1],
        lambda f: jacrev(f),
        lambda f: jacfwd(f),
        lambda f: vmap(grad(lambda v: f(v).sum())),
    ],
    ids=["grad", "vjp", "jvp", "jacrev", "jacfwd", "vmap of grad"],
)
@pytest.mark.parametrize("inner", [torch.no_grad, torch.enable_grad])
def test_a_function_that_is_differentiated_is_outside_of_inference_mode(transform, inner) -> None:
    def f(v):
        with inner():
            unseen = (v * v).detach() if torch.is_inference_mode_enabled() else v * v
        return unseen + v * (3.0 if (v * 1).requires_grad else 5.0)

    def program(x):
        return transform(f)(x) * 2

    x = torch.tensor([[0.5, 2.0]])
    with torch.inference_mode():
        got = torch.compile(program, backend="eager", fullgraph=True)(x)
        assert got.tolist() == program(x).tolist()


def test_a_hook_in_forward_mode_is_run_by_the_gradient_around_it() -> None:
    def f(v):
        with torch.enable_grad():
            b = v * 1
        if b.requires_grad:
            b.register_hook(lambda g: g * 2)
        return b * b

    def program(x):
        return grad(lambda v: jvp(f, (v,), (torch.ones_like(v),))[1].sum())(x)

    x = torch.tensor([1.0, 2.0])
    assert torch.compile(program)(x).tolist() == program(x).tolist()


def test_the_graph_is_one_call_and_serves_other_values() -> None:
    graphs = []

    def backend(gm, examples):
        graphs.append(gm)
        return gm

    run = torch.compile(lambda x: grad(loss)(x), backend=backend, fullgraph=True)
    for x in (torch.ones(3), torch.zeros(3)):
        torch.testing.assert_close(run(x), grad(loss)(x))
    (graph,) = graphs
    assert [n.name for n in graph.graph.nodes if n.op == "call_function"][0] == "grad_and_value"
    assert any(str(n.target) == "aten.sin.default" for n in graph.func_body_0.graph.nodes)


def test_exported_programs_have_them_too() -> None:
    class Tangent(torch.nn.Module):
        def forward(self, x, t):
            return jvp(lambda y: (y * weight).sin(), (x,), (t,))

    x, t = torch.ones(3), torch.full((3,), 2.0)
    program = torch.export.export(Tangent(), (x, t))
    for module in (program.module(), program.run_decompositions().module()):
        for a, b in zip(module(t, x), Tangent()(t, x), strict=True):
            torch.testing.assert_close(a, b)


def test_a_wrapped_function_is_one_node_with_what_it_reads() -> None:
    graphs = []

    def program(x, unused):
        return wrap(lambda a, b: (a.sin() + weight, weight), x, unused)

    def backend(gm, examples):
        graphs.append(gm)
        return gm

    out = torch.compile(program, backend=backend, fullgraph=True)(torch.ones(3), torch.ones(5))
    (node,) = [n for n in graphs[0].graph.nodes if n.target is wrap]
    assert len(node.args) == 3 and [n.op for n in graphs[0].wrap_body_0.graph.nodes][:2] == ["placeholder"] * 2
    assert out[1] is weight
    torch.testing.assert_close(out[0], torch.ones(3).sin() + weight)


def test_a_wrapped_function_with_effects_ends_the_graph() -> None:
    seen = []

    def noted(x):
        seen.append(x.shape)
        return x.sin()

    def program(x):
        return wrap(noted, x.cos())

    x = torch.ones(3)
    torch.testing.assert_close(torch.compile(program, backend="eager")(x), x.cos().sin())
    assert len(seen) == 1
    with pytest.raises(RuntimeError, match="HOP: Unsafe side effect"):
        torch.compile(program, backend="eager", fullgraph=True)(x)
