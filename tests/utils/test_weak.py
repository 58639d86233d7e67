"""Entries are found by identity and go with their keys."""

import gc

import pytest

import pullback as torch
from pullback.utils.weak import TensorWeakRef, WeakIdKeyDictionary


def test_keys_are_identities():
    a, b = torch.ones(2), torch.ones(2)
    d = WeakIdKeyDictionary({a: "a"})
    d[b] = "b"
    assert d[a] == "a" and d[b] == "b" and len(d) == 2 and a in d and torch.ones(2) not in d and 3 not in d
    assert [v for _, v in d.items()] == ["a", "b"] and (d | {a: "c"})[a] == "c" and d.copy() == d
    del d[b]
    del a
    gc.collect()
    assert len(d) == 0 and list(d) == []


def test_a_reference_does_not_keep_a_tensor():
    t = torch.ones(2)
    ref = TensorWeakRef(t)
    assert ref() is t
    del t
    gc.collect()
    assert ref() is None


def test_an_update_that_fails_changes_nothing():
    class Failing:
        def keys(self):
            yield a
            raise KeyError("no more")

        def __getitem__(self, key):
            return 1

    a = torch.ones(2)
    d = WeakIdKeyDictionary()
    with pytest.raises(KeyError, match="no more"):
        d.update(Failing())
    with pytest.raises(TypeError):
        d.update(42)
    assert len(d) == 0
    d.update([(a, 1)])
    assert d[a] == 1
