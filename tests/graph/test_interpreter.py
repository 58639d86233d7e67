"""Interpreters and transformers."""

import operator
import weakref

import pytest

import pullback as torch
from pullback.graph import Interpreter, Transformer, symbolic_trace


def f(x, y=2):
    a = torch.sigmoid(x).neg() + y
    return a, torch.cat([a, a])


def test_interpreting_is_calling():
    gm, x = symbolic_trace(f), torch.ones(2)
    for args in ((x,), (x, 3)):
        for one, other in zip(Interpreter(gm).run(*args), gm(*args)):
            assert torch.equal(one, other)


def test_values_are_dropped_after_their_last_use():
    gm = symbolic_trace(arithmetic)
    alive = []

    class Watch(Interpreter):
        def run_node(self, n):
            out = super().run_node(n)
            alive.append([r() is not None for r in self.seen])
            self.seen.append(weakref.ref(out))
            return out

    watch = Watch(gm)
    watch.seen = []
    watch.run(torch.ones(3))
    # When the output is made: the sum and the product are gone; the caller still holds the input.
    assert alive[-1] == [True, False, False, True]


def arithmetic(x):
    return ((x + 1) * 2) - 3


def test_boxed_run():
    gm, args = symbolic_trace(f), [torch.ones(2), 1]
    assert torch.equal(Interpreter(gm).boxed_run(args)[0], gm(torch.ones(2), 1)[0]) and args == []
    with pytest.raises(
        RuntimeError, match=r"expected 2 arguments for placeholders but received 1 \(missing arguments\)"
    ):
        Interpreter(gm).boxed_run([1])


def test_errors_name_the_node():
    gm = symbolic_trace(arithmetic)
    gm.graph.find_nodes(op="call_function", target=operator.add)[0].stack_trace = "here"
    with pytest.raises(TypeError) as caught:
        Interpreter(gm).run("a")
    assert "\n\nWhile executing %add : [num_users=1] = call_function[target=operator.add]" in str(caught.value)
    assert str(caught.value).endswith("Original traceback:\nhere")
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x, but one was not passed in!"):
        Interpreter(gm).run()
    with pytest.raises(RuntimeError, match="Node referenced nonexistent target a"):
        Interpreter(gm).fetch_attr("a.b")


def test_a_missing_value_is_named():
    gm = symbolic_trace(arithmetic)
    add = gm.graph.find_nodes(op="call_function", target=operator.add)[0]
    mul = gm.graph.find_nodes(op="call_function", target=operator.mul)[0]
    add.prepend(mul)
    with pytest.raises(RuntimeError, match="Node mul referenced nonexistent value add! Run Graph.lint()"):
        Interpreter(gm).run(torch.ones(1))


def test_initial_values_are_taken_as_computed():
    gm = symbolic_trace(arithmetic)
    mul = gm.graph.find_nodes(op="call_function", target=operator.mul)[0]
    x, add = list(gm.graph.nodes)[:2]
    assert Interpreter(gm).run(initial_env={x: None, add: None, mul: 10}) == 7


def test_arguments_that_calls_get_can_be_changed():
    kinds = []

    class Watch(Interpreter):
        def call_function(self, target, args, kwargs):
            kinds.extend(type(a) for a in args if isinstance(a, list))
            return super().call_function(target, args, kwargs)

    Watch(symbolic_trace(f)).run(torch.ones(2))
    assert kinds == [list]


class Swap(Transformer):
    def call_function(self, target, args, kwargs):
        if target is torch.sigmoid:
            return torch.neg(*args, **kwargs)
        return super().call_function(target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return args[0].sigmoid() if target == "neg" else super().call_method(target, args, kwargs)


def test_transformer():
    gm = Swap(symbolic_trace(f)).transform()
    x = torch.ones(2)
    assert torch.equal(gm(x)[0], torch.neg(x).sigmoid() + 2) and "neg = torch.neg(x)" in gm.code
    gm.graph.lint()
