"""Tensor subclasses as traces see them: how wrappers are taken apart, their fakes, and what graphs depend on."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.capture.fake.mode import FakeTensor, FakeTensorMode, is_fake
from pullback.capture.front.compile import compile
from pullback.capture.trace.make_fx import make_fx
from pullback.capture.trace.subclasses import (
    Same,
    as_key,
    description,
    fake_of_subclass,
    in_class,
    is_traceable_wrapper_subclass_type,
    is_wrapper,
    layout_of,
    parts_of,
    rebuilt,
    return_and_correct_aliasing,
    transform_subclass,
)
from tests.joint.pair import Pair, nested, numbers, pair


class Opaque(torch.Tensor):
    """A class with a rule for operators that does not say what it is made of."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Named(torch.Tensor):
    """A class without such a rule."""


class Stubborn(Pair):
    """A class that takes no size it is told."""

    @staticmethod
    def __tensor_unflatten__(inner, tag, size, stride):
        return Stubborn(inner["a"], inner["b"], tag)


def test_what_is_a_wrapper():
    assert is_wrapper(pair(2)) and is_traceable_wrapper_subclass_type(Pair)
    for other in (torch.ones(2), torch.ones(2).as_subclass(Named), torch.ones(2).as_subclass(Opaque), 3, Pair):
        assert not is_wrapper(other)
    for other in (torch.Tensor, Named, Opaque, int, 3):
        assert not is_traceable_wrapper_subclass_type(other)


def test_taken_apart_and_built_again():
    x = nested(2, 3)
    layout = layout_of(x)
    assert layout.count == 4 and layout.context == "outer" and [p.context for p in layout.parts] == ["inner"] * 2
    assert [id(p) for p in parts_of(x)] == [id(p) for p in (x.a.a, x.a.b, x.b.a, x.b.b)]
    assert numbers(rebuilt(layout, iter(parts_of(x)))) == numbers(x)
    plain = torch.ones(2)
    assert layout_of(plain) is None and parts_of(plain)[0] is plain and rebuilt(None, iter([plain])) is plain


def test_transform_subclass():
    x = pair(2, 3, tag="kept")
    out = transform_subclass(x, lambda name, part: part * (2 if name == "a" else 3))
    assert numbers(out) == ("Pair", "kept", numbers(x.a * 2), numbers(x.b * 3))
    with pytest.raises(AssertionError, match="to have shape equal to"):
        transform_subclass(Stubborn(x.a, x.b), lambda name, part: part, outer_size=torch.Size([1]))


def test_fakes_of_wrappers():
    mode, x = FakeTensorMode(), nested(2, 3)
    fake = fake_of_subclass(mode, x)
    assert type(fake) is Pair and fake.tag == "outer" and fake.a.tag == "inner" and is_fake(fake)
    assert all(isinstance(p, FakeTensor) and tuple(p.shape) == (2, 3) for p in parts_of(fake))
    assert not any(p is q for p, q in zip(parts_of(fake), parts_of(fake_of_subclass(mode, x)), strict=True))
    whole = mode.from_tensor(x)
    assert type(whole) is Pair and whole.requires_grad and whole.is_leaf and mode.from_tensor(x) is whole
    with mode:
        out = whole.sin() * 2
    assert type(out) is Pair and tuple(out.shape) == (2, 3) and is_fake(out)


def test_fakes_of_parts_share_memory_as_the_parts_do():
    base = torch.ones(4)
    fake = fake_of_subclass(FakeTensorMode(), Pair(base[:2], base[2:]))
    assert fake.a.untyped_storage()._cdata == fake.b.untyped_storage()._cdata and fake.b.storage_offset() == 2


def test_tensors_in_a_class():
    x = torch.randn(3, requires_grad=True) * 2
    y = in_class(x, Named)
    assert type(y) is Named and y.grad_fn is x.grad_fn and y.untyped_storage()._cdata == x.untyped_storage()._cdata
    assert in_class(y, Named) is y and in_class(x, torch.Tensor) is x and in_class(x, Pair) is x


def test_keys():
    assert as_key({"a": [1, 2]}) == as_key({"a": [1, 2]}) != as_key({"a": [1, 3]})
    assert as_key([1]) != as_key((1,))
    t = torch.ones(2)
    assert as_key(t) == as_key(t) and as_key(t) != as_key(torch.ones(2)) and isinstance(as_key(t), Same)
    hash(as_key({"a": [bytearray(b"x"), t]}))


def test_descriptions():
    same = description(pair(2)), description(pair(2, seed=5))
    assert same[0] == same[1] and description(torch.ones(2)) == ()
    assert description(pair(2, tag="other")) != same[0] != description(pair(3))
    assert description(nested(2)) != description(pair(2))
    one, other = torch.ones(2).as_subclass(Named), torch.ones(2).as_subclass(Named)
    one.level, other.level = 1, 2
    assert description(one) != description(other)


def test_make_fx_follows_wrappers():
    x = pair(2, 3, requires_grad=False)
    graph = make_fx(lambda a, b: Pair(a, b).sin().mul(2).a)(x.a, x.b)
    called = [n.target for n in graph.graph.nodes if n.op == "call_function"]
    assert called == [torch.ops.aten.sin.default, torch.ops.aten.mul.Tensor]
    assert torch.equal(graph(x.a, x.b), x.a.sin() * 2)


def test_written_arguments_are_returned():
    x, other = torch.ones(2), torch.zeros(2)
    assert return_and_correct_aliasing(torch.ops.aten.mul_.Tensor, (x, 2), None, other) is x
    assert return_and_correct_aliasing(torch.ops.aten.mul.Tensor, (x, 2), {}, other) is other
    assert return_and_correct_aliasing(torch.ops.aten.view.default, (x, [2]), {}, other) is other


class Corrected(Pair):
    """A pair of which in-place changes of shape show."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return return_and_correct_aliasing(func, args, kwargs, super().__torch_dispatch__(func, types, args, kwargs))


RESHAPING = {
    "transpose_": lambda t: t.transpose_(1, 0),
    "swapaxes_": lambda t: t.swapaxes_(0, 2),
    "unsqueeze_": lambda t: t.unsqueeze_(0),
    "squeeze_": lambda t: t.squeeze_(),
    "as_strided_": lambda t: t.as_strided_((2, 2), (2, 1), 1),
}
LEAVES = {
    "resize_": lambda t: t.resize_(2, 2),
    "resize_as_": lambda t: t.resize_as_(torch.ones(4, 1)),
    "set_": lambda t: t.set_(Corrected(torch.ones(5), torch.ones(5)) if isinstance(t, Pair) else torch.ones(5)),
}


@pytest.mark.parametrize("name", [*RESHAPING, *LEAVES])
@pytest.mark.parametrize("recorded", [False, True])
def test_wrappers_have_the_shape_that_they_were_given_in_place(name, recorded):
    def made():
        return Corrected(torch.arange(8.0).view(1, 2, 4), torch.ones(1, 2, 4))

    change = RESHAPING.get(name) or LEAVES[name]
    like = change(torch.arange(8.0).view(1, 2, 4))
    x = made().requires_grad_() if recorded else made()
    if recorded and name in LEAVES:
        with pytest.raises(RuntimeError, match="requires? grad"):
            change(x)
        return
    t = x.clone() if recorded else x
    assert change(t) is t
    assert (t.shape, t.stride(), t.storage_offset()) == (like.shape, like.stride(), like.storage_offset())
    assert torch.equal(t.a, like) and t._version == 1
    if recorded:
        t.sum().backward()
        assert x.grad.shape == x.shape


# ---- compiled functions
def counting(f):
    graphs = []

    def backend(graph, examples):
        graphs.append(graph)
        return graph

    return compile(f, backend=backend, fullgraph=True, dynamic=False), graphs


def test_guards_look_into_wrappers():
    f, graphs = counting(lambda x: x * 2)
    f(pair(2))
    f(pair(2, seed=3))
    assert len(graphs) == 1
    assert f(pair(2, tag="other")).tag == "other" and len(graphs) == 2
    wide = Pair(torch.ones(2), torch.ones(2, dtype=torch.float64)).requires_grad_()
    assert f(wide).b.dtype is torch.float64 and len(graphs) == 3
    assert type(f(nested(2)).a) is Pair and len(graphs) == 4


def test_guards_say_what_changed():
    reasons = []
    f = compile(lambda x: x * 2, backend="eager", guard_fail_fn=reasons.append, dynamic=False)
    f(pair(2))
    f(pair(2, tag="other"))
    assert "tensor 'x' of type Pair has another context" in reasons[0][0]


def test_attributes_of_a_class_without_rules():
    f, graphs = counting(lambda x: x * x.level)
    for level in (2, 3, 2):
        x = torch.ones(2).as_subclass(Named)
        x.level = level
        out = f(x)
        assert type(out) is Named and out.tolist() == [level] * 2
    assert len(graphs) == 2


def test_graphs_make_wrappers_and_take_them_apart():
    f, graphs = counting(lambda x, t: (Pair(t * 2, t * 3, "made") + x).b)
    x, t = pair(3, requires_grad=False), torch.ones(3)
    assert torch.equal(f(x, t), 3 * t + x.b) and torch.equal(f(x, t * 5), 15 * t + x.b)
    assert len(graphs) == 1


def test_wrappers_from_outside_become_inputs():
    weight = pair(3)
    f, graphs = counting(lambda x: x * weight)
    out = f(torch.ones(3))
    assert numbers(out) == numbers(weight * torch.ones(3))
    out.sum().backward()
    assert numbers(weight.grad) == ("Pair", "plain", ("Tensor", [1.0] * 3), ("Tensor", [1.0] * 3))
    assert sum(n.op == "placeholder" for n in graphs[0].graph.nodes) == 2
