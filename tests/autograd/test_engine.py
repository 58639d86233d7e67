"""The engine: order, accumulation, arguments, threads, memory."""

import gc
import random
import threading
import tracemalloc
import weakref
from contextlib import nullcontext

import numpy as np
import pytest

import pullback as torch
from pullback.autograd import accumulation, engine
from pullback.backward.compiled import enable
from pullback.core.node import edge_of


@pytest.fixture(params=["chosen", "python"], autouse=True)
def walked_by(request, monkeypatch):
    """The walk in use (in C, where the extension is built), and the one written in Python."""
    if request.param == "python":
        monkeypatch.setattr(engine, "quick_walk", None)
    return request.param


@pytest.fixture
def leaf():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def test_gradients_of_shared_subexpressions_add_up(leaf):
    y = leaf * leaf
    (y + y * leaf).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), (2 * leaf + 3 * leaf * leaf).detach().numpy())


def test_broadcast_gradients_are_summed_back():
    a = torch.ones(3, 1, requires_grad=True)
    b = torch.ones(4, requires_grad=True)
    (a * b).sum().backward()
    assert a.grad.tolist() == [[4.0], [4.0], [4.0]] and b.grad.tolist() == [3.0] * 4


def test_repeated_backward_accumulates_in_place(leaf):
    leaf.sum().backward()
    kept = leaf.grad
    leaf.sum().backward()
    assert leaf.grad is kept and kept.tolist() == [2.0, 2.0, 2.0]


def test_only_what_leads_to_the_inputs_runs(leaf):
    other = torch.ones(3, requires_grad=True)
    ran = []
    side = other * 2
    side.register_hook(lambda g: ran.append("side"))
    torch.autograd.grad((leaf * 2 + side).sum(), leaf)
    assert ran == []


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.needed = ctx.needs_input_grad
        return a * b

    @staticmethod
    def backward(ctx, g):
        assert ctx.needs_input_grad == ctx.needed  # a custom function is not told what is asked for
        return g, g


def into_view(a, b):
    base = a * 2
    base[1:].igamma_(b[1:])
    return base


# The first argument of `igamma` has no derivative, so that whoever computes that raises.
IN_PART = {
    "operator": torch.igamma,
    "list": lambda a, b: torch.cat([torch.igamma(a, b), a]),
    "view": into_view,
    "custom": lambda a, b: Both.apply(torch.igamma(a, b), a),
    "one node for a list": lambda a, b: torch._foreach_mul([torch.igamma(a, b), a], [a, b])[0],
}


@pytest.mark.filterwarnings("ignore:.*Anomaly Detection:UserWarning", "ignore:Error detected in:UserWarning")
@pytest.mark.parametrize("how", ["engine", "anomaly", "compiled"])
@pytest.mark.parametrize("case", IN_PART)
def test_only_gradients_that_are_asked_for_are_computed(case, how):
    a, b = (torch.tensor([1.0, 2.0, 3.0], requires_grad=True) for _ in range(2))
    fixed = a.detach()
    (expected,) = torch.autograd.grad(IN_PART[case](fixed, b).sum(), b)
    around = {
        "engine": nullcontext,
        "anomaly": torch.autograd.detect_anomaly,
        "compiled": lambda: enable(lambda gm: gm),
    }
    with around[how]():
        assert torch.autograd.grad(IN_PART[case](a, b).sum(), b)[0].tolist() == expected.tolist()
        IN_PART[case](a, b).sum().backward(inputs=[b])
        with pytest.raises(NotImplementedError, match="derivative for 'igamma"):
            torch.autograd.grad(IN_PART[case](a, b).sum(), a)
    assert b.grad.tolist() == expected.tolist() and a.grad is None


@pytest.mark.parametrize("compiled", [False, True])
def test_hooks_see_no_gradient_that_nobody_asked_for(leaf, compiled):
    other = torch.ones(3, requires_grad=True)
    seen = []
    for call in (torch.mul, lambda a, b: torch._foreach_mul([a, b], [b, b])[0]):
        out = call(leaf, other)
        out.grad_fn.register_hook(lambda given, _: seen.append([g is not None for g in given]))
        with enable(lambda gm: gm) if compiled else nullcontext():
            torch.autograd.grad(out.sum(), leaf)
    assert seen == [[True, False], [True, False, False, False]]


def test_views_made_before_their_base_required_grad_have_no_gradient(leaf):
    base = torch.ones(2, 1)
    view = base.squeeze()
    base.requires_grad = True
    assert torch.autograd.grad(leaf.sum(), [base, leaf, view], allow_unused=True)[::2] == (None, None)
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        torch.autograd.grad(leaf.sum(), [leaf, view])
    leaf.sum().backward(inputs=[leaf, view])
    assert leaf.grad.tolist() == [1.0] * 3


def test_backward_with_inputs_leaves_other_leaves_alone(leaf):
    other = torch.ones(3, requires_grad=True)
    (leaf * other).sum().backward(inputs=[leaf])
    assert leaf.grad is not None and other.grad is None


def test_a_freed_graph_says_so(leaf):
    y = (leaf * leaf).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_a_changed_saved_tensor_says_so(leaf):
    y = leaf * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*is at version 1; expected version 0"):
        z.sum().backward()


def test_reentrant_backward_to_any_depth(leaf):
    depth = 200

    @torch.enable_grad()
    def nest(n):
        x = torch.ones(1, requires_grad=True)
        y = x * 2
        if n:
            y.register_hook(lambda g: nest(n - 1) and None)
        y.backward()
        return x.grad.item()

    assert nest(depth) == 2.0


@pytest.mark.parametrize("where", ["tensor", "pre", "post", "accumulate"])
def test_an_exception_in_a_hook_leaves_the_engine_usable(leaf, where):
    def bad(*args):
        raise ValueError("from the hook")

    y = leaf * 2
    handle = {
        "tensor": lambda: y.register_hook(bad),
        "pre": lambda: y.grad_fn.register_prehook(bad),
        "post": lambda: y.grad_fn.register_hook(bad),
        "accumulate": lambda: leaf.register_post_accumulate_grad_hook(bad),
    }[where]()
    with pytest.raises(ValueError, match="from the hook"):
        y.sum().backward(retain_graph=True)
    handle.remove()
    leaf.grad = None
    assert torch.is_grad_enabled() and engine.current_graph_task_id() == -1
    (leaf * 2).sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0, 2.0]


def test_hooks_run_in_order(leaf):
    log = []
    y = leaf * 2
    y.grad_fn.register_hook(lambda inputs, outputs: log.append("post"))
    y.grad_fn.register_prehook(lambda grads: log.append("pre"))
    y.register_hook(lambda g: log.append("tensor"))
    leaf.register_hook(lambda g: log.append("leaf"))
    leaf.register_post_accumulate_grad_hook(lambda p: log.append("accumulated"))
    y.sum().backward()
    assert log == ["tensor", "pre", "post", "leaf", "accumulated"]


def test_callbacks_run_once_at_the_end(leaf):
    log = []
    y = leaf * 2
    y.register_hook(lambda g: engine.queue_callback(lambda: log.append("done")))
    leaf.register_post_accumulate_grad_hook(lambda p: log.append("accumulated"))
    y.sum().backward()
    assert log == ["accumulated", "done"]
    with pytest.raises(RuntimeError, match="only be installed during backward pass"):
        engine.queue_callback(lambda: None)


def test_deep_graphs_are_run_and_freed_without_recursion():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1
    alive = weakref.ref(y.grad_fn)
    y.backward()
    del y
    assert x.grad.item() == 1.0 and alive() is None


def test_graphs_are_freed_without_the_collector(leaf):
    gc.disable()
    try:
        y = leaf.exp() * 2
        v = y.view(3)
        v.mul_(2)
        alive = [weakref.ref(n) for n in (y.grad_fn, v.grad_fn)]
        y.sum().backward()
        del y, v
        assert [a() for a in alive] == [None, None]
    finally:
        gc.enable()


def test_threads_that_share_leaves_lose_no_gradient():
    weights = [torch.zeros(1000, requires_grad=True) for _ in range(3)]
    rounds, workers = 40, 8
    errors = []

    @torch.enable_grad()
    def inner(g):
        (torch.ones(2, requires_grad=True) * 3).sum().backward()

    def work():
        try:
            for _ in range(rounds):
                y = sum((w * 2).sum() for w in weights)
                y.register_hook(inner)
                y.backward()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not errors
    for w in weights:
        assert (w.grad == 2 * rounds * workers).all()


def test_memory_stays_flat_over_many_steps():
    w = torch.ones(50, requires_grad=True)

    def step():
        y = (w * w).sum()
        y.register_hook(lambda g: g * 1)
        (g,) = torch.autograd.grad(y, w, create_graph=True)
        (g * g).sum().backward()
        w.grad = None

    for _ in range(200):
        step()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(1500):
        step()
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 100_000


def test_batched_gradients_equal_a_loop(leaf):
    y = leaf.exp()
    rows = torch.eye(3)
    (batched,) = torch.autograd.grad(y, leaf, rows, retain_graph=True, is_grads_batched=True)
    looped = torch.stack([torch.autograd.grad(y, leaf, r, retain_graph=True)[0] for r in rows])
    np.testing.assert_allclose(batched.numpy(), looped.numpy())


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x: (x * 2).backward(), "grad can be implicitly created only for scalar outputs"),
        (lambda x: torch.ones(1).backward(), "element 0 of tensors does not require grad"),
        (lambda x: (x * 2).backward(torch.ones(2)), "Mismatch in shape: grad_output\\[0\\] has a shape of"),
        (
            lambda x: torch.autograd.grad((x * 2).sum(), torch.ones(1)),
            "One of the differentiated Tensors does not require grad",
        ),
        (
            lambda x: torch.autograd.grad(x.sum(), torch.ones(1, requires_grad=True)),
            "appears to not have been used in the graph",
        ),
        (lambda x: torch.autograd.grad(x.sum(), []), "cannot be empty"),
    ],
)
def test_bad_input(call, words, leaf):
    with pytest.raises(RuntimeError, match=words):
        call(leaf)
    assert leaf.grad is None


def test_leaves_that_receive_one_gradient_do_not_share_it():
    a, b = (torch.ones(3, requires_grad=True) for _ in range(2))
    ((a + b) * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert a.grad is not b.grad
    a.grad.add_(1)
    assert b.grad.tolist() == [1.0, 2.0, 3.0]


def test_a_gradient_that_nobody_else_holds_is_taken_over(leaf, monkeypatch):
    monkeypatch.setattr(accumulation, "copy_of", lambda g: pytest.fail("copied"))
    ((leaf * 2) * torch.ones(3)).sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0, 2.0]


def test_a_gradient_that_a_hook_keeps_is_copied(leaf):
    kept = []
    leaf.register_hook(lambda g: kept.append(g))
    ((leaf * 2) * torch.ones(3)).sum().backward()
    leaf.sum().backward()
    assert kept[0].tolist() == [2.0, 2.0, 2.0] and leaf.grad.tolist() == [3.0, 3.0, 3.0]


def test_a_gradient_that_is_a_view_of_what_nobody_else_holds_is_taken_over(monkeypatch):
    weight = torch.arange(6.0).reshape(2, 3).requires_grad_()
    monkeypatch.setattr(accumulation, "copy_of", lambda g, variable: pytest.fail("copied"))
    torch.nn.functional.linear(torch.ones(4, 3), weight, torch.zeros(2)).sum().backward()
    assert weight.grad.tolist() == [[4.0] * 3] * 2 and not weight.grad._is_view() and weight.grad.is_contiguous()


def test_a_gradient_that_is_a_view_of_what_another_holds_is_copied():
    weight = torch.arange(6.0).reshape(2, 3).requires_grad_()
    turned = weight.t()
    turned.retain_grad()
    (turned * 1).backward(torch.ones(3, 2))
    weight.grad.add_(1)
    assert turned.grad.tolist() == [[1.0, 1.0]] * 3


def test_a_gradient_that_is_a_part_of_a_larger_one_is_copied():
    whole = torch.ones(2, 3, requires_grad=True)
    first, second = (torch.ones(3, requires_grad=True) for _ in range(2))
    (torch.stack([first, second]) * whole * 1).sum().backward()
    assert first.grad.untyped_storage().nbytes() == 12 and second.grad.untyped_storage().nbytes() == 12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
def test_many_gradients_add_up_at_one_node(dtype):
    x = torch.tensor([1.0, 2.0, 3.0], dtype=dtype, requires_grad=True)
    y = x * 2
    weights = torch.arange(5.0).to(dtype)
    sum((y * w).sum() for w in weights).backward(torch.ones((), dtype=dtype))
    assert x.grad.dtype is dtype and x.grad.tolist() == [20, 20, 20]


def test_gradients_that_arrive_are_not_written_into():
    x = torch.ones(3, requires_grad=True)
    seen = []
    parts = [x * 1 for _ in range(4)]
    for p in parts:
        p.register_hook(lambda g: seen.append(g))
    sum(p.sum() * i for i, p in enumerate(parts)).backward()
    assert sorted(g[0].item() for g in seen) == [0.0, 1.0, 2.0, 3.0] and x.grad.tolist() == [6.0, 6.0, 6.0]


def test_sums_at_many_outputs_of_one_node():
    x = torch.arange(80.0, requires_grad=True)
    total = sum(part * i * n for i, part in enumerate(x.unbind(0)) for n in (1.0, 2.0, 3.0))
    total.backward()
    assert x.grad.tolist() == [6.0 * i for i in range(80)]


def test_sums_of_broadcast_gradients_and_of_large_ones():
    b = torch.ones(1, requires_grad=True)
    n = 1 << 18
    sum((b * torch.full((4,), float(i))).sum() for i in range(4)).backward()
    x = torch.ones(n, requires_grad=True)
    y = x * 1
    sum(y.sum() * i for i in range(4)).backward()
    assert b.grad.tolist() == [24.0] and x.grad.shape == (n,) and (x.grad == 6).all().item()


def test_sums_are_recorded_when_the_graph_is_wanted():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * x
    (g,) = torch.autograd.grad((y + y * y + y * 3).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.tolist() == [4 * 2.0**3 + 8 * 2.0, 4 * 3.0**3 + 8 * 3.0] and h.tolist() == [12 * 4.0 + 8, 12 * 9.0 + 8]


def test_a_gradient_that_does_not_fit_says_so():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return torch.ones(5)

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="returned an invalid gradient at index 0 - got .*5.* but expected shape"):
        Wrong.apply(x * 1).sum().backward()


def test_a_mode_hears_of_the_sums():
    from pullback.ops.system.overrides import TorchDispatchMode

    class Listen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    y = torch.ones(3, requires_grad=True) * 1
    total = (y * 2 + y * 3 + y * 4).sum()
    with Listen():
        total.backward()
    assert sum("add" in n for n in names) == 2


def test_a_leaf_detached_in_place_keeps_its_gradient_and_gets_no_more():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.sum().backward()
    z = x * 3
    x.detach_()
    z.sum().backward()
    assert not x.requires_grad and x.grad.tolist() == [2, 2]


def test_a_view_made_without_grad_takes_hooks():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        view = x[:1]
    view.register_hook(lambda g: g)
    assert view.is_leaf and x[:1].grad_fn is not None


@pytest.mark.parametrize("use", [lambda p: p * 2, lambda p: p.contiguous(), lambda p: p.permute(0, 2, 3, 1) + 1])
def test_a_gradient_lies_as_its_leaf_does(use):
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last).requires_grad_()
    use(x).sum().backward()
    assert x.grad.stride() == x.stride()
    part = torch.randn(4, 6)[:, ::2].requires_grad_()
    (part * 2).sum().backward()
    assert part.grad.is_contiguous()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("run_inputs", [False, True])
def test_the_nodes_that_lead_to_inputs_are_those_from_which_one_can_be_reached(seed: int, run_inputs: bool) -> None:
    draw = random.Random(seed)
    values = [torch.ones(1, requires_grad=True) for _ in range(3)]
    for _ in range(15):
        values.append(draw.choice(values) * draw.choice(values))
    roots, inputs = ([edge_of(v) for v in draw.sample(values, n)] for n in (2, 4))

    def reach(node) -> set:
        """All nodes that gradients of one go to, without itself."""
        below = {e[0] for e in node.edges if e is not None}
        return below.union(*map(reach, below))

    targets, there = {e[0] for e in inputs}, {e[0] for e in roots}
    expected = {n: bool(targets & reach(n)) for n in there.union(*map(reach, there))}
    expected = {n: runs or run_inputs for n, runs in expected.items() if runs or n in targets}
    assert engine.needed_for(roots, inputs, run_inputs) == expected


def test_a_result_from_which_no_input_can_be_reached_keeps_its_graph(leaf):
    other = torch.ones(3, requires_grad=True)
    apart = other * other
    (found,) = torch.autograd.grad([(leaf * leaf).sum(), apart.sum()], [leaf])
    assert found.tolist() == [2.0, 4.0, 6.0]
    apart.sum().backward()  # what it saved is still there
    assert other.grad.tolist() == [2.0, 2.0, 2.0]
