"""Programs that write, as programs that do not: the same values, and graphs without a write."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.joint.functionalize import Functionalization, effect

from .compare import is_impure

aten = torch.ops.aten
VIEWS = {
    "slice": lambda x: x[1:3],
    "slice with a step": lambda x: x[::2, 1::3],
    "select": lambda x: x[1],
    "transpose": lambda x: x.t(),
    "permute": lambda x: x.view(2, 2, 6).permute(2, 0, 1),
    "view": lambda x: x.view(-1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x.view(4, 1, 6).squeeze(1),
    "diagonal": lambda x: x.diagonal(),
    "diagonal, moved": lambda x: x.diagonal(1),
    "split": lambda x: x.split(3, 1)[1],
    "split in parts": lambda x: x.split([1, 3], 0)[1],
    "chunk": lambda x: x.chunk(2)[0],
    "unbind": lambda x: x.unbind(1)[2],
    "expand of a new dimension": lambda x: x.expand(1, 4, 6),
    "as_strided": lambda x: x.as_strided((2, 2), (6, 2), 1),
    "as_strided of a view": lambda x: x[1:].as_strided((2, 2), (6, 2), 7),
    "narrow": lambda x: x.narrow(1, 2, 3),
    "detach": lambda x: x.detach(),
    "alias": lambda x: aten.alias.default(x),
    "another dtype": lambda x: x.view(torch.int32).view(torch.float32),
    "chain": lambda x: x.t()[1:4].view(3, 2, 2).select(1, 1)[:, 0],
    "movedim": lambda x: x.movedim(0, 1),
    "unfold": lambda x: x.unfold(0, 2, 2),
}


def functional(f):
    """A function whose writes are carried out on values."""

    def run(*args):
        mode = Functionalization()
        with mode:
            out = f(*args)
        out = out if isinstance(out, tuple) else (out,)
        return [mode.value(t) for t in out]

    return run


def assert_pure(f, *args):
    given = [a.clone() for a in args]
    expected = f(*[a.clone() for a in args])
    expected = expected if isinstance(expected, tuple) else (expected,)
    graph = make_fx(functional(f), tracing_mode="fake")(*given)
    assert not [n for n in graph.graph.nodes if is_impure(n)]
    for e, a in zip(expected, graph(*given), strict=True):
        assert e.shape == a.shape and e.dtype is a.dtype and torch.equal(e, a)
    assert all(torch.equal(a, b) for a, b in zip(given, args, strict=True))  # nothing was written
    return graph


@pytest.mark.parametrize("name", VIEWS)
def test_writes_through_views_reach_what_is_viewed(name):
    view = VIEWS[name]

    def f(x):
        y = x * 1
        v = view(y)
        v.mul_(2)
        return y, v, view(y), y.t()

    assert_pure(f, torch.arange(24.0).reshape(4, 6))


@pytest.mark.parametrize("name", VIEWS)
def test_writes_to_what_is_viewed_reach_the_view(name):
    view = VIEWS[name]

    def f(x):
        y = x * 1
        v = view(y)
        y.add_(1)
        v.mul_(3)
        y[0].zero_()
        return y, v

    assert_pure(f, torch.arange(24.0).reshape(4, 6))


def test_two_views_of_one_memory():
    def f(x):
        y = x * 1
        a, b = y[:3], y[1:]
        a.add_(10)
        b.mul_(a.clone())
        return y, a, b

    assert_pure(f, torch.arange(4.0).reshape(4, 1).expand(4, 3).clone())


def test_writes_with_other_dtypes_and_shapes():
    def f(x):
        y = torch.zeros(3, 4)
        y.copy_(x[0])
        y.add_(x.long())
        y.masked_fill_(y > 3, -1.0)
        y[:, 1] = 7
        y[y < 0] = 5
        return y

    assert_pure(f, torch.arange(12.0).reshape(3, 4))


def test_inplace_shape_changes():
    def f(x):
        y = x * 1
        v = y[0]
        y.t_()
        y.unsqueeze_(0)
        y.mul_(2)
        return y, v

    assert_pure(f, torch.arange(6.0).reshape(2, 3))


def test_bits_of_complex_tensors():
    def f(x):
        y = x * 1
        y.real.add_(1)
        y.conj().imag.mul_(2)
        torch.view_as_real(y)[0].zero_()
        return y

    assert_pure(f, torch.randn(3, dtype=torch.complex64))


def test_memory_given_to_another():
    def f(x):
        y, z = x * 2, x * 3
        y.data = z
        y.add_(1)
        return y, z

    assert_pure(f, torch.ones(3))


def test_resize():
    def f(x):
        y = x * 2
        y.resize_(2)
        return y + 1

    assert_pure(f, torch.arange(4.0))


def test_operators_that_write_besides_giving_results():
    def f(x):
        mean, variance = torch.zeros(3), torch.ones(3)
        out = torch.nn.functional.batch_norm(x, mean, variance, training=True)
        return out, mean, variance

    graph = assert_pure(f, torch.randn(4, 3))
    assert any("batch_norm" in str(n.target) for n in graph.graph.nodes)


def test_a_program_without_writes_passes_through():
    def f(x):
        return (x.t() @ x).sin()[0]

    plain = make_fx(f, tracing_mode="fake")(torch.ones(3, 3))
    pure = make_fx(functional(f), tracing_mode="fake")(torch.ones(3, 3))
    assert [n.target for n in plain.graph.nodes][1:-1] == [n.target for n in pure.graph.nodes][1:-1]


def test_gradients_follow_writes():
    def f(x):
        y = x * 1
        y[0].mul_(x[1])
        y.t()[0] = x[0].sum()
        return y

    x = torch.randn(2, 2, requires_grad=True)

    def both(x):
        out = f(x)
        return torch.autograd.grad(out, x, torch.ones_like(out))[0]

    expected = both(x)
    graph = make_fx(functional(both), tracing_mode="fake")(x)
    assert torch.allclose(graph(x)[0], expected) and not [n for n in graph.graph.nodes if is_impure(n)]


def test_overlapping_targets_are_refused_as_in_eager():
    def f(x):
        return x[0].expand(2, 3).mul_(2)

    for form in (f, functional(f)):
        with pytest.raises(
            RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
        ):
            form(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="a tensor being mutated that has internal overlap"):
        functional(f)(torch.ones(2, 3))


def test_effects():
    assert effect(aten.sin.default) == "pure" and effect(aten.view.default) == "view"
    assert effect(aten.split.Tensor) == "view" and effect(aten.native_batch_norm.default) == "mutating"


def test_state_is_left_behind_by_nobody():
    x = torch.ones(3)
    mode = Functionalization()
    with mode:
        y = x * 2
        y.add_(1)
        assert mode.written(y) and not mode.written(x)
    assert mode.value(x) is x and mode.value(y).tolist() == [3.0] * 3


@pytest.mark.parametrize("write", [lambda t: t.fill_(3), lambda t: t.zero_()])
def test_a_number_is_written_to_expanded_memory(write):
    def f(x):
        y = x.expand(3, 2)
        write(y[1:])
        write(x.as_strided((2, 2), (0, 1)))
        return y + x

    x, other = torch.arange(2.0), torch.arange(2.0)
    assert torch.equal(torch.compile(f, backend="aot_eager", fullgraph=True)(x), f(other))
    assert torch.equal(x, other)


def test_writes_to_expanded_memory_that_depend_on_their_order_are_refused_in_graphs():
    def f(x):
        x.expand(2, 2).masked_fill_(torch.tensor([[True, False], [False, False]]), 5)
        return x

    x = torch.zeros(2)
    with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
        assert f(torch.zeros(2)).tolist() == [5, 0]
    with pytest.raises(NotImplementedError, match="masked_fill_ of an expanded tensor in a compiled function"):
        torch.compile(f, backend="aot_eager")(x)
    assert x.tolist() == [0, 0]
