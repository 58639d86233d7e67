"""`comptime`: Python that runs while a program is captured."""

from __future__ import annotations

import io

import pytest

import pullback as torch
from pullback.capture.bytecode.comptime import comptime

FILE = io.StringIO()


def compiled(f, **options):
    graphs = []
    return torch.compile(f, backend=lambda gm, _: graphs.append(gm) or gm, **options), graphs


def test_it_shows_the_program_and_is_no_part_of_it():
    def f(x):
        y = x * 2

        @comptime
        def _(ctx):
            ctx.print(ctx.get_local("y"), file=FILE)
            ctx.print_locals(file=FILE)
            ctx.print_guards(file=FILE)
            ctx.print_disas(file=FILE)
            ctx.print_bt(file=FILE)
            ctx.print_graph(verbose=False, file=FILE)

        return y + 3

    FILE.truncate(0)
    run, graphs = compiled(f, fullgraph=True)
    assert run(torch.ones(2)).tolist() == [5.0, 5.0] and len(graphs) == 1
    text = FILE.getvalue()
    for part in (
        "FakeTensor(..., size=(2,))",
        "y = FakeTensor",
        "check_tensor(L['x']",
        "--> ",
        "in f",
        "aten.mul.Tensor",
    ):
        assert part in text
    run(torch.ones(2))
    assert FILE.getvalue() == text
    assert f(torch.ones(2)).tolist() == [5.0, 5.0] and FILE.getvalue() == text


def test_it_ends_graphs():
    def f(x):
        y = x * 2
        comptime.graph_break()
        return y + 3

    run, graphs = compiled(f)
    assert run(torch.ones(1)).item() == 5 and len(graphs) == 2


def test_numbers_that_must_be_what_they_are():
    def asked(x):
        comptime.assert_static(x.size(0))
        return x + 1

    def forced(x):
        comptime.force_static(x.size(0))
        comptime.assert_static(x.size(0))
        return x + 1

    run, _ = compiled(asked, dynamic=True)
    with pytest.raises(AssertionError, match="expected static but got dynamic"):
        run(torch.ones(3))
    run, graphs = compiled(forced, dynamic=True)
    assert [run(torch.ones(n)).sum().item() for n in (3, 4, 3)] == [6, 8, 6] and len(graphs) == 2


def test_what_is_done_instead():
    done = []
    comptime(lambda ctx: 1 / 0, lambda: done.append(1))
    assert done == [1]
