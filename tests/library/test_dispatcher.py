"""The dispatcher's questions, and the schema facts that PyTorch's programs read."""

import importlib

import pytest

import pullback as torch
from pullback.compat import library_rows
from pullback.library import _scoped_library, dispatcher
from pullback.library.dispatcher import (
    ExcludeDispatchKeyGuard,
    IncludeDispatchKeyGuard,
    excluded_keys,
    has_kernel,
    has_kernel_for_dispatch_key,
    included_keys,
    parse_schema,
)
from pullback.library.keys import DispatchKey, DispatchKeySet


def test_schema_facts():
    schema = parse_schema("a::b.c(Tensor(a!) x, int[2] y=[1, 2], *, Tensor? z=None) -> (Tensor(a!) q, Tensor)")
    assert str(schema) == "a::b.c(Tensor(a!) x, int[2] y=[1, 2], *, Tensor? z=None) -> (Tensor(a!) q, Tensor)"
    assert (schema.name, schema.overload_name, schema.is_mutable) == ("a::b", "c", True)
    x, y, z = schema.arguments
    assert x.alias_info.is_write and x.alias_info.before_set == {"a"} and y.alias_info is None
    assert y.has_default_value() and y.default_value == [1, 2] and y.N == 2
    assert z.kwarg_only and z.default_value is None and not z.is_out
    q, other = schema.returns
    assert (q.name, q.type, q.alias_info.is_write) == ("q", "Tensor", True) and other.alias_info is None
    assert parse_schema("f(Tensor(a) x) -> Tensor(a)")._is_view_op()
    assert str(parse_schema("f() -> ()")) == "f() -> ()"


def test_what_is_registered():
    with _scoped_library("t_disp", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x.clone(), "CPU")
        op = torch.ops.t_disp.f.default
        assert has_kernel("t_disp::f") and not has_kernel("t_disp::g")
        assert has_kernel_for_dispatch_key("t_disp::f", "CPU") and not has_kernel_for_dispatch_key("t_disp::f", "Meta")
        assert op.has_kernel_for_dispatch_key(torch.DispatchKey.CPU)
        op.py_impl(torch.DispatchKey.Meta)(lambda x: x.new_empty(3))
        assert op(torch.ones(1, device="meta")).shape == (3,)
        with pytest.raises(RuntimeError, match="operator t_disp::g does not exist"):
            has_kernel_for_dispatch_key("t_disp::g", "CPU")
    assert has_kernel_for_dispatch_key("aten::neg", "CPU")


def test_key_sets():
    keys = torch.DispatchKey
    both = torch.DispatchKeySet(keys.CPU).add(keys.AutogradCPU)
    assert both.has(keys.AutogradCPU) and both.remove(keys.AutogradCPU) == torch.DispatchKeySet(keys.CPU)
    assert (both & torch.DispatchKeySet(keys.CPU)) | torch.DispatchKeySet(keys.AutogradCPU) == both


@pytest.mark.parametrize("module", [*library_rows.ROWS, "torch._C"])
def test_rows_lead_somewhere(module):
    for home in library_rows.ROWS.get(module, library_rows.C_ROWS).values():
        name, _, attribute = home.partition(":")
        assert name in library_rows.ROWS or not attribute or hasattr(importlib.import_module(name), attribute), home


def test_a_key_that_is_included_chooses_the_kernel():
    seen = []

    def shape_rule(x):
        seen.append(x)
        return x.clone()

    with _scoped_library("t_disp", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CPU")
        lib.impl("f", shape_rule, "Meta")
        x, before = torch.zeros(2), included_keys().raw_repr()
        with IncludeDispatchKeyGuard(DispatchKey.Meta):
            assert included_keys().has(DispatchKey.Meta)
            torch.ops.t_disp.f(x)
        assert included_keys().raw_repr() == before and len(seen) == 1
        assert torch.ops.t_disp.f(x).tolist() == [1, 1]


def test_excluded_keys_are_counted_and_transforms_record_inside():
    before = excluded_keys()
    x = torch.tensor(0.5)
    keys = DispatchKeySet([DispatchKey.Autograd, DispatchKey.FuncTorchBatched])
    with ExcludeDispatchKeyGuard(keys):
        assert excluded_keys().has(DispatchKey.Autograd) and excluded_keys().raw_repr() == keys.raw_repr()
        assert not (torch.tensor(0.5, requires_grad=True) * 2).requires_grad
        assert torch.func.grad(torch.sin)(x).item() == pytest.approx(x.cos().item())
        assert torch.equal(torch.vmap(torch.sin)(x.reshape(1)), x.reshape(1).sin())
    assert excluded_keys() == before


def test_questions_about_kernels():
    from pullback.library import dispatcher

    assert dispatcher.has_kernel("aten::sin") and not dispatcher.has_kernel("aten::no_such_operator")
    assert dispatcher.has_kernel_for_dispatch_key("aten::sin", "CPU")
    assert not dispatcher.has_kernel_for_dispatch_key("aten::sin", "CompositeImplicitAutograd")
    with pytest.raises(RuntimeError, match="operator aten::no_such_operator does not exist"):
        dispatcher.has_kernel_for_dispatch_key("aten::no_such_operator", "CPU")
    with pytest.raises(RuntimeError, match="Could not find schema for aten::no_such_operator.x"):
        dispatcher.find_operator("aten::no_such_operator", "x")
    add = dispatcher.find_operator("aten::add", "Tensor")
    assert dispatcher.call_operator(add, torch.ones(1), torch.ones(1)).item() == 2
    assert dispatcher.parse_schema("aten::f(Tensor x) -> Tensor").arguments[0].name == "x"


def test_questions_about_arguments():
    from pullback.library import dispatcher

    x, w = torch.ones(2), torch.ones(2, requires_grad=True)
    assert dispatcher.any_requires_grad(x, [w]) and not dispatcher.any_requires_grad(x, a=[x, 3])
    assert dispatcher.any_output_is_alias((x,), None, (x[:1],)) and not dispatcher.any_output_is_alias(
        (x,), {}, (x.clone(),)
    )
    assert not dispatcher.is_subclass_like(x)


def test_keys_that_calls_go_past():
    from pullback.library import dispatcher
    from pullback.library.keys import DispatchKey, DispatchKeySet

    keys = DispatchKeySet(DispatchKey["AutogradCPU"])
    before = dispatcher.excluded_keys()
    x = torch.ones(2, requires_grad=True)
    with dispatcher.ExcludeDispatchKeyGuard(keys):
        assert dispatcher.excluded_keys() != before and not (x * 2).requires_grad
    assert dispatcher.excluded_keys() == before and (x * 2).requires_grad


def test_guards_hold_from_where_they_are_made():
    x = torch.ones(2, requires_grad=True)
    guard = dispatcher.AutoDispatchBelowAutograd()
    inside = x * 2
    del guard
    assert not inside.requires_grad and (x * 2).requires_grad
    keys = DispatchKeySet(DispatchKey["AutogradCPU"])
    guard = dispatcher.ExcludeDispatchKeyGuard(keys)
    assert dispatcher.excluded_keys().has(DispatchKey["AutogradCPU"])
    del guard
    assert not dispatcher.excluded_keys().has(DispatchKey["AutogradCPU"]) and (x * 2).requires_grad


def test_schemas_of_a_name():
    assert {s.overload_name for s in dispatcher.schemas_of("aten::mean")} >= {"", "dim"}


def test_keys_of_tensors_in_the_order_of_the_dispatcher():
    words = dispatcher.describe_keys
    assert words(torch.ones(2)) == "DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)"
    assert words(torch.ones(2, device="meta")) == "DispatchKeySet(Meta, ADInplaceOrView, AutogradMeta)"
    assert words(torch.ones(2).to_sparse()) == "DispatchKeySet(SparseCPU, ADInplaceOrView, AutogradCPU, AutocastCPU)"
    assert "CPU, Conjugate, ADInplaceOrView" in words(torch.ones(2, dtype=torch.complex64).conj())
    with torch.inference_mode():
        assert words(torch.ones(2)) == "DispatchKeySet(CPU, AutocastCPU)"


def test_all_schemas():
    names = {(s.name, s.overload_name) for s in dispatcher.all_schemas()}
    assert {("aten::add", "Tensor"), ("aten::ones_like", "default")} <= {(n, o or "default") for n, o in names}


def test_a_kernel_that_falls_through_is_not_called():
    with _scoped_library("t_disp", "DEF") as lib:
        lib.define("h(Tensor x) -> Tensor")
        lib.impl("h", torch.library.fallthrough_kernel, "CPU")
        lib.impl("h", lambda x: x + 2, "CompositeExplicitAutograd")
        assert torch.ops.t_disp.h(torch.zeros(2)).tolist() == [2, 2]
        lib.define("alone(Tensor x) -> Tensor")
        lib.impl("alone", torch.library.fallthrough_kernel, "CPU")
        with pytest.raises(NotImplementedError):
            torch.ops.t_disp.alone(torch.zeros(2))
