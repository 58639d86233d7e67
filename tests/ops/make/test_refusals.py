"""Arguments that factories and conversions refuse, or warn of, as PyTorch does."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as torch


def test_a_number_with_a_gradient_is_no_number():
    x, weight = torch.ones(2), torch.tensor(2.0, requires_grad=True)
    with pytest.raises(TypeError, match="'value'"):
        x.addcmul(x, x, value=weight)
    with pytest.raises(TypeError):
        torch.isclose(x, x, torch.tensor(1.0, requires_grad=True))
    assert x.addcmul(x, x, value=weight.detach()).tolist() == [3, 3]


def test_start_of_narrow():
    x = torch.arange(3)
    assert x.narrow(0, torch.tensor(1), 2).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="start must be an 0-dim integral Tensor"):
        x.narrow(0, torch.tensor(0.0), 1)


def test_out_of_another_layout():
    with pytest.raises(RuntimeError, match="does not match layout of out parameter"):
        torch.zeros(2, 2, layout=torch.sparse_coo, out=torch.zeros(2, 2))


def test_warnings():
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="required to pass the indexing argument"):
            torch.meshgrid(torch.ones(2))
        with pytest.warns(UserWarning, match="list of numpy.ndarrays is extremely slow"):
            torch.tensor([np.ones(2), np.ones(2)])
        with pytest.warns(UserWarning, match="torch.range is deprecated"):
            torch.range(0, 2)
    finally:
        torch.set_warn_always(False)


def test_more_dimensions_than_an_array_has():
    deep = 1.0
    for _ in range(70):
        deep = [deep]
    with pytest.raises(ValueError, match="at most 64 dimensions here, but the data is nested 70 deep"):
        torch.tensor(deep)
    with pytest.raises(ValueError, match="maximum supported dimension .* 64, found 70"):
        torch.ones(1).expand((1,) * 70)


def test_devices_by_strings_that_are_none():
    with pytest.raises(RuntimeError, match="Invalid device string: 'not a device'"):
        torch.device("not a device")
    with pytest.raises(TypeError, match="requires a callable"):
        torch.autocast("cpu")(3)


def test_a_bool_is_no_size():
    for make in (torch.zeros, torch.ones, torch.empty, torch.randn, torch.rand):
        with pytest.raises(TypeError, match="must be tuple of ints"):
            make(True)
        with pytest.raises(TypeError, match="element of type bool at pos 0"):
            make((True, 2))
    with pytest.raises(TypeError, match=r"size\(\): argument 'dim' .* must be int, not bool"):
        torch.ones(2, 3).size(True)
    with pytest.raises(TypeError, match=r"stride\(\): argument 'dim' .* must be int, not bool"):
        torch.ones(2, 3).stride(True)
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        torch.LongTensor((6, 0), 1, 1)


HUGE = 2**58  # more numbers than any machine addresses


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(HUGE),
        lambda: torch.empty(HUGE),
        lambda: torch.arange(HUGE),
        lambda: torch.rand(HUGE),
        lambda: torch.zeros(1).expand(HUGE) + 1,
        lambda: torch.zeros(1).expand(HUGE).clone(),
        lambda: torch.zeros(3).resize_(HUGE),
        lambda: torch.zeros(2**29, 1) @ torch.zeros(1, 2**29),
        lambda: torch.bmm(torch.zeros(1, 2**29, 1), torch.zeros(1, 1, 2**29)),
        lambda: torch.zeros(3).repeat(HUGE // 3),
        lambda: torch.cat([torch.zeros(1).expand(HUGE)] * 2),
        lambda: torch.stack([torch.zeros(1).expand(HUGE)] * 2),
        lambda: torch.zeros(1).expand(HUGE).cumsum(0),
        lambda: torch.zeros(1).expand(HUGE).softmax(0),
        lambda: torch.zeros(1)[torch.zeros(1, dtype=torch.int64).expand(HUGE)],
    ],
)
def test_memory_that_is_not_there(make):
    with pytest.raises(
        RuntimeError, match="DefaultCPUAllocator: can't allocate memory: you tried to allocate [0-9]+ bytes"
    ) as error:
        make()
    assert isinstance(error.value, MemoryError)


def test_sizes_that_nothing_counts():
    wide = [2, 4, 2**29, 2**29]
    for make in (torch.empty, torch.zeros, torch.ones, torch.rand, torch.zeros(1).new_empty):
        with pytest.raises(
            RuntimeError, match=r"Storage size calculation overflowed with sizes=\[2, 4, 536870912, 536870912\]"
        ):
            make(wide, dtype=torch.float64)
    with pytest.raises(RuntimeError, match=r"overflowed with sizes=\[8, 8\] and strides=\[2305843009213693952, 1\]"):
        torch.empty_strided([8, 8], [2**61, 1], dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
        torch.empty([0, 4, 2**61])
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        torch.empty((), dtype=torch.float64).resize_(wide)
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        torch.ones(6).as_strided([1], [1], 2**63 - 1)


@pytest.mark.parametrize("size", [[[1]], [[2, 3]], ((1,),), [torch.Size([2])]])
def test_sizes_within_a_size(size):
    x = torch.ones(2)
    makers = (torch.zeros, torch.empty, torch.rand, torch.randn, lambda s: torch.full(s, 1), x.new_zeros, x.new_empty)
    for make in (*makers, lambda s: torch.randint(3, s), torch.empty(0).resize_):
        with pytest.raises(TypeError, match="argument 'size'"):
            make(size)
