"""The account of a compilation: graphs, breaks with their lines, conditions."""

import pullback as torch
from pullback.capture.front.explain import explain


def test_the_account_of_a_broken_function() -> None:
    def f(x):
        y = x.sin() + 1
        print("between")
        return y.cos()

    account = explain(f)(torch.ones(3))
    assert (account.graph_count, account.graph_break_count, account.op_count) == (2, 1, 3)
    assert account.break_reasons[0].reason == "it prints"
    assert "test_explain.py:10 in" in account.break_reasons[0].user_stack
    text = str(account)
    assert "Graph Count: 2" in text and "aten.sin.default" in text and "'x'" in text


def test_arguments_may_be_given_at_once() -> None:
    assert explain(lambda x: x * 2, torch.ones(2)).graph_break_count == 0
