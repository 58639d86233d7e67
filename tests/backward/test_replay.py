"""The steps of a compiled backward as the engine takes them: hooks, gradients that leaves take over, what is freed when."""

import weakref
from contextlib import nullcontext

import pytest

import pullback as torch
from pullback.autograd.engine import current_node, execution_order, queue_callback, will_execute
from pullback.backward import replay
from pullback.backward.compiled import enable

BOTH = pytest.mark.parametrize(
    "around",
    [nullcontext, lambda: enable(lambda gm: gm), lambda: enable(lambda gm: torch.compile(gm, backend="eager"))],
    ids=["engine", "graph", "compiled"],
)


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


class Same(torch.autograd.Function):
    """Gives the same gradient to both inputs, and says where it is."""

    pointer = None

    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, g):
        Same.pointer = g.data_ptr()
        return g, g


@BOTH
def test_a_gradient_that_nobody_else_holds_becomes_the_leafs_and_the_other_a_copy(around):
    with around():
        for _ in range(2):  # what a capture leaves behind may hold the gradient of the first
            a, b = torch.randn(5, 6, requires_grad=True), torch.randn(5, 6, requires_grad=True)
            (Same.apply(a, b) * 2).sum().backward()
    assert a.grad.data_ptr() != b.grad.data_ptr()
    assert Same.pointer in (a.grad.data_ptr(), b.grad.data_ptr())


@BOTH
def test_the_users_own_gradient_is_never_taken_over(around, x):
    g = torch.ones(3)
    with around():
        x.backward(g)
    assert x.grad is not g and x.grad.data_ptr() != g.data_ptr()


@BOTH
def test_hooks_of_a_sink_run_in_order_on_the_gradient_itself(around, x):
    sink = x.view_as(x).grad_fn.next_functions[0][0]
    x.register_hook(lambda g: g - 2)
    sink.register_prehook(lambda gs: (gs[0] / 5,))
    x.register_post_accumulate_grad_hook(lambda p: (p.grad.add_(0.5), None)[1])
    sink.register_hook(lambda result, gs: setattr(x, "grad", gs[0] * 10))
    with around():
        x.sum().backward()
    torch.testing.assert_close(x.grad, torch.full((3,), 3.0))


@BOTH
def test_a_removed_hook_does_not_run(around, x):
    y = x * 2
    calls = []
    handle = y.register_hook(lambda g: calls.append("y"))
    z = y * 3
    z.register_hook(lambda g: handle.remove())
    with around():
        z.sum().backward()
    assert calls == []


@BOTH
def test_hooks_removed_by_the_first_of_them_still_run(around, x):
    y = x * 2
    calls = []
    y.register_hook(lambda g: [h.remove() for h in handles] and None)
    handles = [y.register_hook(lambda g: calls.append("second"))]
    with around():
        y.sum().backward()
    assert calls == ["second"]


@BOTH
def test_a_post_hook_that_comes_while_its_node_unpacks_runs(around, x):
    def unpack(t):
        current_node().register_hook(lambda result, gs: tuple(m / 2 for m in result) if gs == (None,) else None)
        return t

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.sin()
    with around():
        y.sum().backward()
    torch.testing.assert_close(x.grad, x.detach().cos() / 2)


def test_a_hook_that_comes_too_late_for_the_graph_is_an_error_not_silence(x):
    y = x * 2
    z = y.sin()
    z.register_hook(lambda g: y.register_hook(lambda g: g * 0) and None)
    with (
        enable(lambda gm: gm),
        pytest.raises(RuntimeError, match="MulBackward0 while a compiled backward was on its way"),
    ):
        z.sum().backward()


def test_a_hook_for_the_next_backward_may_be_registered_behind(x):
    y = x * 2
    z = y.sin()
    y.register_hook(lambda g: z.register_hook(lambda g: None) and None)
    with enable(lambda gm: gm):
        z.sum().backward()
    assert x.grad is not None


@BOTH
def test_nodes_that_ran_are_freed_when_a_hook_looks_and_those_to_come_are_not(around, x):
    y = x.sin()
    z = y.cos()
    w = z.exp()
    seen = []

    def look(g):
        for t in (w, z, y):
            try:
                seen.append(t.grad_fn._saved_self is not None if t is not w else t.grad_fn._saved_result is not None)
            except RuntimeError:
                seen.append("freed")

    z.register_hook(look)
    with around():
        w.sum().backward()
    assert seen == ["freed", True, True]


@BOTH
def test_the_questions_that_programs_ask_of_a_running_backward(around, x):
    other = torch.ones(3, requires_grad=True)
    y = x * other
    z = y.sin()
    sink = other.view_as(other).grad_fn.next_functions[0][0]
    answers = []

    def ask(g):
        answers.append([will_execute(n) for n in (y.grad_fn, z.grad_fn, sink)])
        answers.append([n.name() for n in execution_order()])
        answers.append(current_node() is y.grad_fn)

    y.register_hook(ask)
    with around(), torch.autograd.set_multithreading_enabled(False):
        z.sum().backward(inputs=[x], retain_graph=True)
    assert answers == [[True, True, False], ["SumBackward0", "SinBackward0", "MulBackward0", sink.name()], True]


@BOTH
def test_callbacks_run_when_the_backward_is_done(around, x):
    order = []
    y = x * 2
    y.register_hook(lambda g: queue_callback(lambda: order.append(x.grad is not None)))
    with around():
        y.sum().backward()
    assert order == [True]


@BOTH
@pytest.mark.parametrize(
    "result, words", [(torch.ones(4), "has changed the size"), ("no", "expected Variable, but hook returned")]
)
def test_what_a_hook_may_not_return(around, result, words, x):
    y = x * 2
    y.register_hook(lambda g: result)
    with around(), pytest.raises((RuntimeError, TypeError), match=words):
        y.sum().backward()


def test_saved_tensors_die_at_their_last_use_while_the_backward_runs(x):
    alive = []

    class Watch(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t.clone()

        @staticmethod
        def backward(ctx, g):
            alive.append(ref() is not None)
            return g

    y = Watch.apply(x).sin()
    saved = y * 2
    ref = weakref.ref(saved)
    out = saved.sin().sum()
    del saved
    with enable(lambda gm: gm):
        out.backward()
    assert alive == [False]


def test_a_gradient_goes_to_its_leaf_once(x):
    with pytest.raises(RuntimeError, match="runs once"):
        replay.accumulate_grad(x, [], 0, 0)
