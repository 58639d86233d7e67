"""The walk in C and the one in Python: same gradients, same order of nodes and hooks, same errors, on random graphs."""

import random

import pytest

import pullback as torch
from pullback.autograd import engine

pytestmark = pytest.mark.skipif(engine.quick_walk is None, reason="the extension is not built")


class Split(torch.autograd.Function):
    """Two results, of which gradients may come back for one alone."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        parts = [g * k for g, k in ((first, 2), (second, 3)) if g is not None]
        return sum(parts) if parts else None


def grow(draw: random.Random) -> tuple[list, list]:
    """Leaves, and values computed from them by calls that are drawn."""
    leaves = [torch.full((n,), float(i + 1), requires_grad=i != 3) for i, n in enumerate((4, 1, 4, 4))]
    values = list(leaves)
    for _ in range(draw.randint(1, 14)):
        a, b = draw.choice(values), draw.choice(values)
        values += draw.choice(
            [
                lambda a, b: [a * b],
                lambda a, b: [a + b],
                lambda a, b: [a + b.double()] if a.dtype is torch.float32 else [a.sin()],
                lambda a, b: list(Split.apply(a)),
                lambda a, b: list(torch.stack([a.expand(4), b.expand(4)]).unbind(0)),
                lambda a, b: [a.detach() * b],
                lambda a, b: [a[:1]],
            ]
        )(a, b)
    return leaves, values


def heard(g: torch.Tensor | None, i: int, changes: bool, seen: list) -> torch.Tensor | None:
    seen.append(("tensor", i, g if g is None else g.tolist()))
    return g * 2 if changes and g is not None else None


def listen(draw: random.Random, values: list, seen: list) -> None:
    """Hooks that are drawn: they note what they see; some change it."""
    for i, v in enumerate(values):
        if not v.requires_grad or draw.random() > 0.2:
            continue
        kind, changes = draw.randrange(5), draw.random() < 0.3
        if kind == 0:
            v.register_hook(lambda g, i=i, c=changes: heard(g, i, c, seen))
        elif kind == 1 and v.grad_fn is not None:
            v.grad_fn.register_prehook(lambda gs, i=i: seen.append(("before", i, len(gs))))
        elif kind == 2 and v.grad_fn is not None:
            v.grad_fn.register_hook(lambda ins, outs, i=i: seen.append(("after", i, len(ins), len(outs))))
        elif kind == 3 and v.is_leaf:
            v.register_post_accumulate_grad_hook(lambda t, i=i: seen.append(("added", i, t.grad.tolist())))
        else:
            v.retain_grad()


def account(seed: int) -> list:
    """All that can be seen of a drawn backward."""
    draw = random.Random(seed)
    leaves, values = grow(draw)
    seen: list = []
    listen(draw, values, seen)
    live = [v for v in values if v.requires_grad]
    roots = draw.choices(live, k=draw.randint(1, 3))
    seeds = [torch.full_like(r, draw.randint(1, 3)) for r in roots]
    inputs = draw.choices(live, k=draw.randint(1, 4))
    how = draw.choice(["grad", "backward", "backward to inputs"])
    keep, create = draw.random() < 0.5, draw.random() < 0.3
    for _ in range(2):
        try:
            if how == "grad":
                got = torch.autograd.grad(roots, inputs, seeds, keep, create, allow_unused=True)
                seen.append([None if g is None else (g.tolist(), str(g.dtype), g.requires_grad) for g in got])
            else:
                to = inputs if how == "backward to inputs" else None
                torch.autograd.backward(roots, seeds, keep, create, inputs=to)
        except RuntimeError as error:
            seen.append(str(error))
    with torch.no_grad():
        seen += [None if v.grad is None else v.grad.tolist() for v in leaves]
        seen += [v.grad.tolist() for v in values if v.retains_grad and v.grad is not None]
    return seen


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(150))
def test_both_walks_can_be_told_apart_by_nothing(seed, monkeypatch):
    expected = account(seed)
    monkeypatch.setattr(engine, "quick_walk", None)
    assert account(seed) == expected


@pytest.mark.parametrize("by", ["chosen", "python"])
def test_a_node_that_returns_too_few_gradients_says_so(by, monkeypatch):
    if by == "python":
        monkeypatch.setattr(engine, "quick_walk", None)
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    out = x * y
    out.grad_fn.register_hook(lambda ins, outs: ins[:1])
    with pytest.raises(RuntimeError, match="incorrect number of values"):
        out.sum().backward()


def test_an_edge_to_no_output_of_its_node_says_so():
    x = torch.ones(2, requires_grad=True)
    out = x * 2
    node = out.grad_fn
    out.sum().backward(retain_graph=True)
    other = (out * 3).sum()
    below = other.grad_fn.next_functions[0][0]
    below.edges = ((node, 7), *below.edges[1:])
    with pytest.raises(IndexError, match="an output that its node does not have"):
        other.backward()
