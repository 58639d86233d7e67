"""Higher-order operators of one's own: how a call finds its rule."""

from __future__ import annotations

import copy
import pickle

import pytest

import pullback as torch
from pullback.capture.higher_order import HigherOrderOperator
from pullback.capture.higher_order.base import autograd_not_implemented
from pullback.capture.trace.make_fx import make_fx
from pullback.ops.system.overrides import TorchDispatchMode
from pullback.ops.system.packet import ops


@pytest.fixture
def apply():
    class Apply(HigherOrderOperator):
        def __init__(self):
            super().__init__("test_apply")

        def __call__(self, f, x):
            return super().__call__(f, x)

    op = Apply()
    op.py_impl("CompositeExplicitAutograd")(lambda f, x: f(x))
    yield op
    del vars(ops.higher_order)["test_apply"]


class Watching(TorchDispatchMode):
    seen = None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen = func
        return func(*args, **(kwargs or {}))


def test_an_operator_is_found_under_its_name(apply):
    assert torch.ops.higher_order.test_apply is apply and str(apply) == apply.name() == "test_apply"
    x = torch.randn(3)
    assert torch.equal(apply(torch.sin, x), x.sin())
    assert copy.deepcopy(apply) is apply and pickle.loads(pickle.dumps(torch.ops.higher_order.cond)).name() == "cond"
    with pytest.raises(AttributeError):
        torch.ops.higher_order.there_is_no_such_operator
    with pytest.raises(RuntimeError, match="Direct instantiation"):
        HigherOrderOperator("x")
    with pytest.raises(TypeError, match="Can't instantiate abstract class Empty"):
        type("Empty", (HigherOrderOperator,), {})("x")


def test_modes_take_calls_only_if_they_say_so(apply):
    with Watching(), pytest.raises(NotImplementedError, match="There was no rule registered for HigherOrderOperator"):
        apply(torch.sin, torch.randn(3))
    mode = Watching()
    mode.supports_higher_order_operators = True
    with mode:
        apply(torch.sin, torch.randn(3))
    assert mode.seen is apply


def test_a_rule_for_a_mode_comes_first(apply):
    apply.py_impl(Watching)(lambda mode, f, x: ("rule", mode))
    with Watching() as mode:
        assert apply(torch.sin, torch.randn(3)) == ("rule", mode)
    with pytest.raises(RuntimeError, match="Trying to override"):
        apply.py_impl(Watching)(lambda mode, f, x: None)


def test_functions_that_no_rule_makes_graphs_are_refused_by_traces(apply):
    with pytest.raises(NotImplementedError, match="no rule registered for HigherOrderOperator test_apply"):
        make_fx(lambda x: apply(torch.sin, x))(torch.randn(3))


def test_classes_override(apply):
    class Taking(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    assert apply(torch.sin, torch.randn(3).as_subclass(Taking)) is apply


def test_gradients_that_do_not_exist_raise_when_asked_for(apply):
    apply.py_autograd_impl(autograd_not_implemented(apply, deferred_error=True))
    out = apply(torch.sin, torch.randn(3, requires_grad=True))
    with pytest.raises(RuntimeError, match="Autograd not implemented for test_apply"):
        out.sum().backward()
    assert not apply(torch.sin, torch.randn(3)).requires_grad
