"""The order of graphs with calls that go on by themselves: begun early, awaited late, and nothing else changed."""

import pullback as torch
import pullback.distributed  # noqa: F401 - declares the operators
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen.overlap import overlapped

f = torch.ops._c10d_functional
GROUP = "0"


def order(function, *args):
    """The names of a function's nodes, as they are put in order."""
    module = make_fx(function, tracing_mode="fake")(*args)
    assert overlapped(module.graph)
    module.graph.lint()
    return [n.name for n in module.graph.nodes if n.op == "call_function"]


def test_what_begins_does_so_when_its_input_is_there():
    def function(x):
        a = x.sin()
        b = a.cos()
        last = b.exp()
        first, second = f.all_reduce(a, "sum", GROUP), f.all_reduce(last, "sum", GROUP)
        return f.wait_tensor(first), f.wait_tensor(second), b

    assert order(function, torch.ones(2)) == [
        "sin", "all_reduce", "cos", "exp", "all_reduce_1", "wait_tensor", "wait_tensor_1",
    ]  # fmt: skip


def test_what_a_rank_computes_besides_does_not_change_the_order_of_its_calls():
    def function(x, more):
        a = x.sin().cos().exp() if more else x.sin()
        begun = f.all_reduce(a, "sum", GROUP), f.all_reduce(x.cos(), "sum", GROUP)
        return [f.wait_tensor(t) for t in begun]

    for more in (False, True):
        names = order(lambda x, more=more: function(x, more), torch.ones(2))
        assert [n for n in names if n.startswith("all_reduce")] == ["all_reduce", "all_reduce_1"]


def test_what_needs_a_result_begins_after_what_does_not():
    def function(x):
        shared = f.wait_tensor(f.all_reduce(x, "sum", GROUP))  # as statistics of a normalisation
        later = f.all_reduce(shared.sin(), "sum", GROUP)
        bucket = f.all_reduce(x.cos(), "sum", GROUP)
        return f.wait_tensor(later), f.wait_tensor(bucket)

    names = order(function, torch.ones(2))
    assert [n for n in names if n.startswith("all_reduce")] == ["all_reduce", "all_reduce_2", "all_reduce_1"]


def test_what_needs_one_result_does_not_wait_for_another():
    def function(x):
        begun = [f.all_reduce(x * k, "sum", GROUP) for k in (2, 3)]
        first, second = [f.wait_tensor(t) for t in begun]
        return first.sin(), second.cos(), x.exp()

    names = order(function, torch.ones(2))
    assert names.index("exp") < names.index("wait_tensor") < names.index("sin") < names.index("wait_tensor_1")


def test_writes_stay_where_they_are():
    def function(x, p):
        begun = f.all_reduce(x, "sum", GROUP)
        done = f.wait_tensor(begun)
        before = p.sin()
        p.copy_(done)
        return before, p.cos()

    names = order(function, torch.ones(2), torch.ones(2))
    assert names.index("sin") < names.index("copy_") < names.index("cos")


def test_random_numbers_are_drawn_in_their_order():
    def function(x):
        first = torch.bernoulli(x)
        second = torch.bernoulli(x)
        begun = f.all_reduce(second, "sum", GROUP)
        return first, f.wait_tensor(begun)

    assert order(function, torch.ones(2))[:3] == ["bernoulli", "bernoulli_1", "all_reduce"]


def test_gathers_begin_one_ahead():
    def function(x, *shards):
        for shard in shards:
            whole = f.wait_tensor(f.all_gather_into_tensor(shard, 2, GROUP))
            x = (x * whole).sin()
        return x

    names = [n for n in order(function, torch.ones(4), *[torch.ones(2) for _ in range(3)]) if n != "mul"]
    g, w = "all_gather_into_tensor", "wait_tensor"
    assert names[:3] == [g, w, f"{g}_1"] and names.index(f"{g}_1") < names.index("sin")
    assert names.index(f"{w}_1") < names.index(f"{g}_2") < names.index("sin_1")


def test_graphs_without_any_are_left_alone():
    module = make_fx(lambda x: x.sin().cos(), tracing_mode="fake")(torch.ones(2))
    assert not overlapped(module.graph)
