"""Backwards through compiled autograd: what is made once, what falls back to the engine, what survives errors and threads."""

import gc
import threading
import warnings
import weakref
from contextlib import nullcontext

import pytest

import pullback as torch
from pullback.autograd.engine import current_graph_task_id
from pullback.backward.compiled import enable, say_uncompiled


class Count:
    """A compiler that runs graphs as they are, and counts them."""

    def __init__(self, compile=lambda gm: gm):
        self.compile, self.graphs = compile, 0

    def __call__(self, gm):
        self.graphs += 1
        return self.compile(gm)


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def model(x, depth=3):
    for _ in range(depth):
        x = x.sin() * x
    return x.sum()


def test_a_graph_is_made_once_per_structure(x):
    count = Count()
    with enable(count):
        for _ in range(3):
            x.grad = None
            model(x).backward()
        assert count.graphs == 1
        model(x, 4).backward()
        assert count.graphs == 2


def test_steps_with_other_sizes_and_hooks_use_the_same_graph():
    count = Count()
    seen = []
    with enable(count):
        for n in (3, 5, 7):
            t = torch.ones(n, requires_grad=True)
            y = t.sin()
            y.register_hook(lambda g, n=n: seen.append(n))
            y.sum().backward()
            torch.testing.assert_close(t.grad, t.detach().cos())
    assert count.graphs == 1 and seen == [3, 5, 7]


def test_a_kept_graph_runs_again_and_a_freed_one_says_so(x):
    with enable(Count()):
        y = model(x)
        y.backward(retain_graph=True)
        once = x.grad.clone()
        y.backward()
        assert x.grad.equal(2 * once)
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()


def test_a_written_saved_tensor_says_so(x):
    y = x.sin()
    z = y.exp()
    z.mul_(2)
    with enable(Count()), pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


class Unread(torch.autograd.Function):
    """Saves what its backward never looks at."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_a_backward_that_is_run_uncompiled_says_so_once(x):
    say_uncompiled.cache_clear()
    count = Count()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):
            y = x * 1
            z = Unread.apply(y)
            y.mul_(2)
            x.grad = None
            with enable(count):
                z.sum().backward()
            assert torch.equal(x.grad, torch.full_like(x, 2.0))
    assert len(seen) == 1 and "uncompiled: one of the variables" in str(seen[0].message) and count.graphs == 0


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def _compiled_autograd_key(ctx):
        raise RuntimeError("a bug")


def test_any_other_error_while_a_backward_is_taken_in_is_an_error(x):
    z = Broken.apply(x).sum()
    with enable(Count()), pytest.raises(RuntimeError, match="a bug"):
        z.backward()
    x.grad = None
    z.backward()
    assert torch.equal(x.grad, torch.full_like(x, 2.0))


def test_an_error_in_a_hook_leaves_everything_usable(x):
    count = Count()
    fails = [True]

    def hook(g):
        if fails:
            raise ValueError("mine")

    def step():
        y = x.sin()
        y.register_hook(hook)
        (y * 2).sum().backward()

    with enable(count):
        with pytest.raises(ValueError, match="mine"):
            step()
        assert torch.is_grad_enabled() and x.grad is None
        assert current_graph_task_id() == -1
        fails.clear()
        step()
    torch.testing.assert_close(x.grad, 2 * x.detach().cos())
    assert count.graphs == 1


def test_an_error_in_the_compiler_leaves_the_graph_unfreed(x):
    def broken(gm):
        raise ValueError("no compiler")

    y = model(x)
    with enable(broken), pytest.raises(ValueError, match="no compiler"):
        y.backward()
    y.backward()
    assert x.grad is not None


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("keep", [False, True])
def test_nothing_is_kept_alive_after_the_backward(x, hooked, keep):
    with enable(Count(lambda gm: torch.compile(gm, backend="eager") if hooked else gm)):
        gc.disable()
        try:
            y = x.sin()
            z = y.exp()
            hook = (lambda g: g * 1) if hooked else None
            if hooked:
                z.register_hook(hook)
            loss = z.sum()
            refs = [weakref.ref(t) for t in (y, z, loss, y.grad_fn, *([hook] if hooked else []))]
            loss.backward(retain_graph=keep)
            del y, z, loss, hook
            assert [r() for r in refs] == [None] * len(refs)
        finally:
            gc.enable()


def test_anomaly_mode_runs_in_the_engine(x):
    count = Count()
    with enable(count), torch.autograd.set_detect_anomaly(True):
        model(x).backward()
    assert count.graphs == 0 and x.grad is not None


@pytest.mark.parametrize("around", [nullcontext, lambda: enable(Count())], ids=["engine", "graph"])
def test_a_backward_inside_a_backward(around, x):
    class Again(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t, depth):
            ctx.depth = depth
            ctx.save_for_backward(t)
            return t * 2

        @staticmethod
        def backward(ctx, g):
            if ctx.depth:
                with torch.enable_grad():
                    t = ctx.saved_tensors[0].detach().requires_grad_()
                    Again.apply(t, ctx.depth - 1).sum().backward()
                return g + t.grad, None
            return g * 2, None

    with around():
        Again.apply(x, 60).sum().backward()
    assert x.grad.tolist() == [62.0] * 3


def test_gradients_of_gradients(x):
    with enable(Count(lambda gm: torch.compile(gm, backend="eager"))):
        (g,) = torch.autograd.grad(model(x), [x], create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), [x])
    (g,) = torch.autograd.grad(model(x), [x], create_graph=True)
    assert h.equal(torch.autograd.grad(g.sum(), [x])[0])


def test_each_thread_has_its_own_switch_and_shares_graphs(x):
    count = Count()
    results = []

    def work():
        t = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        model(t).backward()
        results.append((count.graphs, t.grad))

    with enable(count):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        assert results[0][0] == 0  # off there
        threads = [threading.Thread(target=lambda: enable(count)(work)()) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    model(x).backward()
    assert len(results) == 5 and all(g.equal(x.grad) for _, g in results)


def test_a_backward_that_breaks_keeps_its_inputs():
    """Lists that a graph may empty are read again by what follows a break (sparse tensors are not captured)."""
    grads = []
    for around in (nullcontext(), enable(torch.compile(backend="eager"))):
        x = torch.tensor([[0.0, 2.0], [3.0, 0.0]], requires_grad=True)
        with around:
            (x.to_sparse() * 2).to_dense().square().sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


def test_a_compiled_backward_is_one_task() -> None:
    seen: list[int] = []
    x = torch.randn(2, requires_grad=True)
    y = x.sin()
    y.register_hook(lambda g: seen.append(current_graph_task_id()))
    for compiled in (False, True, True):
        with enable(lambda gm: gm) if compiled else nullcontext():
            y.sum().backward(retain_graph=True)
    assert seen[1] - seen[0] == seen[2] - seen[1] == 1
