"""What is registered for operators, seen by name."""

import pullback as torch
from pullback.library import _scoped_library, custom_op, register_fake
from pullback.library.simple_registry import singleton


def test_fake_rules_and_where_they_are_from():
    with _scoped_library("t_registry", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        entry = singleton.find("t_registry::f")
        assert entry.fake_impl.kernels == [] and entry.fake_impl.kernel is None
        register_fake("t_registry::f", torch.empty_like, lib=lib)
        assert "test_simple_registry" in entry.fake_impl.kernel.source
        assert entry.abstract_impl.kernels == [entry.fake_impl.kernel]
    assert entry.fake_impl.kernels == []
    custom_op("t_registry2::g", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    assert singleton.find("t_registry2::g").fake_impl.kernel.source


def test_dispatch_rules():
    class Mine(torch.Tensor):
        pass

    with _scoped_library("t_registry", "FRAGMENT") as lib:
        lib.define("h(Tensor x) -> Tensor")
        rules = singleton.find("t_registry::h").torch_dispatch_rules
        assert rules.find(Mine) is None
        lib._register_torch_dispatch_rule("h", Mine, print)
        assert rules.find(Mine) is print
