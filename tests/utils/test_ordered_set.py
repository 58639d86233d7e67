"""`OrderedSet` keeps the order of its items."""

from __future__ import annotations

import pickle

import pytest

import pullback as torch
from pullback.utils.ordered_set import OrderedSet


def test_order_and_operators():
    s = OrderedSet([3, 1, 3, 2])
    s.add(0)
    s.discard(1)
    assert list(s) == [3, 2, 0] and len(s) == 3 and list(reversed(s)) == [0, 2, 3] and s == {0, 2, 3}
    assert list(s | {9}) == [3, 2, 0, 9] and list(s & {0, 3}) == [3, 0] and list(s - {2}) == [3, 0]
    assert list(s ^ OrderedSet([2, 7])) == [3, 0, 7] and s >= {0} and s.issubset([0, 2, 3, 4]) and not s.isdisjoint([2])
    assert s.pop() == 0 and list(s.copy()) == [3, 2] == list(pickle.loads(pickle.dumps(s)))
    s.update([5], [3, 6])
    s.intersection_update([6, 3])
    s.symmetric_difference_update([3, 8])
    assert repr(s) == "OrderedSet([6, 8])" and s.union([1]) == {1, 6, 8} and s.difference([6]) == {8}
    s.difference_update([8])
    s.remove(6)
    with pytest.raises(KeyError):
        s.remove(6)
    with pytest.raises(KeyError, match="pop from an empty set"):
        s.pop()
    with pytest.raises(TypeError):
        s | [1]


def test_captured():
    def f(x):
        s = OrderedSet([3, 1])
        s.add(2)
        return x + sum(s | OrderedSet([9])), s

    out, s = torch.compile(f, backend="eager", fullgraph=True)(torch.zeros(1))
    assert out.item() == 15 and list(s) == [3, 1, 2]
