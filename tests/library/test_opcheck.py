"""`opcheck`: operators that keep what they promise, and others."""

import pytest

import pullback as torch
from pullback.library import _scoped_library, custom_op, opcheck
from pullback.library.opcheck import OpCheckError, autograd_registration_check, fake_check


@pytest.fixture
def lib():
    with _scoped_library("t_check", "FRAGMENT") as result:
        yield result


ops = torch.ops.t_check
EAGER = ("test_schema", "test_autograd_registration", "test_faketensor")


def test_a_good_operator():
    op = custom_op("t_check2::good", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    op.register_fake(lambda x: torch.empty_like(x))
    op.register_autograd(lambda ctx, g: g)
    args = (torch.ones(2, requires_grad=True),)
    assert opcheck(op, args, test_utils=EAGER) == dict.fromkeys(EAGER, "SUCCESS")
    assert opcheck(torch.ops.t_check2.good, args, test_utils="test_schema") == {"test_schema": "SUCCESS"}
    assert opcheck(torch.ops.aten.sin.default, args, test_utils=EAGER) == dict.fromkeys(EAGER, "SUCCESS")


def test_under_ahead_of_time_autograd():
    op = custom_op("t_check2::aot", lambda x: x * 3, mutates_args=(), schema="(Tensor x) -> Tensor")
    op.register_fake(lambda x: torch.empty_like(x))
    op.register_autograd(lambda ctx, g: g * 3)
    args = (torch.ones(2, requires_grad=True),)
    name = "test_aot_dispatch_static"
    assert opcheck(op, args, test_utils=name)[name] == "SUCCESS"


def test_undeclared_writes_and_sharing(lib):
    for name, kernel, words in (
        ("w", lambda x: x.add_(1).clone(), "Argument x is not defined as mutable but was mutated"),
        ("a", lambda x: x, "Argument x is not defined to alias output but was aliasing"),
    ):
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, kernel, "CPU")
        with pytest.raises(OpCheckError, match=words):
            opcheck(getattr(ops, name).default, (torch.ones(2),))
    lib.define("two(Tensor x) -> (Tensor, Tensor)")
    lib.impl("two", lambda x: (lambda y: (y, y))(x + 1), "CPU")
    with pytest.raises(OpCheckError, match="Outputs 0 and 1 alias unexpectedly"):
        opcheck(ops.two, (torch.ones(2),))
    lib.define("fine(Tensor(a!) x) -> Tensor(a!)")
    lib.impl("fine", lambda x: x.add_(1), "CPU")
    assert opcheck(ops.fine, (torch.ones(2),), test_utils="test_schema") == {"test_schema": "SUCCESS"}


def test_autograd_registration(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x.clone(), "CPU")
    name = "test_autograd_registration"
    found = opcheck(ops.f, (torch.ones(2, requires_grad=True),), test_utils=name, raise_exception=False)
    assert "does not have an autograd kernel defined at an autograd key" in str(found[name])
    assert opcheck(ops.f, (torch.ones(2),), test_utils=name) == {name: "SUCCESS"}


def test_fake_rules_that_lie(lib):
    for name, rule, words in (
        ("s", lambda x: x.new_empty(3), "Shapes"),
        ("d", lambda x: x.new_empty(2, dtype=torch.long), "Dtypes"),
        ("t", lambda x: None, "the operator gives a Tensor, its fake impl None"),
    ):
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x.clone(), "CPU")
        lib.impl(name, rule, "Meta")
        with pytest.raises(OpCheckError, match=f"test_faketensor failed with .*{words}"):
            opcheck(getattr(ops, name), (torch.ones(2),), test_utils="test_faketensor")


def test_wrong_calls():
    with pytest.raises(ValueError, match="expected test_utils to be subset of"):
        opcheck(torch.ops.aten.sin, (torch.ones(1),), test_utils=("test_schema", "foo"))
    with pytest.raises(ValueError, match="op must be instance of torch._ops.OpOverload"):
        opcheck(lambda x: x, (torch.ones(1),))


def test_sizes_that_depend_on_data():
    op = custom_op(
        "t_check2::some", lambda x: x.new_zeros(x.shape[0], 18), mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    op.register_fake(lambda x: x.new_empty(x.shape[0], torch.library.get_ctx().new_dynamic_size()))
    assert opcheck(op, (torch.ones(10, 20),), test_utils="test_faketensor") == {"test_faketensor": "SUCCESS"}


def test_the_checks_by_themselves(lib):
    lib.define("g(Tensor x) -> Tensor")
    lib.impl("g", lambda x: x * 2, "CPU")
    with pytest.raises(RuntimeError, match="no inputs have requires_grad=True"):
        autograd_registration_check(ops.g.default, (torch.ones(2),), {})
    with pytest.raises(AssertionError, match="does not have an autograd kernel"):
        autograd_registration_check(ops.g.default, (torch.ones(2, requires_grad=True),), {})
    lib.impl("g", lambda x: x.new_empty(3), "Meta")
    with pytest.raises(RuntimeError, match="Shapes .* are not equal"):
        fake_check(ops.g.default, (torch.ones(2),), {})
