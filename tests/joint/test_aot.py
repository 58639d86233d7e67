"""Functions compiled ahead of time behave as the functions themselves."""

from __future__ import annotations

import gc
import traceback

import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback import nn
from pullback.capture.fake.mode import FakeTensor
from pullback.core.modes import ambient
from pullback.joint.aot import aot_function, aot_module, aot_module_simplified, make_boxed_func, nop
from pullback.joint.compilers import aot_autograd, make_boxed_compiler, memory_efficient_fusion, nnc_jit, print_compile
from pullback.joint.config import config
from pullback.joint.context import get_aot_compilation_context, get_aot_graph_name
from pullback.joint.partition import default_partition, min_cut_rematerialization_partition

from .against_eager import aot, assert_same, inner, leaves, plain, unchanged

X, XY = leaves((3, 4)), leaves((3, 4), (3, 4))


def _nested(state):
    return {"sum": state["a"] + state["b"][0], "parts": (state["b"][1] * 2, [state["a"].sin()])}


def _nested_arguments():
    (a, b, c), result = leaves((3,), (3,), (3,))()
    return [{"a": a, "b": [b, c]}], result


FUNCTIONS = {
    "one operator": (lambda x: x.sin(), X),
    "two inputs": (lambda x, y: (x * y).exp() + y, XY),
    "several outputs": (lambda x, y: (x * y, x.sum(), (y + 1).tanh()), XY),
    "none and numbers": (lambda x: (None, x * 2, 3, "word", [x.sum(), None], True), X),
    "nested arguments": (_nested, _nested_arguments),
    "matmul and softmax": (lambda x, y: torch.softmax(x @ y.t(), 1).log().mean(), XY),
    "unused input": (lambda x, y: x * 2, XY),
    "no differentiable output": (lambda x: (x > 0, x.detach() * 2, x.argmax()), X),
    "integer output": (lambda x: (x * 2, x.argsort(1)), X),
    "input without grad": (lambda x, y: x * y, lambda: (lambda m: ([m[0], m[1].detach()], m[:1]))(XY()[1])),
    "nothing requires grad": (lambda x, y: (x * y, x + y), plain((3,), (3,))),
    "non-leaf inputs": (lambda x, y: x * y + x, inner((3,), (3,))),
    "indexing": (lambda x: x[:, 1] * x[0, 2], X),
    "scalars of no dimensions": (lambda x, y: x * y, leaves((), ())),
    "empty": (lambda x: x * 2, leaves((0, 3))),
    "no outputs": (lambda x: None, X),
    "own constant": (lambda x: x * torch.tensor([1.0, 2.0, 3.0, 4.0]), X),
    "fresh leaf": (lambda x: (x * 2, torch.ones(3), torch.zeros(2, requires_grad=True)), X),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    f, make = FUNCTIONS[name]
    assert_same(f, make)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_min_cut_partition_gives_the_same(name):
    f, make = FUNCTIONS[name]
    assert_same(f, make, partition_fn=min_cut_rematerialization_partition)


def test_keyword_arguments():
    def f(x, *, scale, offset=1.0):
        return x * scale["by"] + offset

    x, s = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    compiled = aot(f)
    out = compiled(x, scale={"by": s}, offset=2.0)
    assert torch.equal(out, f(x, scale={"by": s}, offset=2.0))
    out.sum().backward()
    assert torch.equal(s.grad, x.detach())
    assert torch.equal(compiled(x, scale={"by": s}), f(x, scale={"by": s}))


def test_numbers_among_arguments_compile_anew():
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph

    f = aot_function(lambda x, n: x * n, count)
    x = torch.ones(2)
    assert f(x, 2).tolist() == [2, 2] and f(x, 3).tolist() == [3, 3] and f(x, 2).tolist() == [2, 2]
    assert len(graphs) == 2


# ---- writes
def _write_half(x):
    x[0].mul_(2)
    return x.sum() * 2


def _hidden_write(x, y):
    with torch.no_grad():
        x.add_(1)
    return x * y


def _write_twice(x, y):
    x.mul_(y)
    x.add_(y)
    return x * 3


def _write_and_return(x, y):
    x.mul_(y)
    return x, y * x


def _through_view(x, y):
    x.t()[1].copy_(y[:, 0])
    return (x * y).sum()


def _detached_write(x, y):
    x.detach().mul_(2)
    return x * y


WRITES = {
    "plain": (lambda x, y: x.add_(y), plain((3,), (3,))),
    "plain, two": (lambda x, y: (x.mul_(2), y.add_(x))[1] * 2, plain((3,), (3,))),
    "metadata": (lambda x: x.t_().sum(0), plain((3, 4))),
    "metadata and data": (lambda x: x.t_().mul_(2), plain((3, 4))),
    "unsqueeze_ of a result": (lambda x: x.unsqueeze_(0) * 2, inner((3,))),
    "no_grad, of a leaf": (_hidden_write, XY),
    "no_grad, of a result": (_hidden_write, inner((3,), (3,))),
    "of a result": (lambda x: x.mul_(2).sin(), inner((3,))),
    "of a result, not returned": (_write_half, inner((3, 2))),
    "twice": (_write_twice, inner((3,), (3,))),
    "and returned": (_write_and_return, inner((3,), (3,))),
    "through a view": (_through_view, inner((3, 3), (3, 3))),
    "of a detached alias": (_detached_write, inner((3,), (3,))),
    "gives a history": (
        lambda x, y: x.copy_(y),
        lambda: (lambda m: ([torch.zeros(3), m[0] * 1.0], m))(leaves((3,))()[1]),
    ),
    "history of a leaf": (
        lambda x, y: (x.copy_(y), None)[1],
        lambda: (lambda m: ([torch.zeros(3), m[0]], m))(leaves((3,))()[1]),
    ),
    "nothing else": (lambda x: (x.zero_(), None)[1], plain((3,))),
    "fill of an integer tensor": (lambda x: x.fill_(3) + 1, lambda: ([torch.arange(3)], [])),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes(name):
    f, make = WRITES[name]
    assert_same(f, make)


def test_write_to_a_leaf_raises():
    x = torch.randn(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        aot(lambda x: x.mul_(2))(x)


# ---- aliases
def _views_of_each_other(x):
    y = x * 2
    a = y.view(-1)
    return y, a, a[2:]


def _views_of_hidden(x):
    y = x * 2
    return y[0], y[1], y.t()


def _write_after_view(x):
    y = x * 2
    v = y[0]
    y.mul_(3)
    return y, v


ALIASES = {
    "an input": (lambda x: x, X),
    "an input, twice": (lambda x: (x, x, x * 2), X),
    "a view of an input": (lambda x: x.t(), X),
    "a view of a view": (lambda x: x.t()[1:].unsqueeze(0), X),
    "a view of a plain input": (lambda x: (x[0], x * 2), plain((3, 4))),
    "detached input": (lambda x: (x.detach(), x * 2), X),
    "view of a result given in": (lambda x: x.view(-1), inner((3, 4))),
    "view made without recording": (lambda x: torch.no_grad()(lambda: x[0])(), X),
    "several views of an input": (lambda x: x.split(1), X),
    "views of each other": (_views_of_each_other, X),
    "views of an intermediate": (_views_of_hidden, X),
    "one result twice": (lambda x: (lambda y: (y, y))(x * 2), X),
    "written, then viewed": (_write_after_view, X),
    "written input and its view": (lambda x: (x.mul_(2), x[0]), inner((3, 4))),
    "expanded": (lambda x: x[0].expand(5, 4), X),
}


@pytest.mark.parametrize("name", ALIASES)
def test_aliases(name):
    f, make = ALIASES[name]
    assert_same(f, make)


def _twice():
    (x,), result = leaves((3,))()
    return [x, x], result


def _twice_plain():
    (x,), _ = plain((3,))()
    return [x, x], []


def _overlapping(recorded: bool):
    def make():
        torch.manual_seed(3)
        leaf = torch.randn(6, requires_grad=recorded)
        base = leaf * 1.0
        return [base[:4], base[2:]], [leaf] if recorded else []

    return make


SHARED = {
    "the same tensor": (lambda x, y: x * y, _twice),
    "the same tensor, written": (lambda x, y: x.mul_(2) + y, _twice_plain),
    "read only": (lambda x, y: x * y, _overlapping(False)),
    "read only, recorded": (lambda x, y: x * y, _overlapping(True)),
    "written": (lambda x, y: x.mul_(2).sum() + y, _overlapping(False)),
    "written, returned": (lambda x, y: (x.mul_(2), y.add_(1), y * 2), _overlapping(False)),
    "written, recorded": (lambda x, y: x.mul_(2).sum() + y * y, _overlapping(True)),
    "written, returned, recorded": (lambda x, y: (x.mul_(2), y.sin()), _overlapping(True)),
}


@pytest.mark.parametrize("name", SHARED)
def test_inputs_that_share_memory(name):
    f, make = SHARED[name]
    assert_same(f, make)


# ---- autograd's own features inside
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 100 + x * 0, None


def _hooked(x):
    y = x.sin()
    y.register_hook(lambda g: g * 10)
    return y * 2


def _offloaded(x):
    with torch.autograd.graph.save_on_cpu():
        return x.sin().exp() * x


def _random(x):
    return F.dropout(x, 0.5) * torch.rand(3, 4) + torch.randn_like(x)


def _inner_grad(x):
    with torch.enable_grad():
        y = (x * x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g * x


FEATURES = {
    "custom function": (lambda x: Scale.apply(x.sin(), 2.0), X),
    "tensor hook": (_hooked, X),
    "saved-tensor hooks": (_offloaded, X),
    "random numbers": (_random, X),
    "gradient inside": (_inner_grad, X),
    "amp": (lambda x, y: torch.autocast("cpu", dtype=torch.bfloat16)(lambda: x @ y.t())().float(), XY),
}


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
def test_features(name, partition):
    f, make = FEATURES[name]
    assert_same(f, make, partition_fn=partition)


def test_gradients_accumulate_as_in_eager():
    assert_same(lambda x, y: (x * y).sin(), XY, times=2)
    f = aot(lambda x: x.sin())
    x = torch.randn(3, requires_grad=True)
    f(x).sum().backward()
    first = x.grad
    f(x).sum().backward()
    assert x.grad is first  # added to in place
    assert torch.allclose(x.grad, 2 * x.detach().cos())


def test_second_backward_raises_and_retain_graph_allows_it():
    x = torch.randn(3, requires_grad=True)
    out = aot(lambda x: x.sin() * x)(x)
    out.sum().backward(retain_graph=True)
    out.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        out.sum().backward()


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(4, 3).t(),
        lambda: torch.randn(1, 1).expand(3, 4),
        lambda: torch.randn(()).expand(3, 4),
        lambda: torch.randn(3, 8)[:, ::2],
    ],
)
def test_gradients_in_other_layouts(make):
    g = make()
    grads = []
    for f in (
        lambda x: (x * 2).sin().view(-1).cos().view(3, 4),
        aot(lambda x: (x * 2).sin().view(-1).cos().view(3, 4)),
    ):
        torch.manual_seed(0)
        x = torch.randn(3, 4, requires_grad=True)
        f(x).backward(g)
        grads.append(x.grad)
    assert torch.allclose(*grads) and grads[0].stride() == grads[1].stride()


def test_only_one_of_two_outputs_is_used():
    def f(x, y):
        return x * y, (x + y).sin()

    for used in (0, 1):
        grads = []
        for form in (f, aot(f)):
            (x, y), _ = XY()
            form(x, y)[used].sum().backward()
            grads.append((x.grad, y.grad))
        assert all(torch.allclose(a, b) for a, b in zip(*grads, strict=True))


def test_partial_gradients():
    (x, y), _ = XY()
    out = aot(lambda x, y: x * y)(x, y)
    (g,) = torch.autograd.grad(out.sum(), y)
    assert torch.equal(g, x.detach()) and x.grad is None


# ---- what the compilers get
def test_compilers_get_graphs_and_fakes():
    kinds = {}

    def compiler(kind):
        def compile(graph, inputs):
            names = [n.name for n in graph.graph.nodes if n.op == "placeholder"]
            assert len(names) == len(inputs)
            assert all(isinstance(i, FakeTensor) for i in inputs)
            assert not any(
                "_" == n.target.name[-1]
                for n in graph.graph.nodes
                if n.op == "call_function" and hasattr(n.target, "schema")
            )
            kinds[kind] = [(n, tuple(i.shape)) for n, i in zip(names, inputs, strict=True)]
            return graph

        return compile

    f = aot_function(
        lambda x, y: (x @ y).sin(), compiler("forward"), compiler("backward"), inference_compiler=compiler("inference")
    )
    x, y = torch.randn(2, 3, requires_grad=True), torch.randn(3, 4)
    f(x, y).sum().backward()
    assert kinds["forward"] == [("primals_1", (2, 3)), ("primals_2", (3, 4))]
    assert ("tangents_1", (2, 4)) in kinds["backward"] and "inference" not in kinds


@pytest.mark.parametrize("how", ["no_grad", "nothing requires grad"])
def test_inference_compiles_no_backward(how):
    called = []

    def compiler(kind):
        def compile(graph, inputs):
            called.append(kind)
            return graph

        return compile

    f = aot_function(
        lambda x: x.sin(), compiler("forward"), compiler("backward"), inference_compiler=compiler("inference")
    )
    x = torch.randn(3, requires_grad=how == "no_grad")
    with torch.no_grad():
        out = f(x)
    assert called == ["inference"] and not out.requires_grad and out.grad_fn is None
    if how == "no_grad":
        out = f(x)
        assert out.requires_grad and called == ["inference", "forward"]
        out.sum().backward()
        assert called == ["inference", "forward", "backward"]


def test_boxed_compilers():
    def boxed(graph, inputs):
        def run(args):
            assert type(args) is list
            given = list(args)
            args.clear()
            return graph(*given)

        run._boxed_call = True
        return run

    assert_same(lambda x, y: (x * y).sin(), XY, form=lambda f: aot_function(f, boxed))
    assert_same(lambda x: x.exp(), X, form=lambda f: aot_function(f, lambda g, i: make_boxed_func(g)))
    assert_same(lambda x: x.exp(), X, form=lambda f: aot_function(f, nop))


def test_decompositions():
    targets = []

    def compiler(graph, inputs):
        targets.extend(n.target for n in graph.graph.nodes if n.op == "call_function")
        return graph

    aten = torch.ops.aten
    rule = {aten.silu.default: lambda x: x * x.sigmoid()}
    assert_same(F.silu, X, form=lambda f: aot_function(f, compiler, decompositions=rule))
    assert aten.sigmoid.default in targets and aten.silu.default not in targets


def test_errors_in_compiled_code_show_the_users_line():
    def f(x):
        y = x.sin()
        return torch.index_select(y, 0, (y.detach() * 0 + 100).long())  # the culprit

    x = torch.randn(3, requires_grad=True)
    with pytest.raises(IndexError) as caught:
        aot(f)(x)
    shown = "".join(traceback.format_exception(caught.value)) + "".join(getattr(caught.value, "__notes__", []))
    assert "the culprit" in shown


# ---- modules
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 2)

    def forward(self, x, scale=1.0):
        return self.last(self.norm(self.first(x)).relu()) * scale


def _nets():
    torch.manual_seed(0)
    one, other = Net(), Net()
    other.load_state_dict(one.state_dict())
    return one, other


def _same_modules(one, other):
    for (name, a), (_, b) in zip(one.state_dict().items(), other.state_dict().items(), strict=True):
        assert torch.allclose(a, b, atol=1e-6), name
    for (name, a), (_, b) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None) and (a.grad is None or torch.allclose(a.grad, b.grad, atol=1e-6)), (
            name
        )


def test_aot_module_trains_as_the_module():
    one, other = _nets()
    compiled = aot_module(other, unchanged)
    opts = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (one, other)]
    for _ in range(3):
        x = torch.randn(6, 4)
        for model, opt in zip((one, compiled), opts, strict=True):
            opt.zero_grad()
            model(x, scale=2.0).square().mean().backward()
            opt.step()
    _same_modules(one, other)
    one.eval(), other.eval()
    assert torch.allclose(one(x), compiled(x), atol=1e-6)
    assert int(other.norm.num_batches_tracked) == 3


def test_aot_module_simplified():
    class Flat(Net):
        def forward(self, x):
            return (super().forward(x),)

    torch.manual_seed(0)
    one, other = Flat(), Flat()
    other.load_state_dict(one.state_dict())
    x = torch.randn(6, 4)
    compiled = aot_module_simplified(other, (x,), unchanged)
    for _ in range(2):
        one(x)[0].sum().backward()
        compiled(x)[0].sum().backward()
    _same_modules(one, other)


def test_tied_parameters():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
            self.b.weight = self.a.weight

        def forward(self, x):
            return (self.b(self.a(x)),)

    torch.manual_seed(0)
    one, other = Tied(), Tied()
    other.load_state_dict(one.state_dict())
    x = torch.randn(2, 3)
    compiled = aot_module_simplified(other, (x,), unchanged)
    one(x)[0].sum().backward()
    compiled(x)[0].sum().backward()
    _same_modules(one, other)


# ---- memory
def test_nothing_is_kept_over_many_calls():
    f = aot(lambda x, y: (x * y).sin() @ y.t())
    (x, y), _ = XY()

    def step():
        f(x, y).sum().backward()
        x.grad = y.grad = None

    for _ in range(5):
        step()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1000):
        step()
    gc.collect()
    assert len(gc.get_objects()) - before < 50


def test_saved_values_are_freed_with_the_graph():
    import weakref

    f = aot(lambda x: x.sin().exp())
    x = torch.randn(3, requires_grad=True)
    out = f(x)
    refs = [weakref.ref(out.grad_fn)]
    out.sum().backward()
    del out
    gc.collect()
    assert refs[0]() is None


def test_modes_are_left_as_they_were():
    before = ambient.mode, list(ambient.dispatch_modes)
    with pytest.raises(ZeroDivisionError):
        aot(lambda x: x * (1 / 0))(torch.ones(3, requires_grad=True))
    assert (ambient.mode, list(ambient.dispatch_modes)) == before


def test_places_named_by_their_offset() -> None:
    """`as_strided` counts from the beginning of the memory: a graph of it serves only inputs that begin at the same place."""

    def f(x):
        return x.as_strided((2,), (1,), 1) * 1, x.as_strided((2,), (1,), 1)

    compiled = aot_function(f, unchanged)
    base = torch.arange(8.0)
    for start in (0, 2, 4):
        for ours, eager in zip(compiled(base[start : start + 3]), f(base[start : start + 3]), strict=True):
            torch.testing.assert_close(ours, eager)
            assert ours.storage_offset() == eager.storage_offset()


def test_leaves_made_inside_are_refused() -> None:
    from pullback.capture.trace.program import Unsupported

    def f(x):
        inner = torch.ones(2).requires_grad_()
        return inner, inner * x

    for x in (torch.ones(2), torch.ones(2, requires_grad=True)):
        with pytest.raises(Unsupported, match="makes a tensor that requires grad"):
            aot_function(f, unchanged)(x)
        inner, out = torch.compile(f)(x)  # it is made between two graphs
        out.sum().backward()
        assert inner.grad.tolist() == [1.0, 1.0]


def test_recording_switched_on_inside_where_it_is_off_around():
    def f(x):
        with torch.enable_grad():
            y = x.cos()
        return x.sin(), y

    x, compiled = torch.ones(3, requires_grad=True), aot_function(f, nop)
    for _ in range(2):
        with torch.no_grad():
            plain, recorded = compiled(x)
        assert not plain.requires_grad and recorded.requires_grad
        (found,) = torch.autograd.grad(recorded.sum(), x)
        assert torch.equal(found, -x.sin())
    assert all(t.requires_grad for t in compiled(x))


def test_arguments_unlike_those_compiled_for():
    class Sum(nn.Module):
        def forward(self, x, y):
            return (x + y,)

    x, y, z = torch.ones(2), torch.ones(2), torch.ones(2, requires_grad=True)
    with config.patch(debug_assert=True):
        twice, plain = aot_module_simplified(Sum(), (x, x), nop), aot_module_simplified(Sum(), (x, y), nop)
    assert twice(y, y)[0].tolist() == [2, 2]
    with pytest.raises(AssertionError, match="input 1 would be a duplicate of input 0"):
        twice(x, y)
    with pytest.raises(AssertionError, match="input 1 would not require grad"):
        plain(x, z)


def test_names_while_compiling():
    names = []

    def compiler(graph, inputs):
        names.extend(get_aot_compilation_context()[0])
        assert names[-1] in get_aot_graph_name()
        return graph

    aot_function(torch.sin, compiler)(torch.ones(2, requires_grad=True)).sum().backward()
    aot_function(torch.sin, compiler)(torch.ones(2))
    assert [n.partition("_")[2] for n in names] == ["forward", "backward", "inference"]
    assert get_aot_compilation_context()[0] == []


def test_compilers(capsys):
    x = torch.arange(3.0, requires_grad=True)

    def f(x):
        return (x.sin() * 2).sum()

    expected = torch.autograd.grad(f(x), x)[0]
    for compiled in (nnc_jit(f), memory_efficient_fusion(f), aot_function(f, make_boxed_compiler(nop))):
        torch.testing.assert_close(torch.autograd.grad(compiled(x), x)[0], expected)
    aot_function(f, print_compile)(x)
    assert "torch.ops.aten.sin.default" in capsys.readouterr().out
    assert isinstance(memory_efficient_fusion(nn.Linear(2, 2))(torch.ones(1, 2)), torch.Tensor)


def test_a_backend_of_compilers():
    graphs = []

    def compiler(module, inputs):
        graphs.append([n.name for n in module.graph.nodes if n.op == "call_function"])
        return make_boxed_func(module.forward)

    x = torch.arange(3.0, requires_grad=True)
    compiled = torch.compile(lambda x: (x.sin() * 2).sum(), backend=aot_autograd(fw_compiler=compiler))
    torch.testing.assert_close(torch.autograd.grad(compiled(x), x)[0], 2 * x.cos())
    assert len(graphs) == 2 and "sin" in graphs[0] and "cos" in graphs[1]
    with pytest.raises(TypeError, match="fw_compiler is missing; got bw_compiler"):
        aot_autograd(bw_compiler=compiler)


def test_a_backward_that_takes_symbols_is_compiled_with_its_forward():
    called = []

    def compiler(graph, inputs):
        called.append(graph)
        return graph

    x = torch.randn(3, 4, requires_grad=True)
    aot_function(lambda x: x.sin() * x.shape[0], compiler, dynamic=True)(x)
    assert len(called) == 2


def test_a_backward_is_compiled_with_its_forward_on_demand():
    called = []

    def compiler(graph, inputs):
        called.append(graph)
        return graph

    with config.patch(force_non_lazy_backward_lowering=True):
        aot_function(torch.sin, compiler)(torch.randn(3, requires_grad=True))
    assert len(called) == 2


def test_graphs_without_a_backward_write_inputs_where_that_is_asked():
    graphs = []

    def compiler(graph, inputs):
        graphs.append(graph)
        return graph

    def f(x, y):
        y.add_(x)
        x.mul_(2)
        x.add_(1)
        return y * 3, x.view(-1)

    x, y = torch.ones(2), torch.full((2,), 5.0)
    out, view = aot_function(f, compiler, keep_inference_input_mutations=True)(x, y)
    assert graphs[0].code.count("torch.ops.aten.copy_.default(") == 2
    assert len(graphs[0].graph.output_node().args[0]) == 1
    assert out.tolist() == [18, 18] and x.tolist() == [3, 3] and y.tolist() == [6, 6]
    assert view.data_ptr() == x.data_ptr() and x._version == y._version == 1
    plain = aot_function(f, compiler)
    plain(x, y)
    assert "copy_" not in graphs[1].code and x.tolist() == [7, 7]
