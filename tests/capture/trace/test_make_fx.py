"""make_fx: what is recorded, under which names, and that the graph computes what the function does."""

import pytest

import pullback as torch
from pullback.capture.front.config import ahead as config
from pullback.capture.trace.make_fx import get_isolated_graphmodule, make_fx
from pullback.capture.trace.proxy_mode import ProxyTorchDispatchMode, PythonKeyTracer


def calls(module) -> list[str]:
    return [str(n.target) for n in module.graph.nodes if n.op == "call_function"]


def test_operators_are_named_as_the_function_calls_them() -> None:
    module = make_fx(lambda x, y: (x * y).sin().sum(0))(torch.randn(3, 4), torch.randn(3, 4))
    assert [n.name for n in module.graph.nodes] == ["x_1", "y_1", "mul", "sin", "sum_1", "output"]
    assert calls(module) == ["aten.mul.Tensor", "aten.sin.default", "aten.sum.dim_IntList"]


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_backward_is_part_of_the_graph(mode: str) -> None:
    def f(x):
        return torch.autograd.grad((x @ x.t()).softmax(-1).pow(2).sum(), x)[0]

    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    module = make_fx(f, tracing_mode=mode)(x)
    assert "aten._softmax_backward_data.default" in calls(module)
    torch.testing.assert_close(module(x), f(x))


def test_fake_tracing_touches_no_data() -> None:
    module = make_fx(lambda x: x.exp() + 1, tracing_mode="fake")(torch.empty(10**6, 10**3, device="meta"))
    assert calls(module) == ["aten.exp.default", "aten.add.Tensor"]


def test_symbolic_graphs_serve_other_sizes() -> None:
    def f(x):
        return x.reshape(x.shape[0] * x.shape[1]) * x.shape[0]

    module = make_fx(f, tracing_mode="symbolic")(torch.randn(3, 4))
    x = torch.randn(5, 7)
    torch.testing.assert_close(module(x), f(x))


def test_nested_arguments_and_results() -> None:
    def f(pair, named):
        return {"sum": pair[0] + named["b"], "more": [pair[1] * 2, None]}

    args = ((torch.ones(2), torch.ones(2)), {"b": torch.ones(2)})
    out = make_fx(f)(*args)(*args)
    assert out["more"][1] is None
    torch.testing.assert_close(out["sum"], torch.full((2,), 2.0))


def test_named_results_are_returned() -> None:
    """What `topk` gives is a tuple, and no named tuple: it is made of one sequence."""
    x = torch.tensor([[1.0, 3.0, 2.0]])
    module = make_fx(lambda x: (x, x.topk(1), {"max": x.max(1)}))(x)
    _, top, rest = module(x)
    assert top[0].tolist() == [[3.0]] and top[1].tolist() == [[1]] and rest["max"][1].tolist() == [1]
    assert not hasattr(x.topk(1), "_fields")


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_nodes_say_what_their_tensors_are(mode: str) -> None:
    """Plain facts for passes over graphs, of every node that gives one tensor."""
    module = make_fx(lambda x: x.t().add(1).topk(1)[1], tracing_mode=mode)(torch.randn(3, 4, requires_grad=True))
    known = {n.name: n.meta.get("tensor_meta") for n in module.graph.nodes}
    assert [name for name, meta in known.items() if meta is None] == ["topk", "output"]
    assert known["x_1"].requires_grad and not known["getitem_1"].requires_grad
    assert known["getitem_1"].dtype is torch.int64
    if mode != "symbolic":
        assert known["x_1"].memory_format is torch.contiguous_format and known["x_1"].stride == (4, 1)
        assert (known["t"].shape, known["t"].stride, known["t"].memory_format) == ((4, 3), (1, 4), None)


def test_plain_facts_of_unknown_sizes_decide_nothing() -> None:
    module = make_fx(lambda x: x * 2, tracing_mode="symbolic")(torch.randn(3, 4))
    assert str(module.graph.find_nodes(op="placeholder")[0].meta["tensor_meta"].shape[0]).startswith("s")
    assert not module.shape_env.guards


def test_tensors_from_outside_are_constants() -> None:
    w = torch.randn(3)
    module = make_fx(lambda x: x * w + torch.tensor([1.0, 2.0, 3.0]))(torch.randn(3))
    assert [n.target for n in module.graph.nodes if n.op == "get_attr"] == ["_tensor_constant0", "_tensor_constant1"]
    x = torch.randn(3)
    torch.testing.assert_close(module(x), x * w + torch.tensor([1.0, 2.0, 3.0]))


def test_writes_to_a_literal_do_not_reach_later_runs() -> None:
    def f(x):
        t = torch.tensor([1.0, 2.0])
        t.add_(x)
        return t

    module = make_fx(f)(torch.ones(2))
    for _ in range(2):
        torch.testing.assert_close(module(torch.ones(2)), torch.tensor([2.0, 3.0]))


def test_decompositions_replace_operators() -> None:
    table = {torch.ops.aten.sigmoid.default: lambda x: 1 / (1 + (-x).exp())}
    module = make_fx(lambda x: x.sigmoid(), table)(torch.randn(3))
    assert "aten.sigmoid.default" not in calls(module)
    assert "aten.exp.default" in calls(module)
    x = torch.randn(3)
    torch.testing.assert_close(module(x), x.sigmoid())


def test_a_packet_in_the_table_stands_for_its_overloads() -> None:
    module = make_fx(lambda x: x * 2, {torch.ops.aten.mul: lambda x, y: x + x})(torch.randn(3))
    assert calls(module) == ["aten.add.Tensor"]


def test_above_autograd_composites_and_grad_mode_stay() -> None:
    layer = torch.nn.Linear(3, 2)

    def f(x):
        with torch.no_grad():
            y = x * 2
        return layer(x) + y.sum()

    module = make_fx(f, pre_dispatch=True)(torch.randn(2, 3))
    names = [n.name for n in module.graph.nodes]
    assert "linear" in names and names.count("_set_grad_enabled") == 1
    x = torch.randn(2, 3, requires_grad=True)
    torch.testing.assert_close(module(x), f(x))
    torch.testing.assert_close(torch.autograd.grad(module(x).sum(), x), torch.autograd.grad(f(x).sum(), x))


def test_nodes_know_the_users_line() -> None:
    def f(x):
        y = x.sin()
        return y.cos()

    sin, cos = [n for n in make_fx(f)(torch.randn(2)).graph.nodes if n.op == "call_function"]
    assert "y = x.sin()" in sin.stack_trace
    assert "return y.cos()" in cos.stack_trace


def test_unknown_tracing_mode_raises() -> None:
    with pytest.raises(ValueError, match="tracing_mode must be one of 'real', 'fake', 'symbolic', got 'quick'"):
        make_fx(lambda x: x, tracing_mode="quick")


def test_item_of_data_is_refused_without_data() -> None:
    from pullback.capture.fake.mode import DataDependentOutputException

    with pytest.raises(DataDependentOutputException):
        make_fx(lambda x: x * x.sum().item(), tracing_mode="fake")(torch.randn(3))
    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        make_fx(lambda x: x * x.sum().item(), tracing_mode="real")(torch.ones(3))
    module = make_fx(lambda x: x * x.sum().item(), _error_on_data_dependent_ops=False)(torch.ones(3))
    torch.testing.assert_close(module(torch.zeros(3) + 2), torch.full((3,), 6.0))  # as it was asked for


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x + 1 if torch.allclose(x, x) else x,
        lambda x: x + 1 if torch.equal(x, x) else x,
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x * int(x[0]),
        lambda x: x * torch.rand(()).item(),
        lambda x: x * torch.tensor(1.0).add_(x[0]).item(),
        lambda x: x * torch.tensor(1.0).uniform_().item(),
    ],
)
def test_data_is_not_baked_into_graphs(program) -> None:
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor"):
        make_fx(program)(torch.ones(3))


def test_constants_may_be_read() -> None:
    module = make_fx(lambda x: x * (torch.tensor(3.0) * 2).item())(torch.ones(3))
    assert module(torch.full((3,), 2.0)).tolist() == [12, 12, 12]


def test_sizes_may_be_returned_and_arguments_asked_about() -> None:
    from pullback.capture.trace.placeholders import bind_symbols, eval_guards, fx_placeholder_targets

    module = make_fx(lambda x: (x.shape, x[:, :3]), tracing_mode="symbolic")(torch.ones(5, 4))
    assert tuple(module(torch.ones(7, 6))[0]) == (7, 6)
    assert fx_placeholder_targets(module) == ["x_1"]
    assert eval_guards(module, torch.ones(7, 6)) and not eval_guards(module, torch.ones(7, 2))
    assert sorted(bind_symbols(module, torch.ones(7, 6)).values()) == [6, 7]


def test_a_tensor_that_is_traced_keeps_its_methods():
    """What a trace notes of a tensor hides none of them: not `trace` either."""
    graph = make_fx(lambda x: (x * 2).trace())(torch.eye(3))
    assert "aten.trace" in graph.code and graph(torch.eye(3)) == 6


def test_a_tensor_has_one_count_until_it_is_written():
    def f(x):
        assert x.nonzero().shape[0] == x.nonzero().shape[0]
        x[x > 0] = x[x > 0] * 2
        return x

    x = torch.tensor([1.0, -1.0, 3.0])
    graph = make_fx(f, tracing_mode="symbolic")(x.clone())
    assert graph(torch.tensor([-1.0, 5.0, 6.0])).tolist() == [-1, 10, 12]

    def written(x):
        before = x.nonzero()
        x.add_(1)
        if before.shape[0] == x.nonzero().shape[0]:
            return x
        return -x

    with pytest.raises(RuntimeError, match="data-dependent"):
        make_fx(written, tracing_mode="symbolic")(x.clone())


def test_vectors_of_sizes_that_data_decides_are_joined():
    def f(a, b):
        return torch.cat([torch.ones(a.item()), torch.zeros(b.item())])

    graph = make_fx(f, tracing_mode="symbolic")(torch.tensor(3), torch.tensor(2))
    assert graph(torch.tensor(1), torch.tensor(2)).tolist() == [1, 0, 0]


def test_parts_of_constants_are_constants():
    def f(x):
        (first,) = torch.tensor([2]).unbind(0)
        return x * first.item()

    assert make_fx(f)(torch.ones(2))(torch.ones(1)).tolist() == [2]


def test_graphs_that_are_made_while_another_is_traced():
    inner: list = []

    def f(x):
        inner.append(make_fx(lambda x: torch.sigmoid(x) + torch.ones(2))(x))
        inner.append(get_isolated_graphmodule(lambda a, b: a.sum() * b, (x,), {"b": x}))
        return inner[0](x).digamma()

    x = torch.rand(2) + 1
    graph = make_fx(f)(x)
    names = [[n.target.name for n in g.graph.nodes if n.op == "call_function"] for g in (*inner, graph)]
    assert names == [["sigmoid", "ones", "add"], ["sum", "mul"], ["sigmoid", "ones", "add", "digamma"]]
    assert torch.equal(inner[1]([x, x]), x.sum() * x)


def test_symbols_are_named_after_the_place_of_their_input():
    graph = make_fx(lambda x, n, y: x + n + y, tracing_mode="symbolic")(torch.ones(3, 4), 5, torch.ones(6, 1, 1))
    shapes = [n.meta["val"].shape for n in graph.graph.nodes if n.op == "placeholder" and n.name != "n_1"]
    assert [str(s) for s in shapes[0]] == ["s75", "s96"]


def test_what_changes_shapes_and_memory_is_in_the_graph():
    grow = make_fx(lambda x, y: x.resize_(y.size(0)), tracing_mode="symbolic")(torch.empty(0), torch.empty(2))
    assert "torch.ops.aten.resize_.default(x_1, [sym_size_int])" in grow.code
    x = torch.empty(0)
    assert grow(x, torch.empty(5)) is x and x.shape == (5,)
    images = make_fx(lambda x: x.resize_(1, 2, 3, 3, memory_format=torch.channels_last).mul(2))(torch.zeros(18))
    assert images(torch.ones(18)).is_contiguous(memory_format=torch.channels_last)
    take = make_fx(lambda x, y: x.set_(y) + 1)(torch.empty(0), torch.ones(2))
    assert "torch.ops.aten.set_.source_Tensor(x_1, y_1)" in take.code
    x, y = torch.empty(0), torch.ones(3)
    assert take(x, y).tolist() == [2, 2, 2] and x.data_ptr() == y.data_ptr()
    with pytest.raises(NotImplementedError, match="Can't call metadata mutating ops"):
        make_fx(lambda x, y: x.resize_as_(y, memory_format=torch.preserve_format))(torch.empty(0), torch.ones(2, 3).t())
    constant = torch.ones(2)
    with pytest.raises(NotImplementedError, match="Can't call metadata mutating ops"):
        make_fx(lambda x: constant.resize_(3) + x)(torch.ones(3))


def test_the_example_decides_what_data_decides_where_that_is_asked_for() -> None:
    def f():
        x, y = torch.randn([]), torch.randn([])
        assert torch.allclose(x * y, y * x)
        return float(x) * y

    for pre_dispatch in (False, True):
        make_fx(f, pre_dispatch=pre_dispatch, _error_on_data_dependent_ops=False)()

    def sizes(a):
        b = a.clone()
        x = b.nonzero()
        b.normal_()
        return x if x.shape[0] == b.nonzero().shape[0] else b

    with config.patch(fake_tensor_propagate_real_tensors=True):
        assert make_fx(sizes, tracing_mode="symbolic")(torch.randn(4))(torch.ones(3)).shape == (3, 1)
    with pytest.raises(RuntimeError, match="data-dependent"):
        make_fx(sizes, tracing_mode="symbolic")(torch.randn(4))


def test_fake_tracing_meets_real_tensors_only_where_that_is_allowed() -> None:
    weight = torch.nn.Parameter(torch.ones(2, 3))
    with pytest.raises(AssertionError, match="Please convert all Tensors"):
        make_fx(lambda: weight.t(), tracing_mode="fake")()
    assert calls(make_fx(lambda: weight.t(), tracing_mode="fake", _allow_non_fake_inputs=True)()) == ["aten.t.default"]


def test_a_mode_records_into_the_graph_of_its_tracer() -> None:
    tracer = PythonKeyTracer()
    mode = ProxyTorchDispatchMode(tracer, "real", decomposition_table={torch.ops.aten.sin.default: lambda x: x.cos()})
    x = torch.ones(2)
    with mode:
        y = x.sin()
        with mode.enable_decompositions({}):
            y = y.sin()
    tracer.graph.output(mode.node_of(y))
    module = torch.fx.GraphModule(tracer.root, tracer.graph)
    assert calls(module) == ["aten.cos.default", "aten.sin.default"]
    torch.testing.assert_close(module(), x.cos().sin())
