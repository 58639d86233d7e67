"""Function transforms that were made before they are captured: graphs of what they compute, for each that is called."""

import functools

import pytest

import pullback as torch
from pullback import vmap
from pullback.func import chunk_vmap, functionalize, grad, grad_and_value, hessian, jacfwd, jacrev

CUBES = torch.arange(8.0).view(2, 2, 2)


def cubed(x):
    return (x**3).sum()


def compiled(f):
    return torch.compile(f, backend="eager", fullgraph=True)


def same(got, want):
    torch.testing.assert_close(got, want, rtol=0, atol=0)


MADE = {
    "vmap": vmap(cubed),
    "vmap of the last": vmap(torch.sin, in_dims=2),
    "vmap to the last": vmap(torch.sin, out_dims=2),
    "vmap in chunks": vmap(torch.sin, chunk_size=1),
    "chunk_vmap": chunk_vmap(torch.sin, chunks=2),
    "vmap of vmap": vmap(vmap(cubed)),
    "grad": grad(cubed),
    "grad of grad": grad(lambda x: grad(cubed)(x).sum()),
    "grad_and_value": grad_and_value(cubed),
    "jacrev": jacrev(torch.sin),
    "jacfwd": jacfwd(torch.sin),
    "hessian": hessian(cubed),
    "vmap of grad": vmap(grad(cubed)),
    "grad of vmap": grad(lambda x: vmap(cubed)(x).sum()),
    "vmap of a module": vmap(torch.nn.Linear(2, 2)),
}


@pytest.mark.parametrize("name", MADE)
def test_one_graph_gives_what_the_transform_gives(name):
    f = MADE[name]
    same(compiled(f)(CUBES), f(CUBES))
    same(compiled(lambda x: f(x))(CUBES), f(CUBES))


def test_each_transform_has_a_graph_of_its_own():
    step = compiled(lambda f, x: f(x))
    some = [MADE[name] for name in ("vmap", "vmap of the last", "vmap to the last", "grad", "jacrev", "vmap of grad")]
    for f in (*some, *some):
        same(step(f, CUBES), f(CUBES))


def test_what_the_function_reaches_is_seen_when_it_changes():
    factor = 3.0

    def f(x):
        return x * factor

    g = compiled(vmap(f))
    same(g(CUBES), CUBES * 3)
    factor = 5.0
    same(g(CUBES), CUBES * 5)


def test_decorated_functions_and_nested_arguments():
    @functools.partial(vmap, in_dims=({"q": 0, "r": None},))
    def f(d):
        return d["q"] + d["r"]

    @functools.wraps(f)  # which copies how `f` was made
    def more(d):
        return f(d) + 1

    given = {"q": CUBES, "r": CUBES[0]}
    same(compiled(f)(given), f(given))
    same(compiled(more)(given), f(given) + 1)


def test_functionalize_still_runs():
    f = functionalize(lambda x: x.clone().mul_(2))
    same(torch.compile(f, backend="eager")(CUBES), CUBES * 2)
