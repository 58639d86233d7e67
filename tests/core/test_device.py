"""Devices: names, numbers, and what is not there."""

from __future__ import annotations

import copy
import pickle

import pytest

import pullback as torch


def test_one_object_per_device() -> None:
    assert torch.device("cpu") == torch.device("cpu") and hash(torch.device("cpu")) == hash(torch.device("cpu"))
    assert torch.device("cuda", 1) == torch.device("cuda:1") and str(torch.device("cuda:1")) == "cuda:1"
    assert torch.device("cuda:1").index == 1 and torch.device("cuda").index is None
    d = torch.device("meta")
    assert pickle.loads(pickle.dumps(d)) == d and copy.deepcopy(d) == d and d.type == "meta"


@pytest.mark.parametrize("text", ["nowhere", "cpu:", "cuda:-1", "cuda:x", ""])
def test_bad_names_raise(text) -> None:
    with pytest.raises(RuntimeError):
        torch.device(text)


def test_a_device_is_a_block() -> None:
    with torch.device("meta"):
        assert torch.empty(2).device.type == "meta"
    assert torch.empty(2).device.type == "cpu"


def test_meta_tensors_have_no_numbers() -> None:
    t = torch.empty(2, 3, device="meta")
    assert (t @ torch.empty(3, 4, device="meta")).shape == (2, 4)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        t.tolist()
    with pytest.raises(RuntimeError):
        t.sum().item()
