"""A backward as a graph: random graphs with every kind of hook give what the engine gives, bit for bit, in its order."""

from contextlib import nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as torch
from pullback.autograd.engine import needed_for
from pullback.backward.build import Backward
from pullback.backward.compiled import enable
from pullback.core.node import edge_of


class Scale(torch.autograd.Function):
    """A custom function whose backward writes to a log: it does more than compute."""

    @staticmethod
    def forward(ctx, x, log):
        ctx.save_for_backward(x)
        ctx.log = log
        return x * 3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        ctx.log.append(("custom", bits(g)))
        return g * 3 + 0 * x, None


def bits(t):
    return None if t is None else t.detach().numpy().tobytes()


def packed(log):
    return torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (log.append(("unpack", bits(t))), t)[1])


OPS = {
    "mul": lambda a, b, log: a * b,
    "add": lambda a, b, log: a + b,
    "sin": lambda a, b, log: a.sin(),
    "same": lambda a, b, log: a + a,
    "grow": lambda a, b, log: (a.unsqueeze(0) * b.unsqueeze(1)).sum(0),
    "two": lambda a, b, log: torch.stack([a, b]).unbind()[1],
    "custom": lambda a, b, log: Scale.apply(a, log),
}
HOOKS = ("tensor", "change", "retain", "pre", "post", "after", "remove")
step = st.tuples(st.sampled_from(sorted(OPS)), st.integers(0, 9), st.integers(0, 9), st.integers(0, 5))
program = st.fixed_dictionaries(
    {
        "steps": st.lists(step, min_size=1, max_size=7),
        "hooks": st.lists(st.tuples(st.sampled_from(HOOKS), st.integers(0, 9)), max_size=5),
        "roots": st.lists(st.integers(0, 9), min_size=1, max_size=3),
        "inputs": st.one_of(st.none(), st.lists(st.integers(0, 9), min_size=1, max_size=3)),
        "call": st.sampled_from(["backward", "grad", "into"]),
        "retain": st.booleans(),
        "create": st.booleans(),
        "twice": st.booleans(),
    }
)


def attach(kind, i, value, log):
    """Register a hook of a kind on a value; what it sees goes to the log."""

    def saw(*gs):
        log.append((kind, i, *[bits(g) for g in gs]))

    if kind == "after" and value.is_leaf:
        value.register_post_accumulate_grad_hook(lambda p: saw(p.grad))
    elif kind == "retain" and not value.is_leaf:
        value.retain_grad()
    elif kind == "change":
        value.register_hook(lambda g: (saw(g), g * 2)[1])
    elif kind == "remove":
        handle = value.register_hook(lambda g: (saw(g), handle.remove())[0])
    elif kind in ("pre", "post"):
        node = value.grad_fn if not value.is_leaf else value.view_as(value).grad_fn.next_functions[0][0]
        if kind == "pre":
            node.register_prehook(lambda gs: saw(*gs))
        else:
            node.register_hook(lambda result, gs: saw(*result, *gs))
        return node  # a leaf holds it weakly
    else:
        value.register_hook(saw)
    return None


def run(p, around):
    """Everything that a program shows: the log of its hooks, gradients, errors."""
    log: list = []
    values = [torch.arange(1.0, 4.0).add(i).requires_grad_() for i in range(3)]
    leaves = values[:3]
    for op, i, j, with_hooks in p["steps"]:
        with packed(log) if with_hooks == 0 else nullcontext():
            values.append(OPS[op](values[i % len(values)], values[j % len(values)], log))
    kept = [attach(kind, i, values[i % len(values)], log) for kind, i in p["hooks"]]
    roots = [values[-1], *[values[i % len(values)] for i in p["roots"][1:]]]
    gs = [torch.full((3,), 0.5 + i) for i in range(len(roots))]
    inputs = [values[i % len(values)] for i in p["inputs"]] if p["inputs"] is not None else None
    options = {"retain_graph": p["retain"] or p["create"], "create_graph": p["create"]}
    result: tuple = ()
    with around:
        for _ in range(1 + p["twice"]):
            try:
                if p["call"] == "grad" and inputs:
                    result = torch.autograd.grad(roots, inputs, gs, allow_unused=True, **options)
                else:
                    only = inputs if p["call"] == "into" else None
                    torch.autograd.backward(roots, gs, inputs=only, **options)
            except RuntimeError as error:
                log.append(str(error))
        if p["create"]:
            again = [g for g in (*result, *[v.grad for v in leaves]) if g is not None and g.requires_grad]
            if again:
                torch.autograd.backward(again, [torch.ones(3)] * len(again))
    assert kept is not None
    return log, [bits(g) for g in result], [bits(v.grad) for v in values if v.is_leaf or v.retains_grad]


@pytest.mark.filterwarnings("ignore:Using backward")
@settings(max_examples=60, deadline=None)
@given(program)
def test_random_graphs_give_what_the_engine_gives_bit_for_bit(p):
    assert run(p, enable(lambda gm: gm)) == run(p, nullcontext())


# ---- keys
def keys_of(make):
    out = make()
    return Backward([edge_of(out)], [torch.ones(out.shape)], None, False, False, None).key


def model(n=3, size=3, leaf=None):
    x = torch.ones(size, requires_grad=True) if leaf is None else leaf
    y = x
    for _ in range(n):
        y = (y * x).sin()
    return y


def test_the_same_structure_has_the_same_key_whatever_its_values_sizes_and_objects():
    assert keys_of(model) == keys_of(model)
    assert keys_of(model) == keys_of(lambda: model(size=5))
    assert hash(keys_of(model)) == hash(keys_of(lambda: model(leaf=torch.zeros(3, requires_grad=True))))


def hooked(register):
    def make():
        y = model()
        register(y)
        return y

    return make


@pytest.mark.parametrize(
    "other",
    [
        lambda: model(n=4),
        lambda: model().cos(),
        lambda: model().sum(0, keepdim=True),
        hooked(lambda y: y.register_hook(lambda g: None)),
        hooked(lambda y: y.grad_fn.register_hook(lambda a, b: None)),
        hooked(lambda y: y.grad_fn.register_prehook(lambda a: None)),
        hooked(lambda y: y.retain_grad()),
    ],
)
def test_another_structure_has_another_key(other):
    assert keys_of(other) != keys_of(model)


def test_hooks_are_values_not_structure():
    one = hooked(lambda y: y.register_hook(lambda g: g * 2))
    two = hooked(lambda y: y.register_hook(lambda g: g * 3))
    assert keys_of(one) == keys_of(two)


def test_what_is_asked_for_is_structure():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = y.sin()

    def key(inputs, into=False):
        edges = [edge_of(t) for t in inputs]
        needed = needed_for([edge_of(z)], edges, into)
        return Backward([edge_of(z)], [torch.ones(3)], edges, into, False, needed).key

    assert len({key([x]), key([y]), key([x, y]), key([x], True)}) == 4


def test_the_graph_prints_one_call_per_node_sum_and_sink():
    x = torch.ones(3, requires_grad=True)
    y = x.sin() + x.cos()
    graph = Backward([edge_of(y)], [torch.ones(3)], None, False, False, None).graph().graph
    called = [getattr(n.target, "__name__", "") for n in graph.nodes]
    for name in ("AddBackward0", "SinBackward0", "CosBackward0", "total", "accumulate_grad"):
        assert called.count(name) == 1, name
