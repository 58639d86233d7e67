"""Compiled functions over wrapper classes: graphs of plain tensors, and for the caller what eager mode gives."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.front.compile import compile
from pullback.core import tree
from pullback.joint.aot import aot_function
from pullback.joint.partition import min_cut_rematerialization_partition
from pullback.surface import compiler

from .against_eager import aot
from .pair import Pair, nested, numbers, pair


def seen(f, make) -> dict:
    """What a caller sees of a call, and of a backward from each result that has a history."""
    args = make()
    out, _ = tree.tree_flatten(f(*args))
    tensors = [o for o in out if isinstance(o, torch.Tensor)]
    found = {
        "results": [numbers(o) for o in out],
        "wanted": [(o.requires_grad, o.is_leaf, tuple(o.shape), o.stride()) for o in tensors],
        "arguments": [numbers(a) for a in args],
        "identity": [[o is a for a in args] for o in out],
        "views": [[o._base is a for a in args] for o in tensors],
    }
    heads = list({id(t): t for t in tensors if t.requires_grad and not t.is_leaf}.values())
    for t in heads:
        t.square().sum().backward(retain_graph=True)
    found["gradients"] = [numbers(a.grad) for a in args if isinstance(a, torch.Tensor) and a.is_leaf]
    return found


def _written(x, y):
    x.mul_(y)
    return x + 1


def _hidden(x):
    with torch.no_grad():
        x.add_(1)
    return x * 2


def _views(x):
    y = x * 2
    return y, y.view(-1), y.t()


def _views_of_hidden(x):
    y = x * 2
    return y[0], y[1]


def _makes(a, b):
    result = Pair(a.detach(), b.detach(), "made")
    return result * 2, a * b


def _inner(x):
    return x.a * 2, x.sin()


def _write_inner(x):
    x.a.mul_(2)
    return x.sum()


def plain(*shape: int):
    torch.manual_seed(5)
    return torch.randn(shape, requires_grad=True)


CASES = {
    "one": (lambda x: x.sin() * 2, lambda: [pair(2, 3)]),
    "two": (lambda x, y: (x * y).exp().sum(0), lambda: [pair(2, 3), pair(2, 3, seed=4)]),
    "matmul": (lambda x, y: x @ y.t(), lambda: [pair(2, 3), pair(4, 3, seed=4)]),
    "no gradient": (lambda x: (x * 2, x > 0), lambda: [pair(2, requires_grad=False)]),
    "with a plain one": (lambda x, p: x * p, lambda: [pair(2, 3), plain(2, 3)]),
    "with a plain one, apart": (lambda x, p: (x * 2, p.sin()), lambda: [pair(2, 3), plain(2, 3)]),
    "nested": (lambda x: (x * x).sin(), lambda: [nested(2, 3)]),
    "nested and not": (lambda x, y: (x * 2, y * 3, None, 4), lambda: [nested(2), pair(2, seed=3)]),
    "made inside": (_makes, lambda: [plain(2), plain(2)]),
    "only made inside": (lambda a: Pair(a * 2, a * 3), lambda: [torch.ones(2)]),
    "parts read": (_inner, lambda: [pair(2)]),
    "an input": (lambda x: (x, x * 2), lambda: [pair(2)]),
    "one result twice": (lambda x: (lambda y: (y, y))(x * 2), lambda: [pair(2)]),
    "view of an input": (lambda x: x.t(), lambda: [pair(2, 3)]),
    "view of a view of an input": (lambda x: x.t()[1:], lambda: [pair(2, 3)]),
    "parts of a split input": (lambda x: x.split(1), lambda: [pair(2, 3)]),
    "views of each other": (_views, lambda: [pair(2, 3)]),
    "views of an intermediate": (_views_of_hidden, lambda: [pair(2, 3)]),
    "transposed": (lambda x: x * 2, lambda: [pair(2, 3, requires_grad=False).t().requires_grad_()]),
    "the same twice": (lambda x, y: x * y, lambda: [pair(2)] * 2),
    "two parts the same": (lambda x: x * 2, lambda: (lambda t: [Pair(t, t).requires_grad_()])(torch.ones(2))),
    "sum to plain gradient": (lambda x: x.sum(), lambda: [pair(2, 3)]),
    "written": (_written, lambda: [pair(2, requires_grad=False), pair(2, seed=4, requires_grad=False)]),
    "written unseen": (_hidden, lambda: [pair(2)]),
    "written and returned": (lambda x: x.mul_(2), lambda: [pair(2, requires_grad=False)]),
    "a part written": (_write_inner, lambda: [pair(2, requires_grad=False)]),
}


@pytest.mark.parametrize("name", CASES)
def test_wrappers_ahead_of_time(name):
    f, make = CASES[name]
    expected, compiled = seen(f, make), aot(f)
    assert seen(compiled, make) == expected
    assert seen(compiled, make) == expected  # by the graph that is there


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_wrappers_compiled(name, backend):
    f, make = CASES[name]
    expected, compiled = seen(f, make), compile(f, backend=backend, fullgraph=True)
    assert seen(compiled, make) == expected
    assert seen(compiled, make) == expected


def test_write_with_a_history():
    def f(x, y):
        x.mul_(y)
        return x * 2

    found = []
    for form in (f, aot(f)):
        leaf, y = pair(2), pair(2, seed=4)
        x = leaf * 1
        out = form(x, y)
        assert not x.is_leaf and x._version == 1
        (out.sum() + x.square().sum()).backward()
        found.append([numbers(t) for t in (out, x, leaf.grad, y.grad)])
    assert found[0] == found[1]


def test_graphs_see_plain_tensors():
    graphs = []

    def compiler(graph, inputs):
        graphs.append(graph)
        assert all(type(i) is torch.Tensor for i in inputs)
        values = [n.meta["val"] for n in graph.graph.nodes if "val" in n.meta]
        assert all(type(v) in (torch.Tensor, tuple, list) for v in values)
        return graph

    x = nested(2, 3)
    out = aot_function(lambda x, p: x.sin() * p, compiler)(x, torch.ones(2, 3))
    out.sum().backward()
    forward, backward = graphs
    names = [n.name for n in forward.graph.nodes if n.op == "placeholder"]
    assert names == [f"primals_{i}" for i in range(1, 6)]
    assert sum(n.op == "placeholder" and n.name.startswith("tangents") for n in backward.graph.nodes) == 4
    assert len(backward.graph.output_node().args[0]) == 4


def test_context_and_parts_decide_on_the_graph():
    graphs = []

    def compiler(graph, inputs):
        graphs.append(graph)
        return graph

    f = aot_function(lambda x: x * 2, compiler)
    make = lambda **how: pair(2, requires_grad=False, **how)  # noqa: E731
    f(make())
    f(make(seed=3))
    assert len(graphs) == 1
    assert f(make(tag="other")).tag == "other" and len(graphs) == 2
    wide = Pair(torch.ones(2), torch.ones(2, dtype=torch.float64))
    assert f(wide).b.dtype is torch.float64 and len(graphs) == 3


class Odd(Pair):
    """A pair whose context cannot be hashed."""

    def __tensor_flatten__(self):
        return ["a", "b"], {"tags": [self.tag]}

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Odd(inner["a"], inner["b"], context["tags"][0], size, stride)


def test_contexts_that_cannot_be_hashed():
    graphs = []

    def compiler(graph, inputs):
        graphs.append(graph)
        return graph

    f = aot_function(lambda x: x * 2, compiler)
    for tag in ("u", "v", "u"):
        out = f(Odd(torch.ones(2), torch.ones(2), tag))
        assert type(out) is Odd and out.tag == tag
    assert len(graphs) == 2


def test_tangents_of_another_kind_raise():
    f = aot(lambda x: x * 2)
    words = "During the backward, we encountered a tensor subclass where we guessed its\nmetadata incorrectly"
    with pytest.raises(RuntimeError, match=rf"{words}.\nExpected a .*Pair'> tangent but got a plain Tensor"):
        f(pair(2)).backward(torch.ones(2))
    with pytest.raises(RuntimeError, match=words):
        f(pair(2)).backward(pair(2, tag="other", requires_grad=False))
    x, p = pair(2), plain(2)
    out = aot(lambda x, p: (x * 2, p * 2))(x, p)
    with pytest.raises(RuntimeError, match=words):
        (out[0] * out[1]).sum().backward()


class Coercing(Pair):
    @staticmethod
    def __tensor_unflatten__(inner, tag, size, stride):
        return Coercing(inner["a"], inner["b"], tag, size, stride)

    def __coerce_same_metadata_as_tangent__(self, expected, expected_type=None):
        return Coercing(self.a, self.b, expected)


def test_tangents_may_be_made_to_fit():
    x = Coercing(torch.ones(2), torch.ones(2)).requires_grad_()
    aot(lambda x: x * 2)(x).backward(Coercing(torch.ones(2), torch.ones(2), "other"))
    assert numbers(x.grad) == ("Pair", "plain", ("Tensor", [2.0, 2.0]), ("Tensor", [2.0, 2.0]))


def test_tangents_in_other_layouts_and_missing_ones():
    def f(x):
        return (x * 2).view(-1).sin().view(2, 3), x.exp()

    found = []
    for form in (f, aot(f)):
        x = pair(2, 3)
        form(x)[0].backward(pair(3, 2, seed=8, requires_grad=False).t())
        found.append(numbers(x.grad))
    assert found[0] == found[1]


def test_double_backward_raises():
    x = pair(2)
    out = aot(lambda x: x.sin())(x)
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        torch.autograd.grad(out.sum(), x, create_graph=True)


def test_memory_shared_with_a_written_part_is_refused():
    base = torch.ones(4)
    with pytest.raises(
        RuntimeError, match="aliased inputs that are mutated in the graph, but\nat least one .* is a tensor subclass"
    ):
        aot(lambda x, y: (x.mul_(2), y * 2)[1])(Pair(base[:2], torch.ones(2)), base[1:3])


def test_parts_that_change_shape_are_refused():
    def f(x):
        x.a.t_()
        return x * 2

    with pytest.raises(RuntimeError, match="Metadata mutations are currently not allowed .* parts of a Pair"):
        aot(f)(pair(2, 2, requires_grad=False))


def test_classes_without_dispatch():
    class Named(torch.Tensor):
        pass

    class Swapped(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            func = torch.exp if func is torch.sin else func
            return super().__torch_function__(func, types, args, kwargs or {})

    for cls in (Named, Swapped):
        x = torch.randn(3).as_subclass(cls).requires_grad_()

        def f(x):
            return torch.sin(x), type(x).__name__, x[0], x

        expected = f(x)
        for backend in ("eager", "aot_eager"):
            compiled = compile(f, backend=backend, fullgraph=True)
            for _ in range(2):
                out = compiled(x)
                assert [type(o) for o in out] == [type(o) for o in expected] and out[1] == expected[1]
                assert torch.equal(out[0], expected[0]) and out[3] is x
                x.grad = None
                out[0].sum().backward()
                derivative = torch.cos if cls is Named else torch.exp
                assert torch.allclose(x.grad, derivative(torch.tensor(x.tolist())))


class Named(torch.Tensor):
    """A class without any rule."""


def test_classes_without_dispatch_ahead_of_time():
    class Swapped(Named):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            func = torch.exp if func is torch.sin else func
            return super().__torch_function__(func, types, args, kwargs or {})

    def f(x, p):
        return torch.sin(x) * p, x, x[0], p * 2, type(x).__name__

    for cls in (Named, Swapped):
        compiled = aot(f)
        for _ in range(2):
            x, p = torch.randn(3).as_subclass(cls).requires_grad_(), torch.ones(3)
            expected, out = f(x, p), compiled(x, p)
            assert [type(o) for o in out] == [type(o) for o in expected] and out[1] is x and out[2]._base is x
            assert torch.equal(out[0], expected[0]) and out[4] == cls.__name__
            out[0].sum().backward()
            assert torch.allclose(x.grad, (torch.cos if cls is Named else torch.exp)(torch.tensor(x.tolist())))


def test_classes_without_dispatch_and_writes():
    x = torch.ones(3).as_subclass(Named)
    out = aot(lambda x: x.mul_(2))(x)
    assert out is x and x.tolist() == [2.0] * 3
    leaf = torch.ones(3, requires_grad=True)
    y = leaf.as_subclass(Named) * 1
    assert aot(lambda y: y.mul_(2))(y) is y and y.tolist() == [2.0] * 3
    y.square().sum().backward()
    assert leaf.grad.tolist() == [8.0] * 3
    with pytest.raises(NotImplementedError, match="history or the shape of an input of class Named"):
        aot(lambda x, p: x.copy_(p))(torch.ones(3).as_subclass(Named), torch.ones(3, requires_grad=True))


def test_assigned_attributes_are_not_captured():
    def relabels(x):
        x.tag = "new"
        return x * 2

    def exchanges(x):
        x.a = x.a * 2
        return x * 2

    for f in (relabels, exchanges):
        with pytest.raises(RuntimeError, match="it assigns to the attribute"):
            compile(f, backend="eager", fullgraph=True)(pair(2, requires_grad=False))


def test_parts_exchanged_in_place_are_written_back():
    def f(x):
        x.a = x.a * 2
        return x + 1

    found = []
    for form in (f, aot(f)):
        x = pair(2, requires_grad=False)
        found.append([numbers(form(x)), numbers(x)])
    assert found[0] == found[1]


def test_parts_with_a_history_are_refused():
    with pytest.raises(NotImplementedError, match="whose parts require grad"):
        aot(lambda a: Pair(a * 2, a * 3))(torch.ones(2, requires_grad=True))


def test_results_around_inputs():
    a = torch.ones(2)
    out = aot(lambda a: Pair(a, a * 2))(a)
    assert out.a is a and numbers(out) == numbers(Pair(a, a * 2))


def test_a_view_given_and_written():
    def f(v):
        v.mul_(2)
        return v + 1

    found = []
    for form in (f, aot(f)):
        leaf = pair(2, 3)
        base = leaf * 1
        form(base[0]).sum().backward(retain_graph=True)
        base.sum().backward()
        found.append([numbers(base), numbers(leaf.grad)])
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["two", "nested and not", "views of each other", "written unseen"])
def test_wrappers_and_the_min_cut(name):
    f, make = CASES[name]
    assert seen(aot(f, partition_fn=min_cut_rematerialization_partition), make) == seen(f, make)


def test_symbolic_sizes_leave_wrappers_alone():
    f = aot(lambda x, p: x * p.sum(), dynamic=True)
    for n in (2, 3, 4):
        x, p = pair(n), plain(n)
        assert numbers(f(x, p)) == numbers(x * p.sum())


def test_nothing_is_kept_over_many_calls():
    import gc

    f, x = aot(lambda x: (x * 2).sin()), pair(3)

    def step():
        f(x).sum().backward()
        x.grad = None

    for _ in range(5):
        step()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(300):
        step()
    gc.collect()
    assert len(gc.get_objects()) - before < 50


def test_making_a_wrapper_again_may_call_what_is_never_captured():
    class Quiet(Pair):
        __init__ = compiler.disable(Pair.__init__)

        @staticmethod
        def __tensor_unflatten__(inner, tag, size, stride):
            return Quiet(inner["a"], inner["b"], tag, size, stride)

    x = Quiet(torch.ones(2), torch.ones(2), "t")
    out = torch.compile(lambda x: x.clone(), fullgraph=True, backend="aot_eager")(x)
    assert type(out) is Quiet and out.a.tolist() == [1, 1]
