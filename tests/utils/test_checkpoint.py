"""Checkpointing: gradients as without it, recomputation counted, mismatches and misuse refused."""

import contextlib
import warnings

import pytest

import pullback as torch
from pullback import nn
from pullback.utils import checkpoint as ck
from pullback.utils.checkpoint import checkpoint


class Counted:
    """A function that counts its calls."""

    def __init__(self, fn):
        self.fn, self.calls = fn, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.fn(*args, **kwargs)


def region(x, w):
    return (x * w).sin().exp() * x


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradients_are_the_same(reentrant):
    w = torch.randn(5, requires_grad=True)
    x = torch.randn(5, requires_grad=True)
    expected = torch.autograd.grad(region(x * 2, w).sum(), (x, w))
    fn = Counted(region)
    checkpoint(fn, x * 2, w, use_reentrant=reentrant).sum().backward()
    assert torch.equal(x.grad, expected[0]) and torch.equal(w.grad, expected[1]) and fn.calls == 2


@pytest.mark.parametrize("reentrant", [True, False])
def test_the_random_stream_is_replayed_and_left_alone(reentrant):
    x = torch.ones(100, requires_grad=True)
    torch.manual_seed(3)
    out = checkpoint(lambda x: nn.functional.dropout(x, 0.5) * x, x, use_reentrant=reentrant)
    after = torch.rand(3)
    out.sum().backward()
    assert torch.equal(x.grad, 2 * out.detach())
    torch.manual_seed(3)
    nn.functional.dropout(x, 0.5)
    assert torch.equal(torch.rand(3), after)


def test_nested_regions():
    x = torch.randn(4, requires_grad=True)

    def inner(y):
        return y.sin().exp()

    def outer(y):
        return checkpoint(inner, y * 2, use_reentrant=False).cos()

    expected = torch.autograd.grad(inner(x * 2).cos().sum(), x)[0]
    checkpoint(outer, x, use_reentrant=False).sum().backward()
    assert torch.allclose(x.grad, expected)


def test_double_backward_and_retained_graphs():
    x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    out = checkpoint(lambda x: x.sin() * x.exp(), x, use_reentrant=False)
    (g,) = torch.autograd.grad(out, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert abs(h.item() - 2 * (x.cos() * x.exp()).item()) < 1e-12
    out = checkpoint(lambda x: x.sin(), x, use_reentrant=False)
    assert torch.autograd.grad(out, x, retain_graph=True)[0] == torch.autograd.grad(out, x)[0]


def test_recomputation_stops_early():
    seen = []

    def fn(x):
        y = x.exp()
        seen.append("late")
        return y + 1

    x = torch.ones(2, requires_grad=True)
    checkpoint(fn, x, use_reentrant=False).sum().backward()
    assert seen == ["late"]
    with ck.set_checkpoint_early_stop(False):
        checkpoint(fn, x, use_reentrant=False).sum().backward()
    assert len(seen) == 3


def changing(first, second):
    calls = []

    def fn(x):
        calls.append(1)
        return (first if len(calls) == 1 else second)(x)

    return fn


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (lambda x: x.sin().exp().sin(), lambda x: x.sin().exp(), "A different number of tensors was saved"),
        (lambda x: x.sin().exp(), lambda x: x.sin() * torch.ones(2), "different metadata"),
    ],
)
def test_mismatches(first, second, words):
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(ck.CheckpointError, match=words):
        checkpoint(changing(first, second), x, use_reentrant=False).sum().backward()
    with pytest.raises(ck.CheckpointError, match="because you passed `debug=True`"):
        checkpoint(changing(first, second), x, use_reentrant=False, debug=True).sum().backward()


def test_inputs_changed_in_place_are_noticed():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    out = checkpoint(lambda y: y.exp(), y, use_reentrant=False)
    with torch.no_grad():
        y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_misuse():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(lambda x: x, x)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(lambda x: x, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: y"):
        checkpoint(lambda x: x, x, use_reentrant=True, y=1)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(lambda x: x, x, use_reentrant=False, determinism_check="x")
    with pytest.raises(RuntimeError, match=r"incompatible with .grad\(\)"):
        torch.autograd.grad(checkpoint(torch.exp, x, use_reentrant=True).sum(), x)
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported"):
        ck.detach_variable([x])


def test_without_gradients_nothing_is_kept():
    with torch.no_grad():
        assert checkpoint(torch.exp, torch.zeros(1), use_reentrant=False).item() == 1.0


def test_contexts_and_groups():
    entered = []

    @contextlib.contextmanager
    def noting(name):
        entered.append(name)
        yield

    x = torch.ones(2, requires_grad=True)
    out = checkpoint(torch.exp, x, use_reentrant=False, context_fn=lambda: (noting("forward"), noting("again")))
    out.sum().backward()
    assert entered == ["forward", "again"]
    fn = Counted(lambda x: (x.sin().cos(), x.exp()))
    y, z = checkpoint(fn, x, use_reentrant=False)
    with ck.GraphExecGroup():
        torch.autograd.grad(y.sum(), x, retain_graph=True), torch.autograd.grad(z.sum(), x)
    assert fn.calls == 2


def test_sequential():
    chain = nn.Sequential(*[nn.Linear(3, 3) for _ in range(5)])
    x = torch.randn(2, 3, requires_grad=True)
    expected = torch.autograd.grad(chain(x).sum(), x)[0]
    for reentrant in (True, False):
        x.grad = None
        ck.checkpoint_sequential(chain, 2, x, use_reentrant=reentrant).sum().backward()
        assert torch.allclose(x.grad, expected)


def test_selective():
    policy = ck.create_selective_checkpoint_contexts
    x = torch.randn(3, 3, requires_grad=True)
    fn = Counted(lambda x: (x @ x).sin().exp())

    expected = torch.autograd.grad(fn(x).sum(), x)[0]
    out = checkpoint(fn, x, use_reentrant=False, context_fn=lambda: policy([torch.ops.aten.mm.default]))
    out.sum().backward()
    assert torch.allclose(x.grad, expected) and fn.calls == 3
    with pytest.raises(TypeError, match="either a function or a list of ops"):
        policy(3)
    with pytest.raises(ValueError, match="to be an OpOverload"):
        policy([torch.ops.aten.mm])


def test_autocast_is_replayed():
    seen = []

    def fn(x):
        y = x @ x
        seen.append(y.dtype)
        return y * y  # saves what the product made, so that it is made again

    x = torch.randn(3, 3, requires_grad=True)
    with warnings.catch_warnings(), torch.autocast("cpu", dtype=torch.bfloat16):
        out = checkpoint(fn, x, use_reentrant=False)
    out.float().sum().backward()
    assert seen == [torch.bfloat16, torch.bfloat16]


@pytest.mark.parametrize("grad", [False, True])
def test_tangents_of_tangents_through_a_checkpoint(grad) -> None:
    """A tangent that is taken from a gradient saves nothing that the checkpoint has to compute again."""

    def f(v):
        return torch.linalg.vector_norm(v * v, dim=-1).nanquantile(0.3)

    def tangent(f):
        return lambda v: torch.func.jvp(f, (v,), (torch.ones_like(v),))[1]

    x = torch.tensor([[1.0, 2.0], [3.0, -1.0]], requires_grad=grad)
    expected = tangent(tangent(f))(x)
    inside = tangent(lambda v: checkpoint(tangent(f), v, use_reentrant=False))(x)
    around = tangent(tangent(lambda v: checkpoint(f, v, use_reentrant=False)))(x)
    assert torch.allclose(inside, expected) and torch.allclose(around, expected)
