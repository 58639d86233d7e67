"""The account of a compilation: graphs, breaks with their lines, conditions."""

import pullback as torch
from pullback.capture.front.config import config
from pullback.capture.front.explain import explain


def test_the_account_of_a_broken_function() -> None:
    def f(x):
        y = x.sin() + 1
        print("between")
        return y.cos()

    account = explain(f)(torch.ones(3))
    assert (account.graph_count, account.graph_break_count, account.op_count) == (2, 1, 3)
    assert account.break_reasons[0].reason == "it prints"
    assert f"test_explain.py:{f.__code__.co_firstlineno + 2} in" in account.break_reasons[0].user_stack
    text = str(account)
    assert "Graph Count: 2" in text and "aten.sin.default" in text and "'x'" in text


def test_arguments_may_be_given_at_once() -> None:
    assert explain(lambda x: x * 2, torch.ones(2)).graph_break_count == 0


def test_what_native_code_has_no_loops_for_is_told_with_its_reason_and_line() -> None:
    def f(x):
        y = x.sin()
        return torch.linalg.inv(y).exp()

    account = explain(f)(torch.eye(2) + 1)
    (refused,) = account.refusals
    assert refused.operator == "aten.linalg_inv_ex.default" and refused.reason == "no rule"
    line = f.__code__.co_firstlineno + 2
    assert refused.line == (__file__, line)
    assert f"Not in Native Code:\n  {refused.operator}: no rule ({__file__}:{line})\n" in str(account)


def test_the_backward_is_lowered_too() -> None:
    def f(x):
        return torch.cholesky_solve(x, torch.eye(3)).sum()

    refused = {r.operator for r in explain(f)(torch.ones(3, 1, requires_grad=True)).refusals}
    assert "aten.cholesky_solve.default" in refused


def test_where_everything_has_loops_nothing_is_said() -> None:
    account = explain(lambda x: x.sin().sum())(torch.ones(3))
    assert account.refusals == [] and "Not in Native Code" not in str(account)


def test_of_sizes_that_are_symbols_each_call_tells() -> None:
    def f(x):
        return torch.linalg.inv(x * 2)

    with config.patch(assume_static_by_default=False):
        account = explain(f)(torch.eye(4))
    assert [r.reason for r in account.refusals] == ["no rule"]
