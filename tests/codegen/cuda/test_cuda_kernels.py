"""Kernels for CUDA devices compute what operators compute: each way of sharing loops among threads, on an emulated device."""

from __future__ import annotations

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.codegen import compile_graph
from pullback.codegen import segment as cpu
from pullback.codegen.cuda import lower, printer, segment
from pullback.joint.aot import aot_function
from pullback.joint.partition import min_cut_rematerialization_partition
from tests.codegen.cuda.programs import PROGRAMS, loss, loss_arguments, same


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(emulated, name):
    torch.manual_seed(0)
    f, args = PROGRAMS[name]()
    same(emulated(f, *args)(*args), f(*args))


@pytest.mark.parametrize("name", ["rows", "columns", "elements", "places", "running_sums"])
def test_places_beyond_32_bits(emulated, monkeypatch, name):
    """Kernels of huge buffers count in 64 bits: here all do."""
    monkeypatch.setattr(printer, "SMALL", 1)
    torch.manual_seed(0)
    f, args = PROGRAMS[name]()
    compiled = emulated(f, *args)
    assert "const i64 row" in compiled.source or "const i64 t" in compiled.source
    same(compiled(*args), f(*args))


def test_a_training_step(emulated):
    torch.manual_seed(0)
    x, target, *weights = loss_arguments()
    graphs = []

    def compiler(graph, inputs):
        graphs.append(compile_graph(graph))
        return graphs[-1]

    step = aot_function(loss, compiler, partition_fn=min_cut_rematerialization_partition)
    value = step(x, target, *weights)
    value.backward()
    assert len(graphs) == 2 and all(g.native and isinstance(g.segments[0], segment.CudaSegment) for g in graphs)
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
    seen = []
    monkeypatch.setattr(segment, "run_nodes", lambda *args: (seen.append(1), cpu.run_nodes(*args)))
    compiled = emulated(lambda x: x * 2, torch.randn(4, 6))
    for x in (torch.randn(6, 4).t(), torch.randn(4, 6).double(), torch.randn(4, 5)):
        assert compiled(x).equal(x * 2)
    assert len(seen) == 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_with_odd_sides_are_rounded_up(emulated, monkeypatch, dtype):
    monkeypatch.setattr(lower, "MUCH", 1)
    torch.manual_seed(0)
    x, w, g = (torch.randn(*s).to(dtype) for s in ((9, 16), (13, 16), (9, 13)))
    f = lambda x, w, g: (x @ w.t(), g @ w, g.t() @ x, (g * 2).t() @ x)
    compiled = emulated(f, x, w, g)
    products = [e for e in compiled.segments[0].source.plan.entries if e[0] == 1]
    assert len(products) == 4 and all(side % 8 == 0 for e in products for side in (*e[3:6], *e[6:9]))
    same(compiled(x, w, g), f(x, w, g))
    y = torch.randn(7, 5).to(dtype)
    same([emulated(lambda y: y.t() @ y, y)(y)], [y.t() @ y])


def test_batches_at_uneven_distances_are_one_call(emulated):
    torch.manual_seed(0)
    qkv = torch.randn(3, 5, 3, 4, 8)

    def attend(qkv):
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        return F.softmax(q @ k.transpose(-1, -2), -1) @ v

    compiled = emulated(attend, qkv)
    assert all(e[21] == 1 for e in compiled.segments[0].source.plan.entries if e[0] == 1)
    same([compiled(qkv)], [attend(qkv)])


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("attributes", [(3, 2, 1), ([3, 2], [1, 2], [1, 0]), (2, 2), (2, 1, 0, 2), (5, 3, 2)])
def test_windows_over_a_border_are_read_in_place(emulated, last, attributes):
    """One kernel, and no copy with a border; NaN, equal numbers and infinities as ever."""
    torch.manual_seed(0)
    x = torch.randn(2, 8, 12, 10)
    x[0, 0, 0, 0] = x[1, 2, 11, 9] = x[1, 5, 4:6, 3] = float("nan")
    x[0, 3], x[0, 4] = 1.0, -float("inf")
    x = x.to(memory_format=torch.channels_last) if last else x
    f = lambda x: torch.ops.aten.max_pool2d_with_indices(x, *attributes)
    compiled = emulated(f, x)
    assert len(compiled.segments[0].source.plan.entries) == 1
    values, places = compiled(x)
    expected, expected_places = f(x)
    assert torch.equal(places, expected_places) and values.stride() == expected.stride()
    assert torch.equal(values.nan_to_num(9.0), expected.nan_to_num(9.0))


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("around", [0.0, 1000.0])
def test_statistics_of_long_rows_take_one_pass(emulated, last, around):
    torch.manual_seed(0)
    x = torch.randn(16, 8, 48, 48) * 0.1 + around
    x = x.to(memory_format=torch.channels_last) if last else x
    compiled = emulated(lambda x: torch.var_mean(x, (0, 2, 3)), x)
    assert len(compiled.segments[0].source.plan.entries) == 2  # pieces of all rows, and what they come to
    for a, b in zip(compiled(x), torch.var_mean(x.double(), (0, 2, 3)), strict=True):
        assert (
            float(((a - b) / b.abs().clamp(1e-3)).abs().max()) < 2e-6
            if around
            else torch.allclose(a.double(), b, atol=1e-6)
        )


def test_small_kernels_of_the_same_loops_are_one(emulated):
    """What shares nothing is put side by side where a launch costs more than the work; what follows from a result comes after it."""
    torch.manual_seed(0)
    x, y, z = torch.randn(40), torch.randn(40), torch.randn(1 << 15)
    f = lambda x, y, z: (x + 1, z * 2, y.exp(), z[:40].cumsum(0) * 3)
    compiled = emulated(f, x, y, z)
    kernels = compiled.segments[0].source.kernels
    assert len(kernels) == 4 and sum("exp" in k and "+ 1" in k for k in kernels) == 1
    same(compiled(x, y, z), f(x, y, z))
