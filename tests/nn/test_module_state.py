"""Saving and loading: keys, order, metadata, hooks, errors."""

from collections import OrderedDict

import pytest

import pullback as torch
from pullback import nn


def test_a_state_dict_is_ordered_detached_and_versioned():
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    state = m.state_dict()
    assert isinstance(state, OrderedDict)
    assert list(state) == [
        "0.weight",
        "0.bias",
        "1.weight",
        "1.bias",
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    ]
    assert not state["0.weight"].requires_grad and state["0.weight"].data_ptr() == m[0].weight.data_ptr()
    assert m.state_dict(keep_vars=True)["0.weight"] is m[0].weight
    assert state._metadata["1"] == {"version": 2}


def test_loading_copies_and_assigning_takes():
    source = {k: v + 1 for k, v in nn.Linear(2, 2).state_dict().items()}
    m = nn.Linear(2, 2)
    weight = m.weight
    assert repr(m.load_state_dict(source)) == "<All keys matched successfully>"
    assert m.weight is weight and torch.equal(weight, source["weight"])
    m.load_state_dict(source, assign=True)
    assert m.weight is not weight and m.weight.data_ptr() == source["weight"].data_ptr() and m.weight.requires_grad


def test_every_problem_is_told_at_once():
    with pytest.raises(RuntimeError) as raised:
        nn.Linear(2, 2).load_state_dict({"weight": torch.ones(3, 2), "x": torch.ones(1)})
    assert str(raised.value) == (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". \n\t'
        'Unexpected key(s) in state_dict: "x". \n\t'
        "size mismatch for weight: copying a param with shape torch.Size([3, 2]) from checkpoint, the shape in current "
        "model is torch.Size([2, 2])."
    )
    keys = nn.Linear(2, 2).load_state_dict({"weight": torch.ones(2, 2), "x": torch.ones(1)}, strict=False)
    assert keys.missing_keys == ["bias"] and keys.unexpected_keys == ["x"]


def test_a_state_dict_is_a_mapping():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'list'>."):
        nn.Linear(2, 2).load_state_dict([1])


def test_hooks_see_saving_and_loading():
    m, seen = nn.Sequential(nn.Linear(1, 1)), []
    m.register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append("save"))
    m[0].register_state_dict_post_hook(lambda module, state, prefix, meta: state.update({f"{prefix}more": 1}))
    m[0].register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: seen.append(prefix))
    m.register_load_state_dict_post_hook(lambda module, keys: keys.unexpected_keys.clear())
    assert list(m.state_dict()) == ["0.weight", "0.bias", "0.more"]
    m.load_state_dict(m.state_dict())
    assert seen == ["save", "save", "0."]


def test_extra_state_is_kept():
    class Counter(nn.Module):
        n = 0

        def get_extra_state(self):
            return {"n": self.n}

        def set_extra_state(self, state):
            self.n = state["n"]

    a, b = nn.Sequential(Counter()), nn.Sequential(Counter())
    a[0].n = 5
    b.load_state_dict(a.state_dict())
    assert b[0].n == 5 and list(a.state_dict()) == ["0._extra_state"]
    with pytest.raises(RuntimeError, match="Missing key"):
        b.load_state_dict({})


def test_batch_norm_takes_states_from_before_batches_were_counted():
    m = nn.BatchNorm1d(2)
    state = m.state_dict()
    del state["num_batches_tracked"]
    state._metadata[""]["version"] = 1
    assert not m.load_state_dict(state).missing_keys


def test_numbers_take_tensors_of_one_element_alone():
    class Threshold(nn.Module):
        def __init__(self):
            super().__init__()
            self.threshold = nn.Parameter(torch.tensor(0.0))

    m = Threshold()
    m.load_state_dict({"threshold": torch.tensor([1.0])})
    assert m.threshold.item() == 1
    for size in (0, 3):
        with pytest.raises(RuntimeError, match="size mismatch for threshold"):
            m.load_state_dict({"threshold": torch.ones(size)})


def test_loading_leaves_no_cycle():
    import gc

    m = nn.Linear(2, 2)
    state = {k: v.clone() for k, v in m.state_dict().items()}
    gc.collect()
    m.load_state_dict(state)
    assert gc.collect() == 0


def test_lazy_tensors_into_lazy_ones():
    model, other = torch.nn.LazyLinear(3), torch.nn.LazyLinear(3)
    model.load_state_dict(other.state_dict())
    assert model.has_uninitialized_params() and model(torch.ones(1, 2)).shape == (1, 3)
    with pytest.raises(RuntimeError, match="uninitialized"):
        model.load_state_dict(other.state_dict())
