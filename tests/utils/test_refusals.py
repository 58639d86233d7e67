"""What loaders, samplers, checkpoints, trees and timers refuse, and what they do at their edges."""

import collections
import pickle
from typing import NamedTuple

import numpy as np
import pytest

import pullback as torch
from pullback.utils import data, deterministic
from pullback.utils.benchmark import Timer
from pullback.utils.checkpoint import DefaultDeviceType, get_device_states, set_checkpoint_debug_enabled
from pullback.utils.data import DataLoader, dataset, worker
from pullback.utils.data.datapipes import DataChunk, MapDataPipe, runtime_validation
from pullback.utils.data.pinning import pinned
from pullback.utils.pytree import files, registry, structures, tree_flatten, tree_structure

NUMBERS = list(range(6))


def refused(*table):
    for call, error, words in table:
        with pytest.raises(error, match=words):
            call()


class Counted(data.IterableDataset):
    def __len__(self):
        return 2

    def __iter__(self):
        return iter(range(5))


def test_arguments_of_loaders_that_contradict_each_other():
    batches, order = data.BatchSampler(NUMBERS, 2, False), data.SequentialSampler(NUMBERS)
    refused(
        (lambda: DataLoader(NUMBERS, num_workers=-1), ValueError, "num_workers"),
        (lambda: DataLoader(NUMBERS, timeout=-1), ValueError, "timeout"),
        (lambda: DataLoader(NUMBERS, prefetch_factor=2), ValueError, "could only be specified in multiprocessing"),
        (lambda: DataLoader(NUMBERS, num_workers=1, prefetch_factor=-1), ValueError, "should be non-negative"),
        (lambda: DataLoader(NUMBERS, persistent_workers=True), ValueError, "persistent_workers option needs"),
        (lambda: DataLoader(NUMBERS, multiprocessing_context="fork"), ValueError, "num_workers > 0"),
        (lambda: DataLoader(NUMBERS, num_workers=1, multiprocessing_context="knife"), ValueError, "valid start method"),
        (lambda: DataLoader(NUMBERS, num_workers=1, multiprocessing_context=3), TypeError, "valid context object"),
        (lambda: DataLoader(Counted(), shuffle=True), ValueError, "expected unspecified shuffle option"),
        (lambda: DataLoader(NUMBERS, sampler=order, shuffle=True), ValueError, "mutually exclusive with shuffle"),
        (lambda: DataLoader(NUMBERS, batch_sampler=batches, batch_size=3), ValueError, "batch_sampler option is mutually"),
        (lambda: DataLoader(NUMBERS, batch_size=None, drop_last=True), ValueError, "disables auto-batching"),
        (lambda: pickle.dumps(iter(DataLoader(NUMBERS))), NotImplementedError, "cannot be pickled"),
    )  # fmt: skip


def test_a_dataset_that_gives_more_than_it_promised():
    loader = DataLoader(Counted(), batch_size=None)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2.*but 3 samples have been fetched"):
        assert len(list(loader)) == 5
    assert len(DataLoader(Counted(), batch_size=2, drop_last=True)) == 1


def test_samplers():
    refused(
        (lambda: iter(data.Sampler()), NotImplementedError, None),
        (lambda: data.RandomSampler(NUMBERS, replacement="yes"), TypeError, "replacement should be a boolean"),
        (
            lambda: data.RandomSampler(NUMBERS, num_samples=0),
            ValueError,
            "positive integer value, but got num_samples=0",
        ),
        (lambda: data.WeightedRandomSampler([1.0], True), ValueError, "num_samples should be a positive integer"),
        (lambda: data.WeightedRandomSampler([1.0], 1, "yes"), ValueError, "replacement should be a boolean"),
        (lambda: data.WeightedRandomSampler([[1.0]], 1), ValueError, r"given weights have shape \(1, 1\)"),
        (lambda: data.BatchSampler(NUMBERS, 0, False), ValueError, "batch_size should be a positive integer"),
        (lambda: data.BatchSampler(NUMBERS, 2, 1), ValueError, "drop_last should be a boolean"),
        (lambda: data.random_split(NUMBERS, [2, 2]), ValueError, "does not equal the length of the input dataset"),
        (lambda: data.random_split(NUMBERS, [1.5, -0.5]), ValueError, "Fraction at index 0 is not between 0 and 1"),
    )
    sampler = data.WeightedRandomSampler([0.0, 1.0, 0.0], 4)
    assert list(sampler) == [1] * 4 and len(sampler) == 4


def test_datasets_by_lists_of_indices():
    class Whole(data.Dataset):
        def __getitems__(self, indices):
            return [10 * i for i in indices][:2]

        def __getitem__(self, i):
            return 10 * i

        def __len__(self):
            return 6

    class Odd(data.Subset):
        def __getitem__(self, i):
            return -1

    assert data.Subset(Whole(), [3, 4, 5]).__getitems__([0, 2]) == [30, 50]
    assert data.Subset(np.arange(6), [3, 4, 5])[[0, 2]].tolist() == [3, 5]
    refused(
        (lambda: dataset._many(Whole(), [1, 2, 3], nested=True), ValueError, "Expected 3, got 2"),
        (lambda: Odd(Whole(), [0]), NotImplementedError, "overrides __getitem__ but not __getitems__"),
    )


def test_batches_of_what_cannot_be_stacked():
    refused(
        (lambda: data.default_collate([torch.eye(2).to_sparse()] * 2), RuntimeError, "Batches of sparse tensors"),
        (lambda: data.default_collate([np.array(["a"])] * 2), TypeError, "found"),
        (lambda: data.default_collate([[1], [1, 2]]), RuntimeError, "equal size"),
    )
    pair = collections.namedtuple("pair", "a b")
    words = {"a": np.ones(2), "b": ["x", pair(np.float32(2), b"y")]}
    result = data.default_convert(words)
    assert result["a"].tolist() == [1, 1] and result["b"][0] == "x" and result["b"][1].a.item() == 2


class Pinnable:
    """Notes that it was asked."""

    def __init__(self, done=False):
        self.done = done

    def pin_memory(self):
        return Pinnable(True)


class Pair(NamedTuple):
    a: object
    b: object


def test_batches_are_pinned_wherever_they_are():
    result = pinned({"a": [Pinnable(), "word"], "b": Pair(Pinnable(), 3), "c": (Pinnable(), b"x")})
    assert result["a"][0].done and result["a"][1] == "word" and type(result["b"]) is Pair and result["b"].a.done
    assert result["b"].b == 3 and result["c"][0].done and result["c"][1] == b"x"


def test_errors_of_workers_keep_their_class():
    class Needing(Exception):
        def __init__(self, a, b):
            super().__init__(a, b)

    def failure(error):
        try:
            raise error
        except Exception:
            return worker.Failure(where="in worker 1")

    with pytest.raises(KeyError) as caught:
        failure(KeyError("name")).reraise()
    assert "\n" in str(caught.value)  # lines are shown as lines
    with pytest.raises(RuntimeError, match="Caught Needing in worker 1"):
        failure(Needing(1, 2)).reraise()
    info = worker.WorkerInfo(id=1, seed=2)
    assert repr(info) == "WorkerInfo(id=1, seed=2)"
    with pytest.raises(RuntimeError, match="Cannot assign attributes to WorkerInfo"):
        info.id = 3


def test_chunks_and_pipes():
    chunk = DataChunk(["a", 1])
    assert chunk.as_str("  ") == "  [a, 1]" and list(chunk.raw_iterator()) == ["a", 1]

    class Mine(MapDataPipe):
        pass

    assert repr(Mine()).endswith("Mine")

    def other(self):
        yield 1

    with pytest.raises(TypeError, match="Can not decorate function other"):
        runtime_validation(other)


# ---- checkpoints
def test_devices_of_checkpoints():
    before = DefaultDeviceType.get_device_type()
    DefaultDeviceType.set_device_type("xpu")
    assert DefaultDeviceType.get_device_type() == "xpu"
    DefaultDeviceType._default_device_type = None
    assert DefaultDeviceType.get_device_type() == before and get_device_states(torch.ones(1), 3) == ([], [])


def test_explanations_can_be_asked_for():
    calls = []

    def function(x):
        calls.append(1)
        return (x.sin() if len(calls) == 1 else x).cos()

    x = torch.ones(2, requires_grad=True)
    with set_checkpoint_debug_enabled(True):
        out = torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
    with pytest.raises(torch.utils.checkpoint.CheckpointError, match="these are the operators that ran"):
        out.sum().backward()


# ---- trees
def test_kinds_of_tuples():
    ends = torch.max(torch.ones(2, 2), 0)
    assert registry.is_structseq(ends) and registry.is_structseq_instance(ends) and registry.is_structseq(type(ends))
    assert registry.is_namedtuple(Pair) and registry.is_namedtuple_instance(Pair(1, 2))
    assert not registry.is_structseq_class(tuple) and not registry.is_namedtuple((1, 2))


def test_structures():
    leaf, both = structures.treespec_leaf(), structures.treespec_tuple([structures.treespec_leaf()] * 2)
    assert leaf.is_leaf() and repr(leaf) == "*" and both == tree_structure((1, 2)) and both != 3
    assert structures.treespec_dict(a=leaf) == tree_structure({"a": 1})
    for tree in ({"a": 1}, collections.OrderedDict(a=1), collections.defaultdict(list, a=1), (1, [2])):
        spec = tree_structure(tree)
        assert hash(spec) == hash(tree_structure(tree)) and repr(spec).startswith("TreeSpec(")
    refused(
        (lambda: tree_structure([1, 2]).flatten_up_to([1]), ValueError, "expected 2, but got 1"),
        (lambda: tree_structure({"a": 1}).flatten_up_to({"b": 1}), ValueError, "Node keys mismatch"),
        (lambda: files.treespec_dumps(3), TypeError, "instance of TreeSpec"),
        (lambda: files.treespec_dumps(leaf, 9), ValueError, "Unknown protocol 9"),
        (lambda: files.treespec_loads("[9, null]"), ValueError, "Unknown protocol 9"),
        (lambda: files.treespec_loads('[1, {"type": "x"}]'), NotImplementedError, "Deserializing x"),
    )


class Valued:
    def __init__(self, x):
        self.x = x


def test_classes_that_cannot_be_registered():
    class Unhashed:
        def __eq__(self, other):
            return True

    refused(
        (lambda: registry.register_constant(Valued), TypeError, "non-default `__eq__`"),
        (lambda: registry.register_constant(Unhashed), TypeError, "non-default `__hash__`"),
        (
            lambda: registry.register_pytree_node(
                Valued, lambda v: ([v.x], None), lambda c, _: Valued(*c), to_dumpable_context=str
            ),
            ValueError,
            "must be None or registered together",
        ),
    )
    assert not registry.is_constant_class(Valued)
    registry.register_pytree_node(Valued, lambda v: ([v.x], None), lambda children, _: Valued(*children))
    try:
        leaves, spec = tree_flatten([Valued(1)])
        assert leaves == [1]
        with pytest.raises(NotImplementedError, match="No registered serialization name"):
            files.treespec_dumps(spec)
    finally:
        registry._deregister_pytree_node(Valued)
    assert tree_flatten(Valued(1))[1].is_leaf()


# ---- timers
def test_timers():
    refused(
        (lambda: Timer("1", language="c++"), ValueError, "only in Python"),
        (lambda: Timer("1", global_setup="x"), ValueError, "global_setup is for C\\+\\+ alone"),
        (Timer("1").repeat, NotImplementedError, "blocked_autorange"),
        (Timer("1").autorange, NotImplementedError, "blocked_autorange"),
    )
    seen = []
    found = Timer("x + 1", globals={"x": 1}).adaptive_autorange(
        threshold=10.0, min_run_time=0.0, max_run_time=5.0, callback=lambda n, t: seen.append(n)
    )
    assert len(found.times) == len(seen) >= 4 and found.median > 0
    blocked = Timer("x + 1", globals={"x": 1}).blocked_autorange(lambda n, t: seen.append(t), min_run_time=0.001)
    assert blocked.times and len(seen) == len(found.times) + len(blocked.times)


def test_memory_is_filled_where_that_is_asked_for():
    assert deterministic.fill_uninitialized_memory is True
    deterministic.fill_uninitialized_memory = False
    try:
        assert deterministic.fill_uninitialized_memory is False
        with pytest.raises(RuntimeError, match="bool"):
            deterministic.fill_uninitialized_memory = 3
    finally:
        deterministic.fill_uninitialized_memory = True
