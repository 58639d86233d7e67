"""Hooks and custom functions under compiled autograd: what they read is read at every run, what they do is done each time.

Each row of `READS` makes a hook and a function that changes what the hook reads; each row of `EFFECTS` a hook and a function
that tells what it has done so far. Five backwards of a compiled one must agree with the engine's.
"""

import contextlib
import functools
import math
import random
import types

import pytest

import pullback as torch
from pullback.backward.compiled import enable, reset
from pullback.backward.custom import CHANGES_OFTEN, users_python
from pullback.capture.front.config import config

number = 1.0
numbers = [1.0]
log: list = []


@pytest.fixture(autouse=True)
def fresh():
    reset()
    torch.compiler.reset()
    torch.manual_seed(0)
    random.seed(0)
    threads, floor = torch.get_num_threads(), math.floor
    yield
    torch.set_num_threads(threads)
    math.floor = floor
    reset()


class Held:
    """An object with a value, as users have them."""

    shared = 1.0

    def __init__(self, v=1.0):
        self.v = v

    def __call__(self, g):
        return g + self.v

    def hook(self, g):
        return g + self.v

    def of_class(self, g):
        return g + self.shared

    @property
    def doubled(self):
        return self.v * 2


class Slotted:
    __slots__ = ("v",)


def attribute():
    box = Held()
    return lambda g: g + box.v, lambda v: setattr(box, "v", v)


def slot():
    box = Slotted()
    return lambda g: g + box.v, lambda v: setattr(box, "v", v)


def deep_attribute():
    box = inner = Held()
    for _ in range(6):
        inner.next = inner = Held()
    return lambda g: g + box.next.next.next.next.next.next.v, lambda v: setattr(inner, "v", v)


def list_item():
    values = [0.0] * 500
    return lambda g: g + values[-1], lambda v: values.__setitem__(-1, v)


def nested_item():
    values = {"a": [{"b": 1.0}]}
    return lambda g: g + values["a"][0]["b"], lambda v: values["a"][0].__setitem__("b", v)


def item_of_tuple():
    values = ([1.0],)
    return lambda g: g + values[0][0], lambda v: values[0].__setitem__(0, v)


def local():
    value = 1.0

    def set(v):
        nonlocal value
        value = v

    return lambda g: g + value, set


def default():
    values = [1.0]
    return lambda g, values=values: g + values[0], lambda v: values.__setitem__(0, v)


def keyword_default():
    def hook(g, *, box=Held()):  # noqa: B008 - it is what the test is about
        return g + box.v

    return hook, lambda v: setattr(hook.__kwdefaults__["box"], "v", v)


def replaced_default():
    def hook(g, v=1.0):
        return g + v

    return hook, lambda v: setattr(hook, "__defaults__", (v,))


def replaced_code():
    def hook(g):
        return g + 1.0

    def set(v):
        result = {}
        exec(f"def hook(g): return g + {v!r}", result)
        hook.__code__ = result["hook"].__code__

    return hook, set


def partial():
    values = [1.0]
    return functools.partial(lambda values, g: g + values[0], values), lambda v: values.__setitem__(0, v)


def partial_keyword():
    box = Held()
    return functools.partial(lambda g, box: g + box.v, box=box), lambda v: setattr(box, "v", v)


def global_number():
    def set(v):
        global number
        number = v

    return lambda g: g + number, set


def global_item():
    return lambda g: g + numbers[0], lambda v: numbers.__setitem__(0, v)


def callable_object():
    box = Held()
    return box, lambda v: setattr(box, "v", v)


def method():
    box = Held()
    return box.hook, lambda v: setattr(box, "v", v)


def class_attribute():
    return Held().of_class, lambda v: setattr(Held, "shared", v)


def property_of_object():
    box = Held()
    return lambda g: g + box.doubled, lambda v: setattr(box, "v", v)


def helper():
    box = Held()

    def value():
        return box.v

    return lambda g: g + value(), lambda v: setattr(box, "v", v)


def replaced_helper():
    value = 0.0
    help = float

    def set(v):
        nonlocal help, value
        value, help = v, lambda: value

    return lambda g: g + help(), set


def function_attribute():
    def hook(g):
        return g + hook.v

    return hook, lambda v: setattr(hook, "v", v)


def wrapper():
    values = [1.0]

    def decorate(f):
        @functools.wraps(f)
        def wrapped(g):
            return f(g) + values[0]

        return wrapped

    return decorate(lambda g: g), lambda v: values.__setitem__(0, v)


def under_no_grad():
    values = [1.0]
    return torch.no_grad()(lambda g: g + values[0]), lambda v: values.__setitem__(0, v)


def tensor_written():
    t = torch.ones(())
    return lambda g: g + t, lambda v: t.fill_(v)


def tensor_replaced():
    t = torch.ones(())

    def set(v):
        nonlocal t
        t = torch.tensor(v)

    return lambda g: g + t, set


def tensor_attribute():
    t = torch.ones(())
    return lambda g: g * t.scale, lambda v: setattr(t, "scale", v)


def gradient_of_a_tensor():
    t = torch.ones((), requires_grad=True)
    return lambda g: g + t.grad, lambda v: setattr(t, "grad", torch.tensor(v))


def module_attribute():
    m = torch.nn.Linear(1, 1)
    return lambda g: g + m.v, lambda v: setattr(m, "v", v)


def by_getattr():
    box = types.SimpleNamespace(v=1.0)
    return lambda g: g + getattr(box, "v"), lambda v: setattr(box, "v", v)  # noqa: B009


def set_members():
    values = {1.0}

    def set(v):
        values.clear()
        values.add(v)

    return lambda g: g + max(values), set


def patched_library():
    return lambda g: g + math.floor(1.5), lambda v: setattr(math, "floor", lambda x: v)


def enumeration_of_one():
    values = [1.0]
    return lambda g: g + sum(v for v in values), lambda v: values.__setitem__(0, v)


READS = [
    attribute, slot, deep_attribute, list_item, nested_item, item_of_tuple, local, default, keyword_default, replaced_default,
    replaced_code, partial, partial_keyword, global_number, global_item, callable_object, method, class_attribute,
    property_of_object, helper, replaced_helper, function_attribute, wrapper, under_no_grad, tensor_written, tensor_replaced,
    tensor_attribute, gradient_of_a_tensor, module_attribute, by_getattr, set_members, patched_library, enumeration_of_one,
]  # fmt: skip


def appends():
    seen = []
    return lambda g: seen.append(1), lambda: len(seen)


def appends_global():
    log.clear()
    return lambda g: log.append(1), lambda: len(log)


def appends_by_alias():
    seen = []
    append = seen.append
    return lambda g: append(1), lambda: len(seen)


def appends_to_default():
    seen = []
    return lambda g, seen=seen: seen.append(1), lambda: len(seen)


def adds_to_default():
    seen = []

    def hook(g, seen=seen):
        seen += [1]

    return hook, lambda: len(seen)


def appends_in_partial():
    seen = []
    return functools.partial(lambda seen, g: seen.append(1), seen), lambda: len(seen)


def appends_in_wrapper():
    seen = []

    def decorate(f):
        @functools.wraps(f)
        def wrapped(g):
            seen.append(1)
            return f(g)

        return wrapped

    return decorate(lambda g: g * 2), lambda: len(seen)


def counts():
    count = 0

    def hook(g):
        nonlocal count
        count += 1
        return g * count

    return hook, lambda: count


def assigns_attribute():
    box = Held(0)

    def hook(g):
        box.v += 1

    return hook, lambda: box.v


def assigns_item():
    box = {"v": 0}

    def hook(g):
        box["v"] += 1

    return hook, lambda: box["v"]


def assigns_own_attribute():
    def hook(g):
        hook.v += 1

    hook.v = 0
    return hook, lambda: hook.v


def takes_next():
    values = iter(range(100))
    return lambda g: g + next(values), lambda: None


def writes_tensor():
    t = torch.zeros(())

    def hook(g):
        t.add_(1)

    return hook, lambda: t.item()


def writes_out():
    t = torch.zeros(2)

    def hook(g):
        torch.add(t, 1, out=t)

    return hook, t.tolist


def writes_gradient():
    def hook(g):
        g.mul_(2)

    return hook, lambda: None


def draws():
    return lambda g: g + torch.rand(2), lambda: None


def draws_in_python():
    return lambda g: g + random.random(), lambda: None


def caches():
    seen = []

    @functools.lru_cache
    def look(n):
        seen.append(n)

    def hook(g):
        look(len(seen))

    return hook, lambda: len(seen)


EFFECTS = [
    appends, appends_global, appends_by_alias, appends_to_default, adds_to_default, appends_in_partial, appends_in_wrapper, counts,
    assigns_attribute, assigns_item, assigns_own_attribute, takes_next, writes_tensor, writes_out, writes_gradient, draws,
    draws_in_python, caches,
]  # fmt: skip


def compiled(fullgraph):
    def compiler(module):
        return torch.compile(module, backend="eager", fullgraph=fullgraph)

    return lambda: enable(compiler)


def through_hook(kind, hook, within):
    """The gradient of a small program in which a hook of some kind sits."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y * y
    if kind == "tensor":
        y.register_hook(hook)
    elif kind == "leaf":
        x.register_hook(hook)
    elif kind == "pre":
        z.grad_fn.register_prehook(functools.partial(on_first, hook))
    elif kind == "post":
        z.grad_fn.register_hook(lambda result, given: on_first(hook, result))
    else:
        z = kind.apply(y)
    with within():
        (z * 1.5).sum().backward()
    return x.grad.tolist()


def on_first(hook, gs):
    result = hook(gs[0])
    return None if result is None else (result, *gs[1:])


def custom(hook):
    class Custom(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            result = hook(g)
            return g * 3 if result is None else result * 3

    return Custom


KINDS = ("tensor", "leaf", "pre", "post", "function")


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", READS)
def test_what_a_hook_reads_is_read_at_every_run(make, kind, fullgraph):
    def steps(within):
        hook, change = make()
        where = custom(hook) if kind == "function" else kind
        out = []
        for v in (1.0, 2.0, 5.0, 5.0, 1.0):
            change(v)
            out.append(through_hook(where, hook, within))
        return out

    want = steps(contextlib.nullcontext)
    assert want[0] == want[4] != want[1] and steps(compiled(fullgraph)) == want


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", EFFECTS)
def test_what_a_hook_does_is_done_at_every_run(make, kind, fullgraph):
    def steps(within):
        torch.manual_seed(0)
        random.seed(0)
        hook, done = make()
        where = custom(hook) if kind == "function" else kind
        return [(through_hook(where, hook, within), done()) for _ in range(5)]

    assert steps(compiled(fullgraph)) == steps(contextlib.nullcontext)


class Keeps(torch.autograd.Function):
    """Keeps what it is given on its context."""

    @staticmethod
    def forward(ctx, x, kept):
        ctx.kept = kept
        return x * 2

    @staticmethod
    def backward(ctx, g):
        kept = ctx.kept
        if isinstance(kept, list):
            kept += [1]
            return g * len(kept), None
        return g * kept[0], None


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_list_on_the_context_keeps_what_is_added_to_it(fullgraph):
    kept = []
    for n in range(1, 5):
        x = torch.ones(2, requires_grad=True)
        y = Keeps.apply(x, kept)
        with compiled(fullgraph)():
            y.sum().backward()
        assert len(kept) == n and x.grad.tolist() == [float(n)] * 2


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_named_tuple_on_the_context_is_that_of_the_call(fullgraph):
    from collections import namedtuple

    Pair = namedtuple("Pair", "a b")
    for n in range(1, 4):
        x = torch.ones(2, requires_grad=True)
        y = Keeps.apply(x, Pair(torch.tensor(float(n)), 0))
        with compiled(fullgraph)():
            y.sum().backward()
        assert x.grad.tolist() == [float(n)] * 2


def test_python_that_is_another_at_each_step_is_not_compiled_for_ever():
    value = 0

    def hook(g):
        return g + value

    function = custom(hook)
    node = function.apply(torch.ones(2, requires_grad=True)).grad_fn
    for value in range(config.recompile_limit):  # noqa: B007 - the hook reads it
        assert users_python(node)[1] is None
    value = -1
    assert users_python(node)[1] == CHANGES_OFTEN
    value = 0
    assert users_python(node)[1] is None
