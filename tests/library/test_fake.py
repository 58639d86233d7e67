"""Fake rules: on meta tensors, on fake tensors, and with sizes that depend on data."""

import warnings

import pytest

import pullback as torch
from pullback.capture.fake.mode import (
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from pullback.capture.shapes.environment import ShapeEnv
from pullback.library import _scoped_library, get_ctx, impl_abstract, register_fake


@pytest.fixture
def lib():
    with _scoped_library("t_fake", "FRAGMENT") as result:
        yield result


ops = torch.ops.t_fake


def test_on_meta_and_fake_tensors(lib):
    lib.define("f(Tensor x) -> (Tensor, int)")
    lib.impl("f", lambda x: (torch.zeros(3), 1), "CPU")

    @register_fake("t_fake::f", lib=lib)
    def _(x):
        return torch.empty(3, device=x.device), 1

    assert ops.f(torch.ones(2, device="meta"))[0].device.type == "meta"
    with FakeTensorMode() as mode:
        out = ops.f(mode.from_tensor(torch.ones(2)))
    assert out[0].shape == (3,) and out[0].device.type == "cpu" and out[1] == 1
    assert out[0].fake_mode is mode  # the rule's own factory made a fake


def test_data_dependent_sizes(lib):
    lib.define("nz(Tensor x) -> Tensor")
    lib.impl("nz", lambda x: x.nonzero(), "CPU")

    @register_fake("t_fake::nz", lib=lib)
    def rule(x):
        return x.new_empty([get_ctx().new_dynamic_size(), x.dim()], dtype=torch.long)

    assert get_ctx() is None
    with pytest.raises(
        RuntimeError, match=r"t_fake::nz \(.*test_fake.py:\d+\): You're trying to run this operator with meta"
    ):
        ops.nz(torch.ones(2, device="meta"))
    with FakeTensorMode() as mode, pytest.raises(DynamicOutputShapeException, match="t_fake.nz.default"):
        ops.nz(mode.from_tensor(torch.ones(2)))


def test_without_a_rule(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x.clone(), "CPU")
    with FakeTensorMode() as mode, pytest.raises(UnsupportedOperatorException, match="t_fake.f.default"):
        ops.f(mode.from_tensor(torch.ones(2)))


def test_results_of_other_kinds_and_devices(lib):
    lib.define("n(Tensor x) -> int")
    lib.define("w(Tensor(a!) x) -> ()")
    lib.define("d(Tensor x) -> (Tensor[], Tensor?)")
    lib.impl("n", lambda x: x.shape[0], "Meta")
    lib.impl("w", lambda x: None, "Meta")
    lib.impl("d", lambda x: ([torch.empty(1, device="cuda")], None), "Meta")
    with FakeTensorMode() as mode:
        x = mode.from_tensor(torch.ones(2))
        assert ops.n(x) == 2 and ops.w(x) is None
        (result,), nothing = ops.d(x)
    assert result.device.type == "cuda" and result.fake_mode is mode and nothing is None


def test_the_context_of_a_rule(lib):
    lib.define("nz(Tensor x) -> Tensor")

    @register_fake("t_fake::nz", lib=lib)
    def rule(x):
        with pytest.raises(ValueError, match="expected min to be greater than or equal to 0"):
            get_ctx().new_dynamic_size(min=-1)
        with pytest.warns(FutureWarning, match="create_unbacked_symint"):
            get_ctx().create_unbacked_symint()
        return x.new_empty(get_ctx().new_dynamic_size(min=1, max=9))

    mode = FakeTensorMode(shape_env=ShapeEnv())
    with mode:
        size = ops.nz(mode.from_tensor(torch.ones(2))).shape[0]
    assert str(size).startswith("u")
    assert size >= 1 and size <= 9  # known, so no guard on data is asked for


def test_registration_errors(lib):
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="operator t_fake::nope does not exist"):
        register_fake("t_fake::nope", lambda x: x)
    with pytest.raises(ValueError, match=r"register_fake\(3\): got unexpected type for op: <class 'int'>"):
        register_fake(3, lambda x: x)
    register_fake("t_fake::f", lambda x: x, lib=lib)
    with pytest.raises(RuntimeError, match="already has a fake impl registered at"):
        register_fake("t_fake::f", lambda x: x, lib=lib, allow_override=False)
    lib.define("m(Tensor x) -> Tensor")
    lib.impl("m", lambda x: x, "Meta")
    with pytest.raises(RuntimeError, match="already has a DispatchKey::Meta implementation"):
        register_fake("t_fake::m", lambda x: x, lib=lib, allow_override=False)
    lib.define("c(Tensor x) -> Tensor")
    lib.impl("c", lambda x: x, "CompositeImplicitAutograd")
    with pytest.raises(RuntimeError, match="CompositeImplicitAutograd operators do not need a fake impl"):
        register_fake("t_fake::c", lambda x: x, lib=lib, allow_override=False)


def test_the_old_name(lib):
    lib.define("f(Tensor x) -> Tensor")
    with pytest.warns(FutureWarning, match="was renamed to `torch.library.register_fake`"):
        impl_abstract("t_fake::f", lambda x: x.new_empty(7), lib=lib)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ops.f(torch.ones(2, device="meta")).shape == (7,)


def test_a_fake_outside_of_its_mode(lib):
    """Nothing listens, and the tensor alone says that it has no data: its rule is found all the same."""
    lib.define("outside(Tensor x) -> Tensor")
    lib.impl("outside", lambda x: x + 1, "CPU")
    register_fake("t_fake::outside", lambda x: x.new_empty(x.shape), lib=lib)
    with FakeTensorMode() as mode:
        x = mode.from_tensor(torch.ones(2, 3))
    assert torch.ops.t_fake.outside(x).shape == (2, 3)
