"""Inputs that a compiled function gives other memory: afterwards they lie, and alias, as if the function itself had run."""

import pytest

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.joint.aot import aot_function


def fresh(a, b):
    c = torch.arange(9.0).reshape(3, 3)
    with torch.no_grad():
        a.set_(c)
    return a * c


def there_and_back(a, b):
    old = torch.ops.aten.alias.default(a)
    with torch.no_grad():
        a.set_(torch.zeros(9))
        a.set_(old)
    return a + b


def other_input(a, b):
    with torch.no_grad():
        a.set_(b.detach())
    return a * 2 + b


def before_and_after(a, b):
    y = a * 3
    v = a.detach().view(-1)
    with torch.no_grad():
        c = b * 2
        a.set_(c)
    v.add_(1)
    return a * 2, y, a.view(-1), v, c


def data(a, b):
    c = b.detach() * 2
    a.data = c
    c.add_(1)
    return a * c, a


def views(a, b):
    a.data = b.detach() * 2
    v = a.view(-1)
    return v, a.detach(), v, a[0]


def twice(a, b):
    a.data = b.detach() * 2
    w = a.detach().view(-1)
    a.data = b.detach() * 3
    w.add_(1)
    return w, a * 1


def swap(a, b):
    t, u = a.detach(), b.detach()
    a.data, b.data = u, t
    return a - b


def another_shape(a, b):
    a.data = b.detach()[:2].clone()
    return a * 2, a[0]


def run(f, wants):
    torch.manual_seed(0)
    a, b = (torch.randn(3, 3, requires_grad=wants) for _ in range(2))
    old = [a.detach(), b.detach()]
    out = f(a, b)
    out = out if isinstance(out, tuple) else (out,)
    if wants:
        sum((o * o).sum() for o in out if o.requires_grad).backward()
    tensors = [*out, a, b, *old]
    shared = [[t.untyped_storage() == u.untyped_storage() for u in tensors] for t in tensors]
    with torch.no_grad():
        a.add_(5)
        b.mul_(2)
    return [t.detach().clone() for t in tensors], [a.grad, b.grad], shared


CASES = [fresh, there_and_back, other_input, before_and_after, data, views, twice, swap]


@pytest.mark.parametrize("f, wants", [*[(f, wants) for f in CASES for wants in (False, True)], (another_shape, False)])
def test_it_is_as_if_the_function_had_run(f, wants):
    expected = run(f, wants)
    for compiled in (aot_function(f, lambda gm, _: gm), torch.compile(f, backend="aot_eager")):
        found = run(compiled, wants)
        torch.testing.assert_close(found[0], expected[0])
        assert [g is None for g in found[1]] == [g is None for g in expected[1]]
        torch.testing.assert_close([g for g in found[1] if g is not None], [g for g in expected[1] if g is not None])
        assert found[2] == expected[2]


def test_a_parameter_keeps_its_shape():
    with pytest.raises(NotImplementedError, match="other memory.*another shape"):
        aot_function(another_shape, lambda gm, _: gm)(torch.ones(3, 3, requires_grad=True), torch.ones(3, 3))


def test_inputs_that_share_memory_keep_it():
    def f(a, b):
        b.add_(1)
        a.data = torch.zeros(2)
        return a + b

    x = torch.ones(4)
    with pytest.raises(NotImplementedError, match="shares its memory"):
        aot_function(f, lambda gm, _: gm)(x[:2], x[:2])


def storage_of_an_input(x):
    y = torch.ones(4)
    y.set_(x.storage())
    y.add_(1)
    z = torch.ones(2)
    z.set_(x.storage(), 1, (2,), (2,))
    return y * 1, x * 1, z + 1


def nothing_left(x):
    y = torch.ones(4)
    y.set_()
    return y.sum() + x


def intermediate_with_views(x):
    y = x * 2
    z = y.view(2, 2)
    y.data = x * 3
    z.add_(1)
    return y + 0, z + 0


@pytest.mark.parametrize("f", [storage_of_an_input, nothing_left, intermediate_with_views])
def test_other_tensors_take_memory(f):
    given = [torch.arange(4.0) for _ in range(3)]
    expected = f(given[0])
    for compiled, x in zip((aot_function(f, lambda gm, _: gm), torch.func.functionalize(f)), given[1:], strict=True):
        torch.testing.assert_close(compiled(x), expected)
        torch.testing.assert_close(x, given[0])


def test_memory_of_which_a_trace_knows_nothing():
    def f(x):
        x.set_(torch.zeros(4).storage())
        return x + 1

    for trace in (make_fx(f, tracing_mode="fake"), aot_function(f, lambda gm, _: gm)):
        with pytest.raises(NotImplementedError, match="from a storage"):
            trace(torch.ones(4))


def test_a_traced_graph_gives_memory_away_too():
    def f(x):
        x.data = x * 2
        return x + 1

    gm = make_fx(f)(torch.ones(2))
    x = torch.ones(2)
    assert gm(x).tolist() == [3, 3] and x.tolist() == [2, 2]


@pytest.mark.parametrize("change", [lambda a: a.set_(a * 2), lambda a: setattr(a, "data", a * 2), lambda a: a.t_()])
def test_a_branch_gives_its_operands_no_memory(change):
    def branch(a):
        change(a)
        return a + 1

    def f(x):
        return torch.cond(x.sum() > 0, branch, lambda a: a + 1, (x,))

    with pytest.raises(Exception, match="modifying the input"):
        aot_function(f, lambda gm, _: gm)(torch.ones(2, 2))
