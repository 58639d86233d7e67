"""compile: same results, gradients, mutations; when graphs are made again; what is refused."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import pullback as torch
from pullback import nn
from pullback.capture.front.compile import BackendCompilerFailed, RecompileError, Unsupported, counters
from pullback.capture.front.config import config

BACKENDS = ["eager", "aot_eager", "aot_eager_decomp_partition"]


class Counter:
    def __init__(self) -> None:
        self.graphs = []

    def __call__(self, module, inputs):
        self.graphs.append(module)
        return module


@pytest.mark.parametrize("backend", BACKENDS)
def test_training_is_bit_equal_to_eager(backend: str) -> None:
    def train(wrap):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3))
        run, opt = wrap(model), torch.optim.Adam(model.parameters(), 1e-2)
        for _ in range(5):
            x = torch.randn(8, 6)
            loss = nn.functional.cross_entropy(run(x), (x[:, :3]).argmax(1))
            opt.zero_grad()
            loss.backward()
            opt.step()
        return loss.item(), [b.clone() for b in model.buffers()]

    ours, eager = train(lambda m: torch.compile(m, backend=backend, fullgraph=True)), train(lambda m: m)
    assert ours[0] == pytest.approx(eager[0], rel=1e-6)
    for a, b in zip(ours[1], eager[1], strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("backend", BACKENDS)
def test_custom_functions_keep_their_backward(backend: str) -> None:
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0] * ctx.scale, None

    x = torch.randn(3, requires_grad=True)
    torch.compile(lambda x: Odd.apply(x, 7.0).sum(), backend=backend, fullgraph=True)(x).backward()
    torch.testing.assert_close(x.grad, 7 * x.detach())


@pytest.mark.parametrize("backend", BACKENDS)
def test_hooks_inside_run(backend: str) -> None:
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return y.sum()

    x = torch.ones(2, requires_grad=True)
    torch.compile(f, backend=backend, fullgraph=True)(x).backward()
    torch.testing.assert_close(x.grad, torch.full((2,), 20.0))


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_inside(backend: str) -> None:
    def f(x):
        (g,) = torch.autograd.grad(x.sin().sum(), x, create_graph=True)
        return (g * x).sum()

    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    out = torch.compile(f, backend=backend, fullgraph=True)(x)
    torch.testing.assert_close(out, f(x))
    torch.testing.assert_close(torch.autograd.grad(out, x), torch.autograd.grad(f(x), x))


@pytest.mark.parametrize("backend", BACKENDS)
def test_recording_may_be_left_switched(backend: str) -> None:
    def f(x):
        y = x * 2
        torch.set_grad_enabled(False)
        return y, x * 3

    x = torch.ones(2, requires_grad=True)
    try:
        a, b = torch.compile(f, backend=backend, fullgraph=True)(x)
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    assert a.requires_grad and not b.requires_grad


@pytest.mark.parametrize("backend", BACKENDS)
def test_memory_changes_hands(backend: str) -> None:
    def f(x):
        y = x.clone()
        y.resize_(2, 2)
        z = torch.zeros(3)
        z.set_(x.detach() * 2)
        w = x * 1
        w.data = z
        return y, z, w

    x = torch.arange(6.0)
    for a, b in zip(torch.compile(f, backend=backend, fullgraph=True)(x), f(x), strict=True):
        torch.testing.assert_close(a, b)


def test_graphs_are_reused_and_made_again_for_other_kinds_of_arguments() -> None:
    count = Counter()
    f = torch.compile(lambda x, n=1, *, flag=True: x * n if flag else -x, backend=count)
    x = torch.ones(2)
    for _ in range(3):
        f(x)
    assert len(count.graphs) == 1
    for again in (
        lambda: f(torch.ones(3)),
        lambda: f(torch.ones(2, dtype=torch.float64)),
        lambda: f(torch.ones(2, requires_grad=True)),
        lambda: f(x, 2),
        lambda: f(x, flag=False),
    ):
        before = len(count.graphs)
        again()
        again()
        assert len(count.graphs) == before + 1


def test_closed_over_values_and_modules_are_guarded() -> None:
    scale, layer = 2.0, nn.Dropout(0.5)

    def f(x):
        return layer(x) * scale

    count = Counter()
    run = torch.compile(f, backend=count)
    x = torch.ones(100)
    assert 0 < int((run(x) == 0).sum()) < 100
    layer.eval()
    torch.testing.assert_close(run(x), x * 2)
    scale = 3.0
    torch.testing.assert_close(run(x), x * 3)
    assert len(count.graphs) == 3


def test_a_replaced_parameter_is_seen() -> None:
    model = nn.Linear(2, 2, bias=False)
    run = torch.compile(model, backend="aot_eager")
    x = torch.ones(1, 2)
    run(x)
    model.weight = nn.Parameter(torch.eye(2))
    torch.testing.assert_close(run(x), x)


def test_duplicates_and_aliases_are_guarded() -> None:
    def f(a, b):
        a.add_(1)
        return a + b

    reasons = []
    run = torch.compile(f, backend="aot_eager", guard_fail_fn=lambda failure: reasons.append(failure[0]))
    x = torch.zeros(2)
    torch.testing.assert_close(run(x, x), torch.full((2,), 2.0))
    torch.testing.assert_close(run(torch.zeros(2), torch.zeros(2)), torch.ones(2))
    assert "L['a'] is L['b']" in reasons[0]
    base = torch.zeros(4)
    torch.testing.assert_close(run(base[:2], base[1:3]), torch.tensor([2.0, 1.0]) - torch.tensor([0.0, 0.0]))


def test_a_branch_on_data_ends_a_graph() -> None:
    def f(x):
        return x * 2 if x.sum() > 0 else x * 3

    count = Counter()
    run = torch.compile(f, backend=count)
    torch.testing.assert_close(run(torch.ones(2)), torch.full((2,), 2.0))
    torch.testing.assert_close(run(-torch.ones(2)), torch.full((2,), -3.0))
    torch.testing.assert_close(run(torch.ones(2)), torch.full((2,), 2.0))
    assert len(count.graphs) == 3  # the sum, and each branch
    with pytest.raises(Unsupported, match="depends on the data"):
        torch.compile(f, fullgraph=True)(torch.ones(2))


def test_modules_remember() -> None:
    class Remembers(nn.Module):
        last = None

        def forward(self, x):
            self.last = x * 2
            return self.last

    module, count = Remembers(), Counter()
    run = torch.compile(module, backend=count, fullgraph=True)
    for scale in (1.0, 2.0):
        out = run(torch.full((2,), scale))
        torch.testing.assert_close(module.last, torch.full((2,), 2.0 * scale))
        assert out is module.last
    assert len(count.graphs) == 1


def test_the_limit_of_graphs_is_no_silent_fallback() -> None:
    run = torch.compile(lambda x: x + 1, dynamic=False)
    with config.patch(recompile_limit=2):
        run(torch.ones(1))
        run(torch.ones(2))
        with pytest.warns(RuntimeWarning, match="has 2 graphs, the limit"):
            torch.testing.assert_close(run(torch.ones(3)), torch.full((3,), 2.0))
    with (
        config.patch(recompile_limit=2, fail_on_recompile_limit_hit=True),
        pytest.raises(RecompileError, match="size mismatch at index 0"),
    ):
        run(torch.ones(4))


def test_arguments_of_compile_are_checked() -> None:
    with pytest.raises(ValueError, match="Invalid backend: 'quick'"):
        torch.compile(lambda x: x, backend="quick")
    with pytest.raises(RuntimeError, match="Either mode or options"):
        torch.compile(lambda x: x, mode="default", options={"a": 1})
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast, should be one of: default"):
        torch.compile(lambda x: x, mode="fast")
    with pytest.raises(RuntimeError, match="expected a function or a module, got int"):
        torch.compile(3)
    with pytest.raises(TypeError, match="the backend must return a callable"):
        torch.compile(lambda x: x + 1, backend=lambda module, inputs: 3)(torch.ones(1))


def test_compile_decorates_and_disables() -> None:
    @torch.compile(backend="eager")
    def f(x):
        return x + 1

    assert f.__name__ == "f"
    torch.testing.assert_close(f(torch.ones(1)), torch.full((1,), 2.0))
    plain = torch.compile(f, disable=True)
    assert plain is f


def test_modules_keep_their_face() -> None:
    model = nn.Sequential(nn.Linear(2, 3))
    run = torch.compile(model)
    assert list(run.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert run[0] is model[0]
    run.eval()
    assert not model.training and not model[0].training


def test_nothing_of_a_trace_is_left() -> None:
    before = torch.random.get_rng_state()
    x = torch.ones(3)
    torch.compile(lambda x: x * 2, backend="eager")(x)
    assert torch.equal(before, torch.random.get_rng_state())
    assert "trace" not in x.__dict__ and "written" not in (x.untyped_storage()._storage.__dict__)
    assert counters["stats"]["unique_graphs"] > 0


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("dynamic", "graphs"), [(True, 2), (None, 3), (False, 6)])
def test_sizes_may_be_symbols(backend: str, dynamic: bool | None, graphs: int) -> None:
    from pullback.capture.front.backends import lookup_backend

    layer, result = nn.Linear(4, 6), []

    def f(x, y):
        z = layer(x).softmax(-1)
        if x.shape[0] > 10:
            z = z * 2
        return z.reshape(-1)[: x.shape[0] * 2] * y.shape[0], x.shape[0], x[1:]

    def count(module, inputs):
        result.append(module)
        return lookup_backend(backend)(module, inputs)

    torch.compiler.reset()  # what changed in an earlier compilation of the same code is known otherwise
    run = torch.compile(f, backend=count, dynamic=dynamic, fullgraph=True)
    for rows in (3, 4, 5, 12, 13, 7):
        x, y = torch.randn(rows, 4, requires_grad=True), torch.randn(rows)
        ours, eager = run(x, y), f(x, y)
        assert ours[1] == eager[1] == rows
        torch.testing.assert_close(ours[0], eager[0])
        torch.testing.assert_close(ours[2], eager[2])
        for a, b in zip(
            torch.autograd.grad(ours[0].pow(2).sum(), x), torch.autograd.grad(eager[0].pow(2).sum(), x), strict=True
        ):
            torch.testing.assert_close(a, b)
    assert len(result) == graphs


def test_marked_dimensions() -> None:
    from pullback.capture.front.dynamic import mark_dynamic, mark_static

    count = Counter()
    run = torch.compile(lambda x: x * 2, backend=count)
    x = torch.ones(3, 4)
    mark_dynamic(x, 0)
    run(x)
    run(torch.ones(5, 4))
    assert len(count.graphs) == 1
    run(torch.ones(5, 6))
    assert len(count.graphs) == 2
    fixed = torch.ones(9, 9)
    mark_static(fixed)
    run(fixed)
    with pytest.raises(IndexError, match="dimension 7 of a tensor with 2 dimensions"):
        mark_dynamic(x, 7)


def test_a_size_marked_inside_is_a_constant_of_the_graph() -> None:
    from pullback.capture.front.dynamic import mark_static

    count = Counter()

    def f(x):
        mark_static(x, 0)
        return x * x.shape[0]

    run = torch.compile(f, dynamic=True, fullgraph=True, backend=count)
    assert run(torch.ones(3, 2)).sum() == 18 and run(torch.ones(3, 4)).sum() == 36 and len(count.graphs) == 1
    assert run(torch.ones(5, 2)).sum() == 50 and len(count.graphs) == 2


def test_numbers_that_depend_on_data_may_be_symbols() -> None:
    def f(x):
        return x * x.sum().item()

    with config.patch(capture_scalar_outputs=True):
        run = torch.compile(f, fullgraph=True)
        torch.testing.assert_close(run(torch.ones(3)), torch.full((3,), 3.0))
        torch.testing.assert_close(run(torch.full((3,), 2.0)), torch.full((3,), 12.0))


def test_objects_with_tensors_are_looked_into() -> None:
    class Batch:
        def __init__(self, x) -> None:
            self.x, self.scale = x, 1.0

    run = torch.compile(lambda batch: batch.x * batch.scale, backend="aot_eager", fullgraph=True)
    batch = Batch(torch.ones(2))
    torch.testing.assert_close(run(batch), torch.ones(2))
    batch.x = torch.full((2,), 5.0)
    torch.testing.assert_close(run(batch), torch.full((2,), 5.0))
    batch.scale = 2.0
    torch.testing.assert_close(run(batch), torch.full((2,), 10.0))
    torch.testing.assert_close(run(Batch(torch.full((2,), 7.0))), torch.full((2,), 7.0))


def test_outputs_are_objects_of_any_class() -> None:
    class Output:
        def __init__(self, y) -> None:
            self.y = y

    def f(x):
        return Output(x * 2)

    run = torch.compile(f, fullgraph=True)
    first, second = run(torch.ones(2)), run(torch.ones(2))
    torch.testing.assert_close(first.y, torch.full((2,), 2.0))
    assert type(first) is Output and first is not second
    result = torch.compile(lambda x: (x * i for i in range(2)), fullgraph=True)(torch.ones(2))
    assert [t.sum().item() for t in result] == [0.0, 2.0]


def test_tracing_again_prints_nothing(capfd) -> None:
    base = torch.zeros(4)

    def f(a, b):
        a.add_(1)
        return a + b

    torch.testing.assert_close(torch.compile(f)(base[:2], base[1:3]), torch.tensor([2.0, 1.0]))
    assert capfd.readouterr() == ("", "")


def test_transforms_of_compiled_functions() -> None:
    def f(x):
        return (x.sin() * x.exp()).sum()

    run, x = torch.compile(f), torch.randn(4, dtype=torch.float64)
    for transform in (
        torch.func.grad,
        torch.func.jacrev,
        torch.func.hessian,
        lambda g: torch.func.jacrev(torch.func.jacrev(g)),
    ):
        torch.testing.assert_close(transform(run)(x), transform(f)(x))
    torch.testing.assert_close(torch.func.vmap(run)(torch.ones(3, 4)), torch.func.vmap(f)(torch.ones(3, 4)))
    torch.testing.assert_close(torch.func.jvp(run, (x,), (x,)), torch.func.jvp(f, (x,), (x,)))
    x.requires_grad_()
    assert torch.autograd.gradcheck(run, (x,), check_batched_grad=True)
    assert torch.autograd.gradgradcheck(run, (x,), check_batched_grad=True)


def test_batched_gradients_without_double_backward() -> None:
    from pullback.joint.config import config as joint

    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    with joint.patch(double_backward=False):
        y = torch.compile(lambda x: x.sin())(x)
        (rows,) = torch.autograd.grad(y, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)
    torch.testing.assert_close(rows, torch.diag(x.detach().cos()))


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (lambda x: (torch.manual_seed(0), torch.rand(2) + x)[1], "it seeds random numbers"),
        (
            lambda x: (torch.set_rng_state(torch.get_rng_state()), torch.rand(2) + x)[1],
            "it reads the state of random numbers",
        ),
        (lambda x: torch.from_numpy(np.unique(x.numpy())), "it calls numpy.*unique|it calls a _Array"),
        (lambda x: x * x.data_ptr() * 0, "Cannot access data pointer"),
        (lambda x: x * sum(x.tolist()), "depends on the data"),
        (lambda x: torch.inference_mode()(lambda: x * 2)(), "inference mode"),
    ],
)
def test_what_graphs_cannot_do_ends_them(f, why: str) -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match=why):
        torch.compile(f, fullgraph=True)(x)
    torch.manual_seed(1)
    expected = f(x)
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(torch.compile(f)(x), expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_grad_mode_comes_back_after_errors(backend: str) -> None:
    def f(x):
        y = x.as_strided((1,), (1,), 3)
        with torch.no_grad():
            x += y  # of one memory, in two layouts
        return x

    for _ in range(2):
        with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
            torch.compile(f, backend=backend)(torch.ones(2, 3))
        assert torch.is_grad_enabled()


def test_graphs_that_are_forgotten_keep_nothing_alive() -> None:
    import gc
    import weakref

    class Hook:
        def __call__(self, g):
            return g * 2

    def f(x, hook):
        x.register_hook(hook)
        return x * 2

    hook = Hook()
    gone = weakref.ref(hook)
    run = torch.compile(f, backend="eager")
    run(torch.ones(2, requires_grad=True), hook)
    run.compiled.forget()
    del hook
    gc.collect()
    assert gone() is None


def test_what_a_backend_raises_names_it():
    def duck(gm, examples):
        raise RuntimeError("duck!")

    with pytest.raises(BackendCompilerFailed, match="backend='duck' raised:\nRuntimeError: duck!") as caught:
        torch.compile(lambda x: x + 1, backend=duck)(torch.ones(2))
    assert isinstance(caught.value.inner_exception, RuntimeError)


def test_a_compiled_module_is_in_training_where_the_module_is():
    module = nn.Dropout(0.5).eval()
    run = torch.compile(module, backend="eager")
    assert not run.training
    run.train()
    assert module.training and run.training
    module.eval()
    assert not run.training and not copy.deepcopy(run).training


def test_ints_that_change_are_symbols_from_the_second_on():
    graphs = []
    run = torch.compile(lambda x, n: x + n, backend=lambda gm, _: graphs.append(gm) or gm)
    assert [run(torch.zeros(1), n).item() for n in range(5)] == [0, 1, 2, 3, 4]
    assert len(graphs) == 2


def test_a_compiled_module_compiles_other_functions_as_it_was_compiled():
    calls = []

    def backend(graph, inputs):
        calls.append(graph)
        return graph.forward

    module = nn.Linear(2, 2)
    compiled = torch.compile(module, backend=backend)
    step = compiled.dynamo_ctx(lambda x: module(x).sum())
    x = torch.ones(1, 2)
    torch.testing.assert_close(step(x), module(x).sum())
    assert len(calls) == 1


def test_a_compiled_module_is_copied_pickled_and_looked_into():
    run = torch.compile(nn.Linear(2, 2), backend="aot_eager")
    x = torch.ones(1, 2)
    want = run(x)
    for other in (copy.deepcopy(run), pickle.loads(pickle.dumps(run))):
        assert type(other) is type(run) and torch.equal(other(x), want)
    run.note = 1
    assert "weight" in dir(run) and run._orig_mod.note == 1
    del run.note
    assert not hasattr(run._orig_mod, "note")


def test_places_that_a_setting_names_are_symbols():
    graphs = []
    run = torch.compile(lambda x, n: x * n, backend=lambda gm, _: graphs.append(gm) or gm, dynamic=False)
    with config.patch(dynamic_sources="L['x'], L\\['n.*'\\]"):
        for n in (3, 4, 5):
            assert run(torch.ones(n), n).sum().item() == n * n
    assert len(graphs) == 1


def test_sizes_that_change_may_be_symbols_of_which_nothing_is_known():
    graphs = []
    run = torch.compile(lambda x: x * x, backend=lambda gm, _: graphs.append(gm) or gm)
    with config.patch(automatic_dynamic_shapes_mark_as="unbacked"):
        assert [run(torch.ones(n)).numel() for n in (3, 2, 1, 0)] == [3, 2, 1, 0]
    assert len(graphs) == 2


def test_a_backend_sees_what_nothing_is_needed_of():
    graphs = []
    run = torch.compile(lambda x: (x + 1).dim(), backend=lambda gm, _: graphs.append(gm) or gm, fullgraph=True)
    assert run(torch.ones(2)) == 1 and len(graphs) == 1


MAKERS = {
    "compile": torch.compile,
    "compile with arguments": torch.compile(backend="eager"),
    "disable": torch.compiler.disable,
    "no_grad": torch.no_grad(),
    "autocast": torch.autocast("cpu"),
    "vmap": torch.vmap,
    "functionalize": torch.func.functionalize,
    "allow_in_graph": torch.compiler.allow_in_graph,
    "jacrev": lambda g: torch.func.jacrev(g),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_functions_made_inside_read_what_their_own_call_closed_over(maker):
    def make(factors):
        def scaled(x):
            return x * factors[0]

        return MAKERS[maker](scaled)

    def play(make):
        x, kept = torch.ones(2), [4.0]
        out = [make([2.0])(x), make([3.0])(x), (later := make(kept))(x)]
        kept[0] = 5.0
        return [t.tolist() for t in (*out, later(x), make(kept)(x))]

    assert play(torch.compile(make, backend="eager")) == play(make)


def test_a_module_compiled_inside_is_a_module():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x)

    def train():
        net = torch.compile(Net(), backend="eager")
        net(torch.ones(3, 2)).sum().backward()
        return len(list(net.parameters())), net.layer.bias.grad.tolist()

    assert torch.compile(train, backend="eager")() == train() == (2, [3.0, 3.0])
    Net.forward = torch.compile(Net.forward, backend="eager")
    assert train() == (2, [3.0, 3.0])


def test_what_is_compiled_twice_is_compiled_by_the_outer_backend():
    seen = []
    inner = torch.compile(lambda x: x.sin(), backend=lambda graph, _: seen.append("inner") or graph.forward)
    outer = torch.compile(inner, backend=lambda graph, _: seen.append("outer") or graph.forward)
    assert outer(torch.zeros(2)).tolist() == [0, 0] and seen == ["outer"]


def test_compiled_modules_inside_a_compiled_one_are_in_its_graph():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.calls = nn.Linear(2, 2), 0

        def forward(self, x):
            self.calls += 1
            return self.layer(x)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(torch.compile(Block(), backend="eager") for _ in range(2))

        def forward(self, x):
            for block in self.blocks:
                x = block(x)
            return x * self.blocks[0].layer.weight.sum() + len(list(self.blocks[1].parameters()))

    net, x, graphs = Net(), torch.ones(3, 2), []
    compiled = torch.compile(net, backend=lambda graph, _: graphs.append(graph) or graph.forward, fullgraph=True)
    assert torch.equal(compiled(x), net(x)) and len(graphs) == 1
    assert [block.calls for block in net.blocks] == [2, 2]
    net.blocks[1].register_forward_hook(lambda module, args, out: out * 2)
    assert torch.equal(compiled(x), net(x)) and len(graphs) == 2
    net.blocks[0] = torch.compile(nn.Identity(), backend="eager")
    net.blocks[0].layer = net.blocks[1].layer
    assert torch.equal(compiled(x), net(x)) and len(graphs) == 3
    assert net.blocks[1].calls == 6


def test_a_module_given_another_forward_runs_that():
    module, x = nn.Linear(2, 2), torch.ones(3, 2)
    compiled = torch.compile(module, backend="eager")
    assert torch.equal(compiled(x), module(x))
    module.forward = lambda x: x * 2
    assert compiled(x).tolist() == [[2.0, 2.0]] * 3
    handle = module.register_forward_hook(lambda m, args, out: out + 1)
    assert compiled(x).tolist() == [[3.0, 3.0]] * 3
    handle.remove()
    del module.forward
    assert torch.equal(compiled(x), module(x))
