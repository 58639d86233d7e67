"""Tensors from Python data: what is no data says so, in the words that users search for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pullback as torch


def test_texts_are_no_data():
    for first in (["a"], [["a"], [0]]):
        with pytest.raises(ValueError, match="too many dimensions 'str'"):
            torch.tensor(first)
    for later in ([0, "a"], [[0], ["a"]], "a"):
        with pytest.raises(TypeError, match="invalid data type 'str'"):
            torch.tensor(later)


def test_lists_that_hold_themselves():
    inner = [0]
    inner += [inner]
    first: list = []
    first.append(first)
    for data in (inner, [[1, 2], inner], first):
        with pytest.raises(TypeError, match="self-referential lists are incompatible"):
            torch.tensor(data)


def test_sequences_of_users():
    class Three:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return [1.0, 2.0, 3.0][index]

    class None_(Three):
        def __getitem__(self, index):
            raise TypeError

    assert torch.tensor(Three()).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="could not determine the shape of object type 'None_'"):
        torch.tensor(None_())


def test_numpy_numbers():
    assert torch.asarray(np.float64(0.5)).dtype is torch.float64
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars"):
        torch.asarray(np.float64(0.5), copy=False)
    assert torch.FloatStorage(np.int16(3)).size() == 3


def test_normal_takes_tensors_without_dimensions_for_numbers():
    zero = torch.tensor(0.0)
    assert torch.normal(zero, 1.0, (10,)).shape == torch.normal(zero, torch.tensor(1.0), (10,)).shape == (10,)
    with pytest.raises(RuntimeError, match="std >= 0.0"):
        torch.normal(zero, -1, (10,))
    for mean in (torch.ones(1), torch.tensor(0.0, requires_grad=True)):
        with pytest.raises(TypeError, match="invalid combination"):
            torch.normal(mean, 1.0, (10,))


def test_memory_that_others_hand_over_may_be_written_to():
    own = torch.ones(3)
    shared = torch.from_dlpack(own)
    shared[0] = 5
    assert own.tolist() == [5, 1, 1]
    copied = torch.from_dlpack(own, copy=True)
    copied[0] = 7
    assert own.tolist() == [5, 1, 1]
    array = np.arange(3.0)
    torch.from_dlpack(array, copy=True)[0] = 9
    assert array.tolist() == [0, 1, 2]

    class Old:  # a producer that knows no versions, and whose capsule cannot say that it may be written to
        def __dlpack__(self):
            return array[::2].__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    torch.from_dlpack(Old())[1] = 8
    assert array.tolist() == [0, 1, 8]
    torch.from_dlpack(torch.to_dlpack(own))[2] = 3
    assert own.tolist() == [5, 1, 3]


def test_what_is_not_handed_over():
    x = torch.ones(2)
    assert np.from_dlpack(x).flags.writeable
    with pytest.raises(AssertionError, match="stream should be None on cpu"):
        x.__dlpack__(stream=0)
    with pytest.raises(BufferError, match="layout other than torch.strided"):
        x.to_sparse().__dlpack__()
    with pytest.raises(BufferError, match=r"DLPack device \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="meta"):
        torch.from_dlpack(x, device="meta")


def test_arrays_of_several_shapes_make_no_tensor():
    with pytest.raises(ValueError, match=r"expected sequence of length 3 at dim 2 \(got 0\)"):
        torch.tensor([np.zeros((3, 3)), np.zeros((3, 0))])


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.FloatTensor(2, device="meta"),
        lambda: torch.Tensor((2.0, 3.0), device="cuda"),
        lambda: torch.ones(2).new(3, device="cuda"),
        lambda: torch.eye(2).to_sparse().new(device="cuda"),
    ],
)
def test_old_constructors_refuse_another_kind_of_device(make):
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: (cuda|meta)"):
        make()


def test_new_of_a_tensor_takes_no_device():
    t = torch.ones(1)
    assert t.new(2, device="cpu").shape == (2,)
    with pytest.raises(RuntimeError, match="is not supported"):
        t.new(t, device="cpu")


def test_arange_says_that_out_has_another_number_of_elements():
    out = torch.zeros(1, 4)
    with pytest.warns(UserWarning, match=r"The out tensor will be resized to a tensor of shape \(5,\)"):
        torch.arange(5, out=out)
    assert out.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_arange_of_more_elements_than_can_be_counted():
    with pytest.raises(RuntimeError, match="invalid size, possible overflow"):
        torch.arange(0.0, 3e38)


@pytest.mark.parametrize("size, stride", [((4, 3, 2), (10, 0, 3)), ((4, 3, 2), (10, 1, 1)), ((4, 2, 3), (10, 3, 3))])
def test_tensors_like_ones_with_gaps_have_the_order_of_results(size, stride):
    t = torch.empty_strided(size, stride).fill_(1.0)
    for order in itertools.permutations(range(3)):
        view = t.permute(order)
        assert torch.zeros_like(view).stride() == torch.exp(view).stride() == view.clone().stride()


def test_default_types_are_classes():
    with pytest.raises(TypeError, match="invalid type object"):
        torch.set_default_tensor_type(torch.float32)


def test_objects_with_memory_of_their_own_are_copied_at_once():
    class Lends:
        def __init__(self, t):
            self.t = t

        def __dlpack__(self, **options):
            return self.t.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.t.__dlpack_device__()

    x = torch.arange(3.0)
    y = torch.tensor(Lends(x))
    assert y.equal(x) and y.data_ptr() != x.data_ptr()
    assert torch.tensor(Lends(x), dtype=torch.float64, requires_grad=True).dtype is torch.float64
    with pytest.raises(BufferError, match="Unsupported device_type: 16"):
        x.__dlpack__(dl_device=(16, 0))


def test_capsules_and_buffers():
    source = torch.arange(3)
    shared = torch.asarray(torch.utils.dlpack.to_dlpack(source))
    copied = torch.asarray(torch.utils.dlpack.to_dlpack(source), copy=True)
    source[0] = 7
    assert shared.tolist() == [7, 1, 2] and copied.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="object does not implement Python buffer protocol"):
        torch.frombuffer([1, 2], dtype=torch.int32)


def test_memory_that_nobody_may_write():
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="The given buffer is not writable"):
            torch.frombuffer(b"ab", dtype=torch.int8)
    finally:
        torch.set_warn_always(False)
