"""Hooks and custom functions in compiled functions: never an old closure, never a lost effect."""

from __future__ import annotations

import contextlib
import functools
import gc
import weakref

import pytest

import pullback as torch
from pullback.backward.switch import enable
from pullback.capture.front.explain import explain

BACKENDS = ["eager", "aot_eager", "inductor", "compiled autograd"]


class Box:
    def __init__(self, v):
        self.v = v


def ones():
    return torch.ones(2, requires_grad=True)


def hooked_by(make):
    """Three steps of a function that registers the hook `make` gives; the state it reads changes between them."""

    def steps(compiled):
        f = compiled(make)
        out = []
        for v in (1.0, 5.0, 7.0):
            x = ones()
            state = [Box(v), [v], v, torch.full((2,), v)]
            f(x, *state).sum().backward()
            out.append(x.grad.tolist())
        return out

    steps.__name__ = make.__name__
    return steps


@hooked_by
def attribute(x, box, items, number, t):
    y = x * 2
    y.register_hook(lambda g: g + box.v)
    return y * 3


@hooked_by
def item(x, box, items, number, t):
    y = x * 2
    y.register_hook(lambda g: g + items[0])
    return y * 3


@hooked_by
def local_number(x, box, items, number, t):
    k = number * 2
    y = x * 2
    y.register_hook(lambda g: g + k)
    return y * 3


@hooked_by
def default(x, box, items, number, t):
    y = x * 2
    y.register_hook(lambda g, k=number: g + k)
    return y * 3


@hooked_by
def local_tensor(x, box, items, number, t):
    k = t * 2
    y = x * 2
    y.register_hook(lambda g: g * k)
    return y * 3


@hooked_by
def partial(x, box, items, number, t):
    y = x * 2
    y.register_hook(functools.partial(lambda n, g: g + n, number))
    return y * 3


@hooked_by
def of_the_argument(x, box, items, number, t):
    x.register_hook(lambda g: g * 5)
    return x * 3


def changed_after_the_forward(compiled):
    box, out = Box(1.0), []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: g + box.v)
        return y * 3

    f = compiled(f)
    for v in (1.0, 5.0, 7.0):
        x = ones()
        result = f(x)
        box.v = v
        result.sum().backward()
        out.append(x.grad.tolist())
    return out


def appends(compiled):
    log = []

    def f(x, log):
        y = x * 2
        y.register_hook(lambda g: log.append(1))
        return y * 3

    f = compiled(f)
    for _ in range(3):
        f(ones(), log).sum().backward()
    return log


def appends_in_a_step(compiled):
    log, out, p = [], [], ones()

    def f(x):
        y = x * p
        y.register_hook(lambda g: log.append(1))
        y.sum().backward()
        return p.grad

    f = compiled(f)
    for v in (1.0, 5.0, 7.0):
        p.grad = None
        out.append(f(torch.full((2,), v)).tolist())
    return log, out


class Keeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, log):
        ctx.log = log
        log.append("forward")
        return x * 2

    @staticmethod
    def backward(ctx, g):
        ctx.log.append("backward")
        return g * 2, None


class Counts(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        Counts.calls += 1
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


FACTOR = 2.0


class ReadsGlobal(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * FACTOR

    @staticmethod
    def backward(ctx, g):
        return g * FACTOR


def list_given_to_a_custom_function(compiled):
    log = []
    f = compiled(lambda x, log: Keeps.apply(x, log) * 3)
    for _ in range(3):
        f(ones(), log).sum().backward()
    return log


def class_attribute_of_a_custom_function(compiled):
    Counts.calls = 0
    f = compiled(lambda x: Counts.apply(x) * 3)
    for _ in range(3):
        f(ones()).sum().backward()
    return Counts.calls


def global_of_a_custom_function(compiled):
    global FACTOR
    f, out = compiled(lambda x: ReadsGlobal.apply(x) * 3), []
    for FACTOR in (2.0, 3.0, 4.0):  # noqa: B007 - the function reads it
        x = ones()
        f(x).sum().backward()
        out.append(x.grad.tolist())
    return out


def post_accumulate(compiled):
    log = []

    def f(x):
        x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.tolist()))
        return x * 3

    f = compiled(f)
    for _ in range(3):
        f(ones()).sum().backward()
    return log


def requires_grad_assigned(compiled):
    def f(x):
        x.requires_grad = True
        return x * 3

    f, out = compiled(f), []
    for _ in range(3):
        x = torch.ones(2)
        f(x).sum().backward()
        out.append((x.requires_grad, x.grad.tolist()))
    return out


def retained(compiled):
    def f(x):
        y = x * 2
        x.retain_grad()
        y.retain_grad()
        return y, y * 3

    f, out = compiled(f), []
    for _ in range(3):
        x = ones() * 1
        y, z = f(x)
        z.sum().backward()
        out.append((x.grad.tolist(), y.grad.tolist()))
    return out


def several_gradients(compiled):
    log = []

    def f(x):
        y, z = x * 2, x * 3
        torch.autograd.graph.register_multi_grad_hook((y, z), lambda gs: log.append(len(gs)))
        return y * z

    f = compiled(f)
    for _ in range(3):
        f(ones()).sum().backward()
    return log


def of_a_node(compiled):
    log = []

    def f(x):
        y = x * 2
        y.grad_fn.register_hook(lambda inputs, outputs: log.append(len(outputs)))
        return y * 3

    f = compiled(f)
    for _ in range(3):
        f(ones()).sum().backward()
    return log


def packing(compiled):
    def f(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 2):
            y = x * x
        return y * 3

    f, out = compiled(f), []
    for _ in range(2):
        x = ones()
        f(x).sum().backward()
        out.append(x.grad.tolist())
    return out


PROGRAMS = [
    attribute, item, local_number, default, local_tensor, partial, of_the_argument, changed_after_the_forward, appends,
    appends_in_a_step, list_given_to_a_custom_function, class_attribute_of_a_custom_function, global_of_a_custom_function,
    post_accumulate, requires_grad_assigned, retained, several_gradients, of_a_node, packing,
]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_eager(program, backend):
    want = program(lambda f: f)
    if backend == "compiled autograd":
        with enable(lambda gm: torch.compile(gm, backend="aot_eager")):
            have = program(lambda f: torch.compile(f, backend="aot_eager"))
    else:
        have = program(lambda f: torch.compile(f, backend=backend))
    assert have == want


def test_a_hook_that_only_computes_stays_in_the_graph():
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 3)
        return y.sin()

    assert explain(f)(ones()).graph_count == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_hooks_of_leaves_are_registered_after_the_whole_graph(backend):
    log = []

    def f(x, box):
        handle = x.register_hook(lambda g: g * box.v)
        x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.tolist()))
        return x * 3, handle

    f = torch.compile(f, backend=backend, fullgraph=True)
    for v in (1.0, 5.0):
        x, box = ones(), Box(v)
        y, handle = f(x, box)
        y.sum().backward(retain_graph=True)
        assert x.grad.tolist() == [3 * v] * 2 and log[-1] == [3 * v] * 2
        handle.remove()
        y.sum().backward()
        assert x.grad.tolist() == [3 * v + 3] * 2


def test_hooks_of_leaves_are_there_when_the_program_differentiates():
    def f(x):
        x.register_hook(lambda g: g * 5)
        (g,) = torch.autograd.grad((x * 2).sum(), x)
        (x * 3).sum().backward()
        return g

    for backend in ("eager", "aot_eager"):
        x = ones()
        assert torch.compile(f, backend=backend)(x).tolist() == [10.0] * 2 and x.grad.tolist() == [15.0] * 2


def test_the_reason_is_told():
    log = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: log.append(g))
        return y.sin()

    (found,) = explain(f)(ones()).break_reasons
    assert found.reason == "it registers a hook that reaches 'log', a list"


def test_a_custom_function_may_fill_its_own_lists():
    class Sums(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            parts = []
            for k in range(3):
                parts.append(x * k)
            ctx.count = len(parts)
            return sum(parts)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.count

    assert explain(lambda x: Sums.apply(x) * 2)(ones()).graph_count == 1


def scaled(grad, *, k):
    return grad * k


def with_default(k):
    def hook(g, k=k):
        return g * k

    return hook


def with_keyword_default(k):
    def hook(g, *, k=k):
        return g * k

    return hook


def with_attribute(k):
    def hook(g):
        return g * hook.k

    hook.k = k
    return hook


def around_another(k):
    inner = with_default(k)
    return lambda g: inner(g)


REPLACED = [
    with_default, with_keyword_default, with_attribute, around_another, lambda k: lambda g: g * k,
    lambda k: functools.partial(scaled, k=k), lambda k: functools.partial(lambda k, g: g * k, k),
    lambda k: functools.partial(functools.partial(scaled), k=k), lambda k: functools.partial(with_default(k)),
]  # fmt: skip
current = None


class Calls(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return current(g)


def hooked(x):
    y = x.mul(2)
    y.register_hook(current)
    return y.mul(3)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [hooked, lambda x: Calls.apply(x * 2) * 3])
@pytest.mark.parametrize("make", REPLACED)
def test_a_hook_of_the_same_code_that_carries_another_value(make, program, backend):
    global current
    run = torch.compile(program, backend=backend)
    for k in (1, 2, 2, 3, 1):
        x, current = torch.ones(2, requires_grad=True), make(k)
        run(x).sum().backward()
        assert x.grad.tolist() == [6.0 * k] * 2


factor = 1.5
LOG = []


def hooked_after_use(x):
    y = x.tanh()
    z = y * 2
    y.register_hook(lambda g: g * factor)
    return z + 1


def hooked_after_a_call(x):
    def make(x):
        return x.tanh() * 3

    y = make(x)
    z = (y * 2).exp()
    y.register_hook(lambda g: (LOG.append(1), g * 0.5)[1])
    return z + y


def hooked_after_a_break(x):
    y = x.tanh()
    z = y * 2
    print(end="")
    y.register_hook(lambda g: g * factor)
    return z + 1


def hooked_in_a_loop(x):
    for k in range(2):
        y = x.sin() * (k + 1)
        x = y + 1
        y.register_hook(lambda g: g * factor)
    return x


def hook_it(y):
    y.register_hook(lambda g: g * factor)


def hooked_by_a_helper(x):
    y = x.tanh()
    z = y * 2
    print(end="")
    hook_it(y)
    return z + 1


def hooked_in_a_list(x):
    kept = [x.tanh()]
    z = kept[0] * 2
    print(end="")
    hook_it(kept[0])
    return z + 1


def two(x):
    print(end="")
    y = x.tanh()
    return y, y * 2


def hooked_by_the_caller(x):
    y, z = two(x)
    hook_it(y)
    return z + 1


class Hooker:
    def on(self, y):
        y.register_hook(lambda g: g * factor)


def hooked_by_a_method(x):
    y = x.tanh()
    z = y * 2
    print(end="")
    Hooker().on(y)
    return z + 1


def hooked_by_a_lambda_that_calls_a_helper(x):
    y = x.tanh()
    z = y * 2
    print(end="")
    (lambda t: hook_it(t))(y)
    return z + 1


HELPERS = {"hooks": [None, hook_it]}


def hooked_by_a_helper_in_a_container(x):
    y = x.tanh()
    z = y * 2
    print(end="")
    HELPERS["hooks"][1](y)
    return z + 1


def hooked_by_a_helper_in_a_local_tuple(x):
    helpers = (hook_it, hook_it)
    y = x.tanh()
    z = y * 2
    print(end="")
    helpers[0](y)
    return z + 1


def call_with(y, helper=hook_it):
    helper(y)


def hooked_by_a_default(x):
    y = x.tanh()
    z = y * 2
    print(end="")
    call_with(y)
    return z + 1


class Holder:
    def __init__(self):
        self.table = [hook_it]


HOLDER = Holder()


def hooked_by_what_an_object_holds(x):
    y = x.tanh()
    z = y * 2
    print(end="")
    HOLDER.table[0](y)
    return z + 1


def by_name(y):
    getattr(y, "register_hook")(lambda g: g * factor)  # noqa: B009


def hooked_by_name(x):
    y = x.tanh()
    z = y * 2
    print(end="")
    by_name(y)
    return z + 1


@functools.lru_cache(None)
def cached_helper():
    return hook_it


def hooked_by_what_a_call_gives(x):
    y = x.tanh()
    z = y * 2
    print(end="")
    cached_helper()(y)
    return z + 1


def decorated(f):
    @functools.wraps(f)
    def inner(*args):
        return f(*args)

    return inner


decorated_helper = decorated(decorated(hook_it))


def hooked_by_a_decorated_helper(x):
    y = x.tanh()
    z = y * 2
    print(end="")
    decorated_helper(y)
    return z + 1


def kept_after_use(x):
    y = x.tanh()
    z = y * 2
    y.retain_grad()
    LOG.append(y)
    return z + 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f",
    [
        hooked_after_use,
        hooked_after_a_call,
        hooked_after_a_break,
        hooked_in_a_loop,
        kept_after_use,
        hooked_by_a_helper,
        hooked_in_a_list,
        hooked_by_the_caller,
        hooked_by_a_method,
        hooked_by_a_lambda_that_calls_a_helper,
        hooked_by_a_helper_in_a_container,
        hooked_by_a_helper_in_a_local_tuple,
        hooked_by_a_default,
        hooked_by_what_an_object_holds,
        hooked_by_name,
        hooked_by_what_a_call_gives,
        hooked_by_a_decorated_helper,
    ],  # fmt: skip
)
def test_a_hook_on_a_tensor_that_was_used_before(f, backend):
    def run(f):
        LOG.clear()
        x = torch.linspace(0.1, 1, 3).requires_grad_()
        f(x).sum().backward()
        kept = [one.grad.tolist() if isinstance(one, torch.Tensor) else one for one in LOG]
        return x.grad.tolist(), kept

    context = enable(torch.compile) if backend == "compiled autograd" else contextlib.nullcontext()
    compiled = torch.compile(f, backend="aot_eager" if backend == "compiled autograd" else backend)
    want = run(f)
    for _ in range(2):
        with context:
            found = run(compiled)
        assert torch.allclose(torch.tensor(found[0]), torch.tensor(want[0])) and found[1] == want[1]


@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_a_hook_that_is_removed_before_the_graph_ends(backend):
    def f(x, y):
        removed = x.register_hook(lambda g: g * 2)
        z = y * y
        removed.remove()
        removed.remove()
        return x, z, removed, x.register_hook(lambda g: g * 3)

    run = torch.compile(f, backend=backend, fullgraph=True)
    for _ in range(2):
        x = ones()
        out, _, removed, kept = run(x, torch.ones(2))
        out.sum().backward()
        assert x.grad.tolist() == [3.0, 3.0] and type(removed) is type(kept)
        kept.remove()
        out.sum().backward()
        assert x.grad.tolist() == [4.0, 4.0]


def test_arguments_die_with_their_call():
    @torch.compile(backend="eager")
    def f(x):
        print(end="")
        return x * 2

    gc.disable()
    try:
        x = torch.ones(2)
        died = weakref.ref(x)
        f(x)
        del x
        assert died() is None
    finally:
        gc.enable()
