"""Indexing in native code: degenerate shapes, places named twice, what operators refuse."""

import pytest

import pullback as torch
from tests.codegen.test_program import check


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize(("shape", "at"), [((5,), torch.tensor(2)), ((), torch.tensor([0])), ((), torch.tensor(0))])
def test_gather_between_numbers_and_vectors(shape: tuple, at, dynamic: bool) -> None:
    x = torch.randn(shape, requires_grad=True)
    ours = torch.compile(lambda x: x.gather(0, at) * 2, backend="inductor", dynamic=dynamic)(x)
    eager = x.gather(0, at) * 2
    torch.testing.assert_close(ours, eager)
    torch.testing.assert_close(torch.autograd.grad(ours.sum(), x), torch.autograd.grad(eager.sum(), x))


@pytest.mark.parametrize("d", ["float32", "bfloat16", "int32"])
def test_places_named_twice(d: str) -> None:
    """They meet in the order of the index: the last one stays, or all are combined, narrow floats as the operators round them."""
    torch.manual_seed(0)
    x, s, v = ((torch.randn(*n) * 3).to(getattr(torch, d)) for n in ((9, 20), (30, 20), (30, 7)))
    i, j = torch.randint(0, 9, (30, 20)), torch.randint(0, 20, (7,))
    ways = ("sum", "prod", "amax", "amin", *(("mean",) if x.dtype.is_floating_point else ()))

    def f(x, s, v, i, j):
        result = [x.scatter(0, i, s), x.scatter(0, i, 3), x.scatter_add(0, i, s), x.index_fill(1, j, 2)]
        result += [x.index_add(0, i[:, 0], s, alpha=2), x.index_copy(0, i[:, 0], s)]
        for how in ways:
            result += [x.scatter_reduce(0, i, s, how, include_self=inside) for inside in (True, False)]
        result += [x.index_reduce(0, i[:, 0], s, how, include_self=False) for how in ways[1:]]
        result += [
            x.index_put((i[:, :1], j), v),
            x.index_put((i[:7, :7].t(), j), v[:7]),
            x.index_put((i[:, 0],), s, True),
        ]
        return tuple(result)

    check(f, x, s, v, i, j, whole=d != "bfloat16")  # index_reduce rounds narrow products at every step: an operator


@pytest.mark.parametrize("case", ["index beyond the source", "index out of bounds", "another dtype"])
def test_what_operators_refuse_is_refused(case: str) -> None:
    x, s = torch.zeros(4, 5), torch.ones(3, 5)
    i = torch.full((4 if case == "index beyond the source" else 3, 5), 9 if case == "index out of bounds" else 0)
    s = s.double() if case == "another dtype" else s
    f = torch.compile(lambda x, i, s: x.scatter_add(0, i, s) + 1, backend="inductor")
    with pytest.raises(RuntimeError, match="Expected index|out of bounds|Expected self.dtype"):
        f(x, i, s)


def test_a_number_that_does_not_fit_is_refused() -> None:
    x, at = torch.zeros(4, dtype=torch.uint8), torch.tensor([1, 2])
    functions = (
        lambda x, at: x.scatter(0, at, 300) + 1,
        lambda x, at: x.index_fill(0, at, 300) + 1,
        lambda x, at: torch.full_like(x, 300) + x,
        lambda x, at: torch.full((4,), 300, dtype=torch.uint8) + x,
    )
    for f in functions:
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.compile(f, backend="inductor")(x, at)


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_scatter_with_numbers(shape: tuple) -> None:
    """A tensor without dimensions is one element."""
    x = torch.ones(shape)
    at, src = torch.tensor(0), torch.tensor(5.0)
    check(lambda x, at, src: (x.scatter(0, at, src), x.scatter_add(0, at, src)), x, at, src)
    source = src if not shape else src[None]
    check(lambda x, at, src: x.index_add(0, at, src), x, at, source)
