"""Tensors that are sent to other processes share their memory with them."""

import pytest

import pullback as torch
from pullback.surface import multiprocessing as mp


def _write(index: int, tensor) -> None:
    tensor[index] = index + 10.0


def _fail(index: int) -> None:
    if index == 1:
        raise ValueError("no good")


def _answer(given, results) -> None:
    tensor, alias = given.get()
    alias.add_(1)  # the same memory as `tensor`, here and there
    results.put((tensor.sum().item(), tensor.requires_grad))


def test_children_write_what_the_parent_reads():
    shared = torch.zeros(3).share_memory_()
    mp.start_processes(_write, (shared,), nprocs=2, start_method="fork")
    assert shared.tolist() == [10.0, 11.0, 0.0] and shared.is_shared()


def test_aliases_stay_aliases_through_a_queue():
    context = mp.get_context("fork")
    given, results = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=_answer, args=(given, results))
    process.start()
    tensor = torch.ones(4)
    given.put((tensor, tensor[:2]))
    assert results.get() == (6.0, False)
    process.join()
    assert tensor.tolist() == [2.0, 2.0, 1.0, 1.0]


def test_what_a_process_raises_is_raised_here():
    with pytest.raises(
        mp.ProcessRaisedException, match="Process 1 terminated with the following error(.|\n)*ValueError: no good"
    ):
        mp.start_processes(_fail, nprocs=2, start_method="fork")


def test_a_history_does_not_travel():
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        mp.get_context("fork").SimpleQueue().put(torch.ones(2, requires_grad=True) * 2)


def test_strategies():
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.warns(UserWarning, match="has no effect"):
        mp.set_sharing_strategy("file_system")
    with pytest.raises(AssertionError, match="invalid sharing strategy 'telepathy'"):
        mp.set_sharing_strategy("telepathy")
