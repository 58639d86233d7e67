"""Data pipes, datasets of datasets, batches of odd containers; functions over trees of Python values."""

import copy
from collections import namedtuple

import numpy as np
import pytest

import pullback as torch
from pullback.utils import pytree
from pullback.utils.data import collate, datapipes, dataset
from pullback.utils.weak import WeakIdKeyDictionary


class Numbers(datapipes.IterDataPipe):
    def __init__(self, count: int):
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


def test_pipes_are_chained():
    @datapipes.functional_datapipe("doubled_here")
    class Doubled(datapipes.IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            return (2 * x for x in self.source)

    assert list(Numbers(3).doubled_here()) == [0, 2, 4] and repr(Numbers(3)).endswith("Numbers")
    with pytest.raises(Exception, match="doubled_here as it is already taken"):
        datapipes.functional_datapipe("doubled_here")(Doubled)
    with pytest.raises(TypeError, match="can only decorate IterDataPipe or MapDataPipe"):
        datapipes.functional_datapipe("other_here")(int)
    datapipes.IterDataPipe.register_function("counted_here", lambda pipe: len(list(pipe)))
    assert Numbers(4).counted_here() == 4
    with pytest.raises(AttributeError):
        Numbers(1).nothing_here()


def test_pipes_that_are_not_deterministic():
    @datapipes.non_deterministic
    class Shuffled(Numbers):
        pass

    assert list(Shuffled(2)) == [0, 1]
    with datapipes.guaranteed_datapipes_determinism(), pytest.raises(TypeError):
        Shuffled(2)
    with pytest.raises(TypeError):
        datapipes.non_deterministic(int)


def test_types_of_pipes_are_checked():
    @datapipes.argument_validation
    def length(source: datapipes.IterDataPipe) -> int:
        return len(list(source))

    assert length(Numbers(2)) == 2
    with pytest.raises(TypeError, match="Expected argument 'source' as a IterDataPipe"):
        length([1, 2])
    with pytest.raises(TypeError, match="Can not decorate function length"):
        datapipes.runtime_validation(length)


def test_datasets_of_datasets():
    a, b = dataset.TensorDataset(torch.arange(3)), dataset.TensorDataset(torch.arange(3) * 10)
    stacked = dataset.StackDataset(a, b)
    assert [tuple(v[0].item() for v in row) for row in stacked.__getitems__([2, 0])] == [(2, 20), (0, 0)]
    assert [x[0].item() for x in dataset.Subset(a, [2, 1])] == [2, 1]
    joined = dataset.ConcatDataset([a, b])
    assert joined[-1][0].item() == 20
    with pytest.raises(ValueError, match="should not exceed dataset length"):
        joined[-7]
    with pytest.warns(FutureWarning, match="cumulative_sizes"):
        assert joined.cummulative_sizes == [3, 6]
    for make, kind in (
        (lambda: dataset.StackDataset(), ValueError),
        (lambda: dataset.StackDataset(a, x=b), ValueError),
        (lambda: dataset.StackDataset(a, dataset.TensorDataset(torch.ones(2))), ValueError),
        (lambda: dataset.TensorDataset(torch.ones(2), torch.ones(3)), AssertionError),
        (lambda: dataset.ConcatDataset([]), AssertionError),
        (lambda: dataset.ConcatDataset([Numbers(2)]), AssertionError),
        (lambda: list(dataset.ChainDataset([a])), AssertionError),
        (lambda: dataset.random_split(a, [0.5, 2.0]), ValueError),
        (lambda: dataset.Dataset()[0], NotImplementedError),
    ):
        with pytest.raises(kind):
            make()
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        dataset.random_split(a, [1.0, 0.0])


def test_batches_of_containers():
    Point = namedtuple("Point", "x y")
    batch = collate.default_collate([Point(1, 2.0), Point(3, 4.0)])
    assert isinstance(batch, Point) and batch.x.tolist() == [1, 3] and batch.y.dtype is torch.float64
    assert collate.default_convert(Point(np.ones(1), "word")).x.tolist() == [1.0]
    assert collate.default_convert({"a": [np.zeros(2)], "b": b"x"})["a"][0].shape == (2,)
    with pytest.raises(RuntimeError, match="equal size"):
        collate.default_collate([[1, 2], [3]])
    with pytest.raises(TypeError):
        collate.default_collate([np.array(["word"]), np.array(["word"])])
    assert collate.default_collate([np.float64(1.0), np.float64(2.0)]).tolist() == [1.0, 2.0]


def test_functions_over_trees():
    tree = {"a": [1, 2.0], "b": (3,)}
    assert list(pytree.tree_iter(tree)) == [1, 2.0, 3]
    seen = []
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, 2.0, 3]
    assert pytree.tree_map_only(int, lambda x: -x, tree) == {"a": [-1, 2.0], "b": (-3,)}
    assert pytree.tree_all(lambda x: x > 0, tree) and not pytree.tree_any(lambda x: x > 3, tree)
    assert pytree.tree_all_only(int, lambda x: x > 0, tree) and pytree.tree_any_only(float, lambda x: x == 2.0, tree)
    assert pytree.arg_tree_leaves([1], x=(2,)) == [1, 2]
    leaves, spec = pytree.tree_flatten(tree)
    assert pytree.tree_unflatten(leaves, spec) == tree and len(spec.children()) == 2 and spec.child(0).num_leaves == 2
    doubled = pytree.tree_map_with_path(lambda path, x: (len(path), x), tree)
    assert doubled["b"] == ((2, 3),)


def test_the_text_of_a_structure():
    spec = pytree.tree_structure({"a": [1, 2], "b": (3, None)})
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="Unknown protocol 99"):
        pytree.treespec_dumps(spec, 99)
    with pytest.raises(TypeError):
        pytree.treespec_dumps("no structure")
    with pytest.raises(ValueError, match="Node keys mismatch"):
        pytree.tree_structure({"a": 1}).flatten_up_to({"b": 1})


def test_weak_dictionaries():
    a, b = torch.ones(1), torch.ones(2)
    known = WeakIdKeyDictionary({a: [1]})
    both = known | WeakIdKeyDictionary({b: [2]})
    assert sorted(both.values()) == [[1], [2]] and len(both.keyrefs()) == 2 and len(known) == 1
    deep = copy.deepcopy(known)
    deep[a].append(3)
    assert known[a] == [1] and "WeakIdKeyDictionary at 0x" in repr(known)
    known |= {b: [4]}
    assert known[b] == [4]
