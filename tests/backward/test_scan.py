"""Values and keys of nodes in one pass: the same values as taking them apart gives, and keys that say what differs."""

import pytest

import pullback as torch
from pullback.backward.lift import LISTS, Places, lifted
from pullback.backward.scan import Inputs, scan

F = torch.nn.functional


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale, ctx.sizes, ctx.table = scale, x.shape, {"a": (1.5, None)}
        return x * scale

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale, None


def written(x):
    y = x * 1
    y[0].mul_(x[1])
    return y


def hooked(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return x * x


CASES = {
    "mm": lambda x: x @ x.t(),
    "sum": lambda x: x.sum(0, keepdim=True),
    "expand": lambda x: x[:1].expand(5, 4),
    "exp": lambda x: x.exp(),
    "scalar": lambda x: x * 2.5,
    "cat": lambda x: torch.cat([x, x]),
    "as_strided": lambda x: x.as_strided((2, 2), (1, 2), 1),
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "index": lambda x: x[[0, 1]],
    "custom": lambda x: Scaled.apply(x, 0.5),
    "written": written,
    "hooked": hooked,
    "foreach": lambda x: torch._foreach_mul([x, x], 2.0)[1],
}


@pytest.mark.parametrize("case", CASES)
def test_the_key_says_where_each_value_goes(case):
    node = CASES[case](torch.randn(4, 4, requires_grad=True)).grad_fn
    inputs, places = Inputs(), Places()
    call, slots = lifted(scan(node, inputs), places)
    assert places.taken == list(map(len, inputs.lists()))
    values = [inputs.lists()[LISTS[s.kind]][s.index] for s in slots]
    values = [v() if s.kind == "unpack" else v for s, v in zip(slots, values, strict=True)]
    gs = [torch.randn(shape) for shape, _, _ in node.outputs]
    for ours, want in zip(call(gs, values), node.run(list(gs)), strict=True):
        assert (ours is None) == (want is None) and (want is None or torch.equal(ours, want))


@pytest.mark.parametrize("case", CASES)
def test_the_key_is_of_the_structure(case):
    nodes = [CASES[case](torch.randn(4, 4, requires_grad=True)).grad_fn for _ in range(2)]
    keys = [scan(node, Inputs()) for node in nodes]
    assert keys[0] == keys[1] and hash(keys[0]) == hash(keys[1])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x * 0.0, lambda x: x * -0.0),
        (lambda x: x.sum(0), lambda x: x.sum(1)),
        (lambda x: x * 2, lambda x: x * 2.0),
        (lambda x: x[:, 0].expand(3, 4), lambda x: x[:, :1].expand(4, 4)),
        (lambda x: x.clamp(min=0.0), lambda x: x.clamp(min=0.5)),
    ],
)
def test_what_is_another_rule_has_another_key(one, other):
    x = torch.randn(4, 4, requires_grad=True)
    assert scan(one(x).grad_fn, Inputs()) != scan(other(x).grad_fn, Inputs())


def test_where_a_tensor_begins_in_memory_is_no_structure():
    base = torch.randn(6, 4)
    keys = [scan(base[i : i + 2].clone().requires_grad_().sum(0).grad_fn, Inputs()) for i in (0, 2)]
    views = [base[i : i + 2].detach().requires_grad_() for i in (0, 2)]
    keys += [scan((v @ v.t()).grad_fn, Inputs()) for v in views]
    assert keys[0] == keys[1] and keys[2] == keys[3]


def test_not_a_number_is_the_same_constant_each_time():
    x = torch.randn(3, requires_grad=True)
    first, second = (scan((x * float("nan")).grad_fn, Inputs()) for _ in range(2))
    assert first == second
