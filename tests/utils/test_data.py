"""Datasets, samplers, collation and the loader: order, seeds, workers, failures."""

import os
import random
import time

import numpy as np
import pytest

import pullback as torch
from pullback.utils import data
from pullback.utils.data import DataLoader, fetch


class Squares(data.Dataset):
    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.tensor(float(i * i)), i


class Randoms(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        info = data.get_worker_info()
        return torch.rand(()).item(), random.random(), np.random.rand(), info.id, info.seed


class Stream(data.IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(10) if info is None else range(info.id, 10, info.num_workers))

    def __len__(self):
        return 10


class Failing(Squares):
    def __init__(self, what):
        super().__init__(4)
        self.what = what

    def __getitem__(self, i):
        if i == 2:
            self.what()
        return i


def _boom():
    raise KeyError("boom")


def _die():
    os.kill(os.getpid(), 9)


def _sleep():
    time.sleep(30)


def order(loader):
    return [i for batch in loader for i in batch[1].tolist()]


def test_batches_in_order():
    batches = list(DataLoader(Squares(), batch_size=4))
    assert [b[1].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches[0][0].dtype == torch.float32 and batches[0][1].dtype == torch.int64
    assert len(DataLoader(Squares(), batch_size=4)) == 3 and len(DataLoader(Squares(), 4, drop_last=True)) == 2


def test_a_seed_gives_one_order_and_it_is_the_published_one():
    torch.manual_seed(0)
    assert order(DataLoader(Squares(), shuffle=True, batch_size=3)) == [6, 7, 1, 4, 2, 0, 9, 8, 3, 5]
    g = torch.Generator()
    first = order(DataLoader(Squares(), shuffle=True, generator=g.manual_seed(1)))
    assert order(DataLoader(Squares(), shuffle=True, generator=g.manual_seed(1))) == first


def test_workers_keep_the_order():
    torch.manual_seed(0)
    alone = [order(DataLoader(Squares(), shuffle=True, batch_size=3)) for _ in range(2)]
    torch.manual_seed(0)
    helped = [order(DataLoader(Squares(), shuffle=True, batch_size=3, num_workers=2)) for _ in range(2)]
    assert helped == alone


def test_persistent_workers_serve_every_epoch():
    loader = DataLoader(Squares(), batch_size=3, num_workers=2, persistent_workers=True)
    assert order(loader) == list(range(10))
    pids = [p.pid for p in loader._iterator.processes]
    next(iter(loader))  # a pass that is given up
    assert order(loader) == list(range(10)) and [p.pid for p in loader._iterator.processes] == pids


def test_each_worker_has_seeds_of_its_own():
    torch.manual_seed(5)
    rows = [tuple(x.item() for x in b) for b in DataLoader(Randoms(), num_workers=2)]
    assert [r[3] for r in rows] == [0, 1, 0, 1] and rows[1][4] == rows[0][4] + 1
    assert len({r[:3] for r in rows}) == 4
    torch.manual_seed(5)
    assert [tuple(x.item() for x in b) for b in DataLoader(Randoms(), num_workers=2)] == rows


def test_iterable_datasets():
    assert [b.tolist() for b in DataLoader(Stream(), batch_size=4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    shared = DataLoader(Stream(), batch_size=2, num_workers=2)
    assert [b.tolist() for b in shared] == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
    assert list(DataLoader(Stream(), batch_size=None)) == list(range(10))


def test_out_of_order():
    loader = DataLoader(Squares(20), batch_size=2, num_workers=2, in_order=False)
    assert sorted(order(loader)) == list(range(20))


def test_an_error_in_a_worker_keeps_its_type_and_place():
    with pytest.raises(KeyError, match="Caught KeyError in DataLoader worker process 0"):
        list(DataLoader(Failing(_boom), num_workers=1))
    with pytest.raises(KeyError, match="^'boom'$"):
        list(DataLoader(Failing(_boom)))


def test_a_killed_worker_is_named():
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid \d+\) is killed by signal: Killed"):
        list(DataLoader(Failing(_die), num_workers=2))


def test_timeout():
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.2 seconds"):
        list(DataLoader(Failing(_sleep), num_workers=1, timeout=0.2))


def test_worker_init_fn():
    def refuse(i):
        raise ValueError(f"worker {i}")

    with pytest.raises(ValueError, match="worker 0"):
        list(DataLoader(Squares(), num_workers=1, worker_init_fn=refuse))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (dict(num_workers=-1), ValueError, "num_workers option should be non-negative"),
        (dict(timeout=-1), ValueError, "timeout option should be non-negative"),
        (dict(prefetch_factor=2), ValueError, "prefetch_factor option could only be specified in multiprocessing"),
        (dict(persistent_workers=True), ValueError, "persistent_workers option needs num_workers > 0"),
        (dict(shuffle=True, sampler=[1]), ValueError, "sampler option is mutually exclusive with shuffle"),
        (dict(batch_sampler=[[1]], batch_size=2), ValueError, "batch_sampler option is mutually exclusive"),
        (dict(batch_size=0), ValueError, "batch_size should be a positive integer value"),
        (dict(num_workers=1, multiprocessing_context="x"), ValueError, "valid start method"),
    ],
)
def test_refusals(options, error, words):
    with pytest.raises(error, match=words):
        DataLoader(Squares(), **options)


def test_attributes_are_fixed_and_memory_is_not_pinned():
    loader = DataLoader(Squares(), pin_memory=True)
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 3
    with pytest.warns(UserWarning, match="no accelerator is found"):
        next(iter(loader))


def test_collation():
    result = data.default_collate([{"a": np.float32(1), "b": [1, 2.0], "s": "x"}, {"a": np.float32(2), "b": [3, 4.0], "s": "y"}])  # fmt: skip
    assert result["a"].tolist() == [1, 2] and result["a"].dtype == torch.float32
    assert result["b"][0].tolist() == [1, 3] and result["b"][1].dtype == torch.float64 and result["s"] == ["x", "y"]
    with pytest.raises(TypeError, match="batch must contain tensors"):
        data.default_collate([object()])
    with pytest.raises(RuntimeError, match="equal size"):
        data.default_collate([[1], [1, 2]])
    assert data.default_convert({"a": np.ones(2)})["a"].tolist() == [1, 1]


def test_combinations():
    a, b = Squares(3), Squares(2)
    assert len(a + b) == 5 and (a + b)[4][1] == 1 and (a + b)[-5][1] == 0
    stacked = data.StackDataset(x=a, y=data.TensorDataset(torch.arange(3)))
    assert stacked[2]["y"][0].item() == 2 and len(stacked) == 3
    assert list(Stream() + Stream()) == [*range(10), *range(10)]
    halves = data.random_split(Squares(5), [0.5, 0.5], torch.Generator().manual_seed(0))
    assert [len(h) for h in halves] == [3, 2]
    assert sorted(i for h in halves for i in h.indices) == list(range(5))
    with pytest.raises(ValueError, match="does not equal the length"):
        data.random_split(Squares(5), [1, 1])


def test_samplers():
    drawn = list(data.RandomSampler(range(3), replacement=True, num_samples=40))
    assert len(drawn) == 40 and set(drawn) <= {0, 1, 2}
    assert sorted(data.SubsetRandomSampler([3, 5])) == [3, 5]
    assert set(data.WeightedRandomSampler([0.0, 1.0], 5)) == {1}
    shares = [list(data.DistributedSampler(Squares(5), 2, rank, shuffle=False)) for rank in range(2)]
    assert shares == [[0, 2, 4], [1, 3, 0]]
    with pytest.raises(ValueError, match="Invalid rank 2"):
        data.DistributedSampler(Squares(5), 2, 2)


def test_pipes_chain():
    class Numbers(data.IterDataPipe):
        def __iter__(self):
            return iter(range(4))

    @data.functional_datapipe("doubled_for_test")
    class Doubled(data.IterDataPipe):
        def __init__(self, source):
            self.source = source

        def __iter__(self):
            return (2 * x for x in self.source)

    assert list(Numbers().doubled_for_test()) == [0, 2, 4, 6]
    with pytest.raises(AttributeError):
        Numbers().nothing


def test_fetchers():
    base = fetch.Fetcher([1, 2], True, list, False)
    with pytest.raises(NotImplementedError, match="Fetcher.fetch is not implemented"):
        base.fetch([0])
    ordered, iterable = (fetch.DatasetKind.create_fetcher(kind, range(3), True, list, True) for kind in (0, 1))
    assert isinstance(ordered, fetch.Fetcher) and ordered.fetch([2, 0]) == [2, 0] and ordered.drop_last
    assert iterable.fetch([None] * 2) == [0, 1] and next(iterable.dataset_iter) == 2
    with pytest.raises(StopIteration):
        iterable.fetch([None])


def test_a_dataset_that_is_its_own_iterator_is_begun_once():
    class Stream(data.IterableDataset):
        def __iter__(self):
            self.place = 0
            return self

        def __next__(self):
            if self.place == 5:
                raise StopIteration
            self.place += 1
            return self.place

    assert [b.tolist() for b in DataLoader(Stream(), batch_size=2)] == [[1, 2], [3, 4], [5]]


def test_workers_that_cannot_be_told_what_to_do():
    loader = DataLoader([1, 2], num_workers=1, worker_init_fn=lambda i: None, multiprocessing_context="spawn")
    with (
        pytest.warns(UserWarning, match="Got pickle error when attempting"),
        pytest.raises(Exception, match="pickle|local object"),
    ):
        next(iter(loader))
