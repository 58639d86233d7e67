"""Kernels for CUDA devices compute what operators compute: each way of sharing loops among threads, on an emulated device."""

from __future__ import annotations

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.joint.aot import aot_function
from pullback.joint.partition import min_cut_rematerialization_partition

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 2e-3}


def same(got, want) -> None:
    for number, (g, w) in enumerate(zip(got, want, strict=True)):
        assert g.dtype is w.dtype and g.shape == w.shape and g.stride() == w.stride(), number
        scale = max(float(w.abs().max()), 1e-3) if w.dtype.is_floating_point else 0
        tolerance = TOLERANCE.get(w.dtype, 0) * scale
        assert torch.allclose(g.double(), w.double(), rtol=0, atol=tolerance, equal_nan=True), (number, g, w)


def agree(emulated, f, *args):
    """`f` gives a tuple."""
    compiled = emulated(f, *args)
    same(compiled(*args), f(*args))
    return compiled


# A part of a warp, a warp, registers, blocks of all sizes, loops over long rows; with and without vectors.
LENGTHS = (1, 3, 8, 33, 60, 256, 1000, 1025, 4100, 40000)


def test_rows_of_every_length(emulated):
    torch.manual_seed(0)
    rows = [torch.randn(r, n) for r, n in zip((3, 40, 2, 5) * 3, LENGTHS, strict=False)]

    def f(*xs):
        return tuple(
            y for x in xs for y in (F.softmax(x * 0.5, -1), F.layer_norm(x, x.shape[-1:]), x.sum(-1), x.amax(-1))
        )

    agree(emulated, f, *rows)


def test_rows_across_memory(emulated):
    torch.manual_seed(0)
    xs = [torch.randn(*s) for s in ((100, 60), (3, 33), (1000, 9), (7, 40, 11), (2000, 64))]

    def f(*xs):
        return tuple(y for x in xs for y in (x.sum(0), x.exp().mean(0), F.softmax(x, 0), x.amin(0), (x > 0).any(0)))

    agree(emulated, f, *xs)


def test_sums_of_everything_are_made_in_two_steps(emulated):
    x, y = torch.randn(300, 700), torch.randn(4, 30000)
    compiled = agree(emulated, lambda x, y: (x.sum(), (x * x).mean(), y.sum(1), y.prod(1)), x, y)
    assert "blockIdx" in compiled.source and len(compiled.kernels) > 4


def test_element_by_element(emulated):
    torch.manual_seed(0)
    x, b = torch.randn(60, 100), torch.randn(100)
    whole = torch.randn(7, 40, 12)
    views = (whole[:, ::2], whole.permute(2, 0, 1), whole[..., 1:], torch.randn(5), torch.randn(()))

    def f(x, b, *views):
        return (torch.relu(x * 2 + b).t(), x.t().contiguous(), *[v.sin() * 2 for v in views], views[0] + views[3][:1])

    agree(emulated, f, x, b, *views)


def test_more_elements_than_threads(emulated):
    x = torch.randn(5_000_001)
    agree(emulated, lambda x: (x * 2 + 1, x[1:] - x[:-1]), x)


def test_places_that_are_computed(emulated):
    torch.manual_seed(0)
    table, at = torch.randn(50, 24), torch.randint(0, 50, (9, 4))
    counts, where, values = torch.zeros(6, dtype=torch.int64), torch.randint(0, 6, (40,)), torch.randn(40)
    small = torch.zeros(6, dtype=torch.int8)

    def f(table, at, counts, where, values, small):
        return (
            F.embedding(at, table),
            table.index_select(1, at[0] % 24),
            torch.zeros_like(table).index_add(0, at.flatten(), table[:36]),
            counts.scatter_add(0, where, torch.ones_like(where)),
            small.scatter_add(0, where, torch.ones_like(where).to(torch.int8)),
            torch.zeros(6).scatter_reduce(0, where, values, "amax"),
            torch.ones(6).scatter_reduce(0, where, values, "prod"),
        )

    agree(emulated, f, table, at, counts, where, values, small)


def test_running_sums(emulated):
    torch.manual_seed(0)
    xs = [torch.randn(5, 100), torch.randn(3, 1000), torch.rand(40, 33)]

    def f(*xs):
        return tuple(
            y for x in xs for y in (x.cumsum(1), x.cumsum(0), x.cumprod(0), x.logcumsumexp(1), (x > 0.5).cumsum(-1))
        )

    agree(emulated, f, *xs)


@pytest.mark.parametrize("d", [torch.bfloat16, torch.float16])
def test_narrow_floats_are_stored_and_not_computed_in(emulated, d):
    torch.manual_seed(0)
    x, w, b = torch.randn(12, 64).to(d), torch.randn(40, 64).to(d), torch.randn(40).to(d)

    def f(x, w, b):
        return (F.gelu(F.linear(x, w, b)), F.layer_norm(x, (64,)), F.softmax(x, -1), x.sum(0), x * 1.1, x.float() + 1)

    agree(emulated, f, x, w, b)


def test_products(emulated):
    torch.manual_seed(0)
    a, b, c = torch.randn(3, 4, 5, 6), torch.randn(3, 4, 6, 7), torch.randn(7, 6)
    d = torch.randn(5, 6, dtype=torch.float64)

    def f(a, b, c, d):
        heads = a.transpose(1, 2)
        return (a @ b, c @ b, a @ c.t(), heads @ c.t(), d @ d.t(), a[0, 0] @ b[1, 2], a.mT @ a, torch.bmm(a[0], b[1]))

    agree(emulated, f, a, b, c, d)


def test_a_training_step(emulated, monkeypatch):
    from pullback.codegen import compile_graph
    from pullback.codegen.cuda import segment

    torch.manual_seed(0)

    def loss(x, target, w1, b1, scale, w2):
        hidden = F.layer_norm(F.gelu(F.linear(x, w1, b1)), (32,), scale)
        return F.cross_entropy(hidden @ w2, target)

    x, target = torch.randn(100, 60), torch.randint(0, 10, (100,))
    shapes = ((32, 60), (32,), (32,), (32, 10))
    weights = [torch.randn(*s, requires_grad=True) for s in shapes]
    graphs = []

    def compiler(graph, inputs):
        graphs.append(compile_graph(graph))
        return graphs[-1]

    step = aot_function(loss, compiler, partition_fn=min_cut_rematerialization_partition)
    value = step(x, target, *weights)
    value.backward()
    assert len(graphs) == 2 and all(
        g.native and all(isinstance(s, segment.CudaSegment) for s in g.segments) for g in graphs
    )
    expected = loss(x, target, *weights)
    same([value, *[w.grad for w in weights]], [expected, *torch.autograd.grad(expected, weights)])


def test_an_index_out_of_bounds_is_raised_by_the_next_run(emulated):
    compiled = emulated(F.embedding, torch.tensor([0, 3]), torch.randn(4, 6))
    table = torch.randn(4, 6)
    compiled(torch.tensor([0, 9]), table)
    with pytest.raises(RuntimeError, match="device-side assert triggered"):
        compiled(torch.tensor([0, 1]), table)
    assert compiled(torch.tensor([0, 1]), table).equal(table[:2])


def test_arguments_that_vectors_cannot_be_read_from_are_copied(emulated):
    compiled = emulated(lambda x: x * 2, torch.randn(8))
    base = torch.arange(9.0)
    assert base[1:].data_ptr() % 16 and compiled(base[1:]).equal(base[1:] * 2)
    apart = torch.arange(27.0).view(3, 9)[:, 1:]  # rows that do not follow on each other
    assert emulated(lambda x: x * 2, apart)(apart).equal(apart * 2)


def test_arguments_that_do_not_fit_run_as_operators(emulated, monkeypatch):
    from pullback.codegen import segment as cpu
    from pullback.codegen.cuda import segment

    seen = []
    monkeypatch.setattr(segment, "run_nodes", lambda *args: (seen.append(1), cpu.run_nodes(*args)))
    compiled = emulated(lambda x: x * 2, torch.randn(4, 6))
    for x in (torch.randn(6, 4).t(), torch.randn(4, 6).double(), torch.randn(4, 5)):
        assert compiled(x).equal(x * 2)
    assert len(seen) == 3


@pytest.mark.parametrize("d", [torch.float32, torch.bfloat16])
def test_attention(emulated, d):
    torch.manual_seed(0)
    x = torch.randn(2, 16, 3 * 4 * 8).to(d)

    def f(x):
        q, k, v = x.view(2, 16, 3, 4, 8).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return (mixed.transpose(1, 2).reshape(2, 16, 32) * 2,)

    agree(emulated, f, x)
