"""Calls of compiled functions: history, writes, views and gradients as the function itself would leave them."""

from __future__ import annotations

import io
import threading

import pytest

import pullback as torch
from pullback.autograd.engine import current_node
from pullback.capture.front.config import config as capture_config
from pullback.joint.aot import aot_function
from pullback.joint.config import config
from pullback.joint.history import CompiledFunctionBackward
from pullback.joint.runtime import Compiled

from .against_eager import aot, leaves, unchanged


def leaf(*shape, **options):
    return torch.randn(shape, requires_grad=True, **options)


def test_history():
    x = leaf(3)
    y = x * 1
    out, other = aot(lambda x, y: (x * y, y.detach()))(x, y)
    assert (
        isinstance(out.grad_fn, CompiledFunctionBackward) and type(out.grad_fn).__name__ == "CompiledFunctionBackward"
    )
    assert out.grad_fn.next_functions[1][0] is y.grad_fn and other.grad_fn is None
    assert not out.is_leaf and out._version == 0 and out._base is None


def test_results_have_one_node():
    a, b = aot(lambda x: (x * 2, x * 3))(leaf(3))
    assert a.grad_fn is b.grad_fn and (a.output_nr, b.output_nr) == (0, 1)


def test_what_is_saved_goes_through_hooks():
    packed, unpacked = [], []

    def pack(t):
        packed.append(t)
        return len(packed) - 1

    def unpack(i):
        unpacked.append(i)
        return packed[i]

    x = leaf(3)
    f = aot(lambda x: x.sin().exp())
    f(x)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        out = f(x)
    assert packed and not unpacked
    out.sum().backward()
    assert unpacked and torch.allclose(x.grad, x.detach().cos() * x.detach().sin().exp())


def test_saved_values_are_guarded_against_writes():
    x = leaf(3)
    y = x * 1
    out = aot(lambda y: y * y)(y)
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_what_is_written_is_saved_as_it_was():
    def f(y, z):
        y.mul_(z)  # the gradient of z is the old value of y
        return y + 1

    found = []
    for form in (f, aot(f)):
        torch.manual_seed(0)
        x, z = leaf(3), leaf(3)
        y = x * 1
        (form(y, z).sum() + y.square().sum()).backward()
        found.append(torch.stack([x.grad, z.grad]))
    assert torch.allclose(*found)


def test_hooks_on_results_and_nodes():
    calls = []
    x = leaf(3)
    out = aot(lambda x: x * 2)(x)
    out.register_hook(lambda g: calls.append("tensor") or g * 10)
    out.grad_fn.register_prehook(lambda gs: calls.append("before"))
    out.grad_fn.register_hook(lambda gi, go: calls.append("after"))
    out.retain_grad()
    out.sum().backward()
    assert calls == ["tensor", "before", "after"] and x.grad.tolist() == [20.0] * 3 and out.grad.tolist() == [10.0] * 3


def test_results_can_be_written():
    x = leaf(3)
    out = aot(lambda x: x * 2)(x)
    out.mul_(3)
    out.sum().backward()
    assert x.grad.tolist() == [6.0] * 3


def test_views_of_inputs_are_views():
    base = leaf(2, 3) * 1
    view = aot(lambda x: x.t())(base)
    assert view._base is base and type(view.grad_fn).__name__ == "TBackward0"
    view.mul_(2)
    assert type(base.grad_fn).__name__ == "CopySlices"


def test_views_of_results_follow_writes():
    x = leaf(2, 3)
    y, row = aot(lambda x: (lambda y: (y, y[0]))(x * 2))(x)
    row.zero_()
    assert y[0].tolist() == [0.0] * 3
    y.sum().backward()
    assert x.grad.tolist() == [[0.0] * 3, [2.0] * 3]


def test_inputs_that_get_a_shape():
    def f(x):
        x.t_()
        x.mul_(2)
        return x.sum()

    x, y = torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3)
    kept = y
    assert f(x) == aot(f)(y)
    assert kept.shape == x.shape and kept.stride() == x.stride() and torch.equal(kept, x) and kept._version >= 1


def test_grad_mode_decides_at_the_call():
    x = leaf(3)
    f = aot(lambda x: x * 2)
    assert f(x).requires_grad
    with torch.no_grad():
        assert not f(x).requires_grad
    with torch.inference_mode():
        assert not f(x).requires_grad
    assert f(x).requires_grad


def test_arguments_that_stopped_requiring_grad():
    f = aot(lambda x, y: x * y)
    x, y = leaf(3), leaf(3)
    f(x, y).sum().backward()
    out = f(x.detach(), y)
    out.sum().backward()
    assert torch.allclose(y.grad, 2 * x.detach())
    assert not f(x.detach(), y.detach()).requires_grad


def test_gradients_of_undefined_results():
    f = aot(lambda x, y: (x * 2, y * 3))
    x, y = leaf(3), leaf(3)
    a, _ = f(x, y)
    a.sum().backward()
    assert x.grad.tolist() == [2.0] * 3 and (y.grad is None or y.grad.tolist() == [0.0] * 3)


def test_backward_from_threads():
    f, found = aot(lambda x: x.sin()), {}
    f(leaf(3))

    def work(k):
        x = torch.full((3,), float(k), requires_grad=True)
        f(x).sum().backward()
        found[k] = torch.allclose(x.grad, x.detach().cos())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == dict.fromkeys(range(4), True)


def test_errors_in_backward_show_the_line_and_leave_modes():
    from pullback.core.modes import ambient
    from pullback.joint.aot import aot_function

    def failing(graph, inputs):
        def run(*args):
            raise ValueError("compiled code failed")

        return run

    x = leaf(3)
    before = ambient.mode
    out = aot_function(lambda x: x.sin(), unchanged, failing)(x)
    with pytest.raises(ValueError, match="compiled code failed"):
        out.sum().backward()
    assert ambient.mode == before


# ---- higher orders
@pytest.mark.parametrize("order", [2, 3])
def test_higher_orders(order):
    def f(x, y):
        return (x * y).sin() * y.exp()

    found = []
    for form in (f, aot(f)):
        (x, y), _ = leaves((3,), (3,), dtype=torch.float64)()
        value = form(x, y).sum()
        for _ in range(order):
            gs = torch.autograd.grad(value, (x, y), create_graph=True)
            value = sum((g * g).sum() for g in gs)
        value.backward()
        found.append([x.grad, y.grad])
    assert all(torch.allclose(a, b, rtol=1e-9) for a, b in zip(*found, strict=True))


def test_double_backward_of_tangents():
    found = []
    for form in (lambda x: x.sin() * x, aot(lambda x: x.sin() * x)):
        (x, t), _ = leaves((3,), (3,), dtype=torch.float64)()
        (g,) = torch.autograd.grad(form(x), x, t, create_graph=True)
        g.pow(2).sum().backward()
        found.append([x.grad, t.grad])
    assert all(torch.allclose(a, b, rtol=1e-9) for a, b in zip(*found, strict=True))


def test_gradgradcheck():
    f = aot(lambda x: x.sin() * x.exp())
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, (x,)) and torch.autograd.gradgradcheck(f, (x,))


def test_double_backward_can_be_forbidden():
    x = torch.randn(3, requires_grad=True)
    with config.patch(double_backward=False):
        out = aot(lambda x: x.sin())(x)
        with pytest.raises(
            RuntimeError, match="torch.compile with aot_autograd does not currently support double backward"
        ):
            torch.autograd.grad(out.sum(), x, create_graph=True)


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return -g


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: (Reversed.apply(x),),
        lambda x: (Reversed.apply(x), x * 2),
        lambda x: (Reversed.apply(x), Reversed.apply(x)),
        lambda x: (Reversed.apply(x).view(1, -1)[:, :2],),
        lambda x: (Reversed.apply(x.view(1, 3)), x),
        lambda x: (lambda h: (h, Reversed.apply(h), Reversed.apply(h.view(-1))))(x * 2),
    ],
)
def test_a_custom_function_that_gives_its_argument_keeps_its_backward(f, backend):
    def run(g):
        x = torch.ones(3, requires_grad=True)
        outs = g(x)
        sum((i + 1) * o.sum() for i, o in enumerate(outs)).backward()
        return x.grad.tolist(), x.is_leaf, [o.data_ptr() == x.data_ptr() for o in outs]

    assert run(torch.compile(f, backend=backend)) == run(f)


class AddsGradientTo(torch.autograd.Function):
    """Keeps a tensor that its backward writes."""

    @staticmethod
    def forward(ctx, x, kept):
        ctx.kept = kept
        return x * 2

    @staticmethod
    def backward(ctx, g):
        with torch.no_grad():
            ctx.kept.add_(g)
        return g * ctx.kept, None


@pytest.mark.parametrize("requires_grad", [False, True])
def test_backward_writes_argument(requires_grad):
    def f(x, kept, other):
        other.mul_(5)
        return AddsGradientTo.apply(x, kept).sin() + other

    def run(f):
        x, kept, other = torch.arange(3.0), torch.ones(3), torch.full((3,), 2.0)
        x.requires_grad_(), kept.requires_grad_(requires_grad)
        out = f(x, kept, other)
        before = kept.tolist(), kept._version
        out.sum().backward()
        return out.tolist(), before, other.tolist(), kept.tolist(), kept._version, x.grad.tolist()

    assert run(aot(f)) == run(f)


def test_backward_writes_argument_after_forward_wrote_it():
    def f(x, kept):
        kept.mul_(3)
        return AddsGradientTo.apply(x, kept).exp()

    def run(f):
        x, kept = torch.ones(3, requires_grad=True), torch.ones(3)
        f(x, kept).sum().backward()
        return kept.tolist(), x.grad.tolist()

    assert run(aot(f)) == run(f)


def test_backward_that_writes_argument_runs_once_and_is_not_differentiated():
    def f(x, kept):
        with torch.no_grad():
            kept.mul_(2)
        return AddsGradientTo.apply(x, kept)

    x, kept = leaf(3), leaf(3)
    out = aot(f)(x, kept).sum()
    with pytest.raises(RuntimeError, match="does not support input mutations with requires_grad in backward"):
        torch.autograd.grad(out, x, create_graph=True)
    out.backward(retain_graph=True)
    with pytest.raises(NotImplementedError, match="second run"):
        out.backward()


def test_backward_that_writes_result_is_refused():
    class Writes(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.out = x * 2
            return ctx.out

        @staticmethod
        def backward(ctx, g):
            with torch.no_grad():
                ctx.out.zero_()
            return g

    with pytest.raises(NotImplementedError, match="writes a result"):
        aot(Writes.apply)(leaf(3))


def test_a_node_made_again_of_its_state_runs():
    """As compiled autograd makes it: of what `saved_state` says, and nothing else."""
    x = leaf(3)
    node = aot(lambda x: x.sin())(x).grad_fn
    again = CompiledFunctionBackward.__new__(CompiledFunctionBackward)
    for name, value in node.saved_state().items():
        setattr(again, name, value)
    again.primals = None
    with torch.no_grad():
        (found,) = again.run([torch.ones(3)])
    assert torch.equal(found, x.cos().detach())


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_views_of_sizes_that_data_tells_are_views_of_the_argument(backend: str) -> None:
    def f(x, sizes):
        return torch.ops.aten.split_with_sizes(x, sizes.tolist())

    with capture_config.patch(capture_scalar_outputs=True):
        run = torch.compile(f, fullgraph=True, backend=backend)
        x = torch.arange(32.0, requires_grad=True)
        for sizes in ((7, 16, 9), (10, 10, 12)):
            a, b, c = run(x, torch.tensor(sizes))
            assert (len(a), len(b), len(c)) == sizes and b._base is x and b.storage_offset() == sizes[0]
            (grad,) = torch.autograd.grad(a.sum() * 2 + c.sum(), x)
            assert grad.tolist() == [2.0] * sizes[0] + [0.0] * sizes[1] + [1.0] * sizes[2]


def test_statistics_that_no_gradient_depends_on_are_not_copied():
    """Second derivatives are what they are without compiling, though the old running statistics are gone by then."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Tanh())
    x = torch.randn(2, 3, 8, 8, requires_grad=True)

    def second(f):
        model[1].reset_running_stats()
        x.grad = None
        (g,) = torch.autograd.grad((y := f(x)), x, create_graph=True)
        (g * g).sum().backward()
        return y, [g.detach(), x.grad, *[b.clone() for b in model.buffers()]]

    loss = lambda x: (model(x) ** 2).sum()
    compiled, result = second(torch.compile(loss))
    for a, b in zip(result, second(loss)[1], strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    assert len(compiled.grad_fn.compiled.replaced) == 3


def test_what_gradients_depend_on_is_copied():
    @torch.compile
    def f(x, factor):
        result = (x * factor.clone()).sum()
        factor.mul_(2)
        return result

    x, factor = torch.randn(3, requires_grad=True), torch.ones(3)
    y = f(x, factor)
    assert not y.grad_fn.compiled.replaced
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.equal(torch.ones(3)) and factor.equal(torch.full((3,), 2.0))


def test_saved_values_go_with_a_backward_that_keeps_no_graph():
    """They are the compiled backward's to take; where the graph is kept, they stay for the next run."""
    taken = []

    class Consuming:
        def __init__(self, module):
            self.module = module

        def __call__(self, *args):
            return self.module(*args)

        def consume(self, args):
            taken.append(current_node().saved is None)
            return self.module(*args)

    f = aot_function(lambda x: (x.sin() * x).exp(), lambda m, inputs: m, lambda m, inputs: Consuming(m))
    x = torch.randn(5, requires_grad=True)
    out = f(x)
    (first,) = torch.autograd.grad(out.sum(), x, retain_graph=True)
    (second,) = torch.autograd.grad(out.sum(), x)
    assert taken == [False, True] and torch.equal(first, second)
    with pytest.raises(RuntimeError, match="second time"):
        out.sum().backward()


# ---- the shortest way
def updates(w, m, g):
    """Two of its arguments get new values."""
    m.mul_(0.9).add_(g)
    with torch.no_grad():
        w.sub_(m * 0.1)
    return (w * m).sum(), m.max()


def flips(w, m, g):
    """New values that cannot be written over old ones as they are computed."""
    m.copy_(m.flip(0) * 2)
    w.copy_(w.cumsum(0) + g)
    return (w + m,)


@pytest.mark.parametrize("f", [updates, flips])
@pytest.mark.parametrize("recorded", [False, True])
def test_functions_that_write_arguments_are_called_by_the_shortest_way(monkeypatch, f, recorded: bool) -> None:
    found = []
    direct = Compiled.direct
    monkeypatch.setattr(Compiled, "direct", lambda self: found.append(direct(self)) or found[-1])
    compiled = torch.compile(f)
    ours, theirs = ([torch.arange(5.0), torch.ones(5), torch.linspace(-1, 1, 5)] for _ in range(2))
    for tensors in (ours, theirs):
        tensors[2].requires_grad_(recorded and f is updates)
    for _ in range(4):
        with torch.set_grad_enabled(False):
            got, want = compiled(*ours), f(*theirs)
        for a, b in zip((*got, *ours), (*want, *theirs), strict=True):
            torch.testing.assert_close(a, b)
            assert a.requires_grad == b.requires_grad
        assert [t._version > 0 for t in ours] == [t._version > 0 for t in theirs]
    assert found and all(call is not None for call in found)
    assert [t._version for t in ours] == [4, 4, 0]


def test_statistics_are_written_by_the_shortest_way(monkeypatch) -> None:
    """A forward that writes buffers and has a backward."""
    found = []
    direct = Compiled.direct
    monkeypatch.setattr(Compiled, "direct", lambda self: found.append(direct(self)) or found[-1])
    seen = []
    for wrap in (lambda m: m, torch.compile):
        torch.manual_seed(0)
        norm = torch.nn.BatchNorm1d(4)
        run = wrap(norm)
        for k in range(3):
            x = leaf(6, 4)
            run(x * (k + 1)).square().sum().backward()
            seen.append((x.grad, norm.running_mean.clone(), norm.running_var.clone(), norm.weight.grad.clone()))
    for eager, compiled in zip(seen[:3], seen[3:], strict=True):
        for a, b in zip(eager, compiled, strict=True):
            torch.testing.assert_close(a, b)
    assert any(call is not None for call in found)


@pytest.mark.parametrize("wants", [False, True])
def test_an_input_is_let_require_grad(wants):
    def f(a, b):
        a.requires_grad_()
        return a * 3, b * a, a.view(-1)

    given = [(torch.ones(2), torch.full((2,), 2.0, requires_grad=wants)) for _ in range(2)]
    for function, (a, b) in zip((f, aot_function(f, lambda gm, _: gm)), given, strict=True):
        out = function(a, b)
        assert a.requires_grad and a.is_leaf and all(o.requires_grad for o in out)
        sum(o.sum() for o in out).backward()
        assert a.grad.tolist() == [6, 6] and (b.grad.tolist() == [1, 1] if wants else b.grad is None)


def test_a_view_of_an_input_is_let_require_grad():
    def f(a, b):
        return a.view(-1).requires_grad_(), (a * 2)[0].requires_grad_(), b * 2

    a, b = torch.ones(2, 2), torch.ones(2, requires_grad=True)
    first, second, _ = aot_function(f, lambda gm, _: gm)(a, b)
    assert first.requires_grad and first.is_leaf and second.requires_grad and second.is_leaf and not a.requires_grad
    (first * 2).sum().backward()
    assert first.grad.tolist() == [2, 2, 2, 2]


def test_outputs_say_which_of_their_sizes_may_be_others():
    made = torch.compile(lambda x, y: (x @ y, x.sum()), backend="aot_eager")
    taken = torch.compile(lambda x: x * 2, backend="aot_eager")
    first = made(torch.ones(2, 3), torch.ones(3, 4))[0]
    assert not hasattr(first, "_dynamo_propagated_dynamic_indices")
    second, total = made(torch.ones(5, 3), torch.ones(3, 4))
    assert second._dynamo_propagated_dynamic_indices == {0}
    assert not hasattr(total, "_dynamo_propagated_dynamic_indices")
    assert taken(second)._dynamo_propagated_dynamic_indices == {0}
    loaded = torch.load(io.BytesIO(saved(second)), weights_only=True)
    assert torch.equal(loaded, second)


def saved(t):
    file = io.BytesIO()
    torch.save(t, file)
    return file.getvalue()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_saved_values_say_which_of_their_sizes_may_be_others(backend):
    torch.compiler.reset()
    f = torch.compile(lambda x: (x.sin() * x).exp(), backend=backend)
    marks = []

    def pack(t):
        marks.append(getattr(t, "_dynamo_propagated_dynamic_indices", None))
        return t

    for size in (3, 4):
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            f(torch.ones(size, requires_grad=True))
    half = len(marks) // 2
    assert half and marks == [None] * half + [{0}] * half


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_batched_gradients_of_what_draws_are_those_of_one_draw(backend):
    f = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5).sin() * torch.rand_like(x), backend=backend)
    x = torch.randn(6, requires_grad=True)
    y = f(x)
    each = torch.stack([torch.autograd.grad(y, x, e, retain_graph=True)[0] for e in torch.eye(6)])
    state = torch.get_rng_state()
    batched = torch.autograd.grad(y, x, torch.eye(6), is_grads_batched=True, retain_graph=True)[0]
    torch.testing.assert_close(batched, each)
    assert torch.equal(torch.get_rng_state(), state)
