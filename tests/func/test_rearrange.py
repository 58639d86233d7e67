"""`rearrange` against reshape and permute written out, and the words of its refusals; small relatives beside it."""

import pytest

import pullback as torch
from pullback.func import debug_unwrap, rearrange, replace_all_batch_norm_modules_, vmap

X = torch.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "pattern, lengths, expected",
    [
        ("a b c -> c a b", {}, X.permute(2, 0, 1)),
        ("... a -> a ...", {}, X.permute(2, 0, 1)),
        ("a b c -> a 1 b () c", {}, X.reshape(2, 1, 3, 1, 4)),
        ("a b c -> (c b)a", {}, X.permute(2, 1, 0).reshape(12, 2)),
        ("a b (c d) -> a d (b c)", {"c": 2}, X.reshape(2, 3, 2, 2).permute(0, 3, 1, 2).reshape(2, 2, 6)),
        ("a ... -> a (...)", {}, X.reshape(2, 12)),
        ("a ... -> (... a)", {}, X.permute(1, 2, 0).reshape(24)),
        ("a b c ... -> c b a ...", {}, X.permute(2, 1, 0)),
        ("a b (c d) -> a b c d", {"c": 2, "d": 2}, X.reshape(2, 3, 2, 2)),
    ],
)
def test_patterns(pattern, lengths, expected):
    assert torch.equal(rearrange(X, pattern, **lengths), expected)


@pytest.mark.parametrize(
    "pattern, lengths, words",
    [
        ("a b -> b a", {}, r"Number of dimensions in pattern \(2\) must be equal to"),
        ("a b c -> a b a", {}, "duplicate dimension 'a'"),
        ("a b c -> a b", {}, r"Identifiers only on one side of rearrange expression .*: \{'c'\}"),
        ("(a x) b c -> a x b c", {}, "cannot infer the sizes of two dimensions at once"),
        ("(a x) b c -> a x b c", {"a": 3}, r"does not evenly fit into larger dimension: 2 vs \(3, '\?'\)"),
        ("(a x) b c -> a x b c", {"a": 3, "x": 1}, "sizes do not match"),
        ("a b c", {}, "single '->' separator"),
        ("a b c -> c ... b a", {}, "Ellipsis found in right side"),
        ("a b (...) -> a b ...", {}, "Ellipsis is parenthesis in the left side"),
        ("a b c -> a b c", {"z": 2}, r"Identifiers not found in rearrange expression: \{'z'\}"),
        ("a b ((c) d) -> a b c d", {"c": 2}, "one-level"),
        ("a_ b c -> b c a_", {}, "underscore"),
        ("1a b c -> b c 1a", {}, "not a valid python identifier"),
        ("... ... a -> a ...", {}, "only one ellipsis"),
        ("a b c -> a b c 2", {}, "unnamed axes of size 1"),
        ("a b c -> a (b c", {}, "Imbalanced parentheses"),
    ],
)
def test_bad_patterns(pattern, lengths, words):
    with pytest.raises(ValueError, match=words):
        rearrange(X, pattern, **lengths)


def test_lists_gradients_and_batches():
    assert rearrange([torch.ones(2, 3)] * 4, "n a b -> a (n b)").shape == (2, 12)
    x = torch.ones(2, 6, requires_grad=True)
    (rearrange(x, "a (b c) -> c b a", b=2) * 2).sum().backward()
    assert torch.equal(x.grad, torch.full((2, 6), 2.0))
    assert torch.equal(vmap(lambda t: rearrange(t, "b c -> c b"))(X), X.transpose(1, 2))


def test_batch_norms_lose_their_state():
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.InstanceNorm1d(3, track_running_stats=True))
    assert replace_all_batch_norm_modules_(net) is net
    assert net[0].running_mean is None and not net[0].track_running_stats and net[1].running_mean is not None
    assert vmap(net[0])(torch.randn(2, 4, 3)).shape == (2, 4, 3)


def test_debug_unwrap():
    seen = []

    def look(x):
        seen.append((debug_unwrap(x, recurse=False).shape, debug_unwrap(x).shape))
        return x

    vmap(vmap(look))(X)
    assert seen == [((3, 4), (2, 3, 4))] and debug_unwrap(X) is X
