"""Old methods of tensors: `new`, `type`, `apply_`, `map_`, `dim_order`, and sizes that are joined."""

from __future__ import annotations

import pytest

import pullback as torch


def test_new_takes_a_size_a_tensor_or_a_storage():
    x, y = torch.ones(0), torch.arange(3.0)
    assert x.new(size=(2, 3)).shape == (2, 3) and x.new(y).data_ptr() == y.data_ptr()
    assert x.new(y.storage()).data_ptr() == y.data_ptr()
    with pytest.raises(TypeError):
        x.new(torch.ones(1, dtype=torch.int32))
    with pytest.raises(RuntimeError):
        x.new(torch.ones(1, dtype=torch.int32).storage())


def test_type_tensor_is_the_default_dtype():
    assert torch.ones(2, dtype=torch.int32).type(torch.Tensor).dtype is torch.float32


def test_python_functions_over_elements_take_no_part_in_gradients():
    x = torch.arange(1, 4)
    assert x.clone().apply_(lambda v: v + v).tolist() == [2, 4, 6]
    with pytest.raises(TypeError):
        x.apply_(lambda v: "text")
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(3).map2_(torch.ones(3), torch.ones(3, requires_grad=True), lambda a, b, c: a)


def test_an_order_of_dimensions_can_be_asked_to_be_the_only_one():
    assert torch.empty(2, 3, 5, 7).dim_order(ambiguity_check=True) == (0, 1, 2, 3)
    with pytest.raises(RuntimeError, match="unique dim order"):
        torch.empty(2, 2, 1, 2).dim_order(ambiguity_check=True)
    formats = [torch.contiguous_format, torch.channels_last]
    assert torch.empty(2, 3, 4, 4).dim_order(ambiguity_check=formats) == (0, 1, 2, 3)


def test_sizes_are_joined_with_tuples_alone():
    assert torch.Size([1]) + (2,) == torch.Size([1, 2]) and isinstance((2,) + torch.Size([1]), torch.Size)
    with pytest.raises(TypeError, match="can only concatenate tuple"):
        torch.Size([1]) + [2]


def test_an_empty_out_gets_the_strides_of_the_result():
    x = torch.arange(6.0).reshape(2, 3).t()
    assert torch.exp(x, out=torch.empty(0)).stride() == (1, 3)


def test_short_names_of_dtypes():
    names = [d.abbr for d in (torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64)]
    assert names == ["f32", "bf16", "i64", "u8", "b8", "c64"]


def test_factories_follow_the_default_dtype_and_refuse_another_out():
    wide = torch.tensor(1.0, dtype=torch.float64)
    assert torch.arange(wide).dtype is torch.arange(wide, 3).dtype is torch.float32
    assert torch.arange(torch.tensor(3, dtype=torch.int16)).dtype is torch.int64
    out = torch.zeros(3)
    for make in (torch.zeros, lambda n, **options: torch.full((n,), 1.0, **options), torch.arange):
        with pytest.raises(RuntimeError, match="does not match dtype of out"):
            make(3, dtype=torch.int64, out=out)
    assert torch.zeros(3, dtype=torch.float32, out=out) is out
    with pytest.raises(RuntimeError, match=r"dimensionality of sizes \(1\) must match dimensionality of strides \(0\)"):
        out.new_empty_strided((2,), ())


def test_a_tensor_made_of_another_is_a_view_of_it():
    class Labelled(torch.Tensor):
        pass

    x, numbers = torch.ones(2, requires_grad=True), torch.tensor([1, 2])
    for made in (torch.Tensor(x * 2), torch.FloatTensor(x * 2), Labelled(x * 2), x.new(x * 2)):
        assert torch.autograd.grad(made.sum(), x)[0].tolist() == [2, 2]
    view = torch.Tensor(numbers)
    view[0] = 5
    assert view.dtype is torch.int64 and numbers.tolist() == [5, 2] and view._base is numbers
    assert type(Labelled(numbers)) is Labelled and type(torch.Tensor(Labelled(numbers))) is torch.Tensor
    with pytest.raises(TypeError, match=r"expected Float \(got Long\)"):
        torch.FloatTensor(numbers)
    with pytest.raises(RuntimeError, match="Legacy tensor constructor"):
        torch.Tensor(x, device="cpu")


def test_a_tensor_of_a_tensor_is_a_view_of_it():
    class Own(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True)
    for made in (torch.Tensor(x * 3), Own(x * 3), torch.FloatTensor(x * 3), x.new(x * 3)):
        assert torch.autograd.grad((made * made).sum(), x)[0].tolist() == [18.0, 18.0]
    plain = torch.arange(3)
    for cls in (torch.Tensor, Own):
        same = cls(plain)
        assert type(same) is cls and same.dtype is torch.int64 and same._is_view() and same._base is plain
        same += 1
        assert plain._version == same._version
    assert plain.tolist() == [2, 3, 4]
    with pytest.raises(TypeError, match="expected Float"):
        torch.FloatTensor(plain)
    with pytest.raises(RuntimeError, match="as_tensor"):
        torch.Tensor(plain, device="meta")


def test_type_as_takes_the_device_too():
    assert torch.ones(2).type_as(torch.ones(1, dtype=torch.int32, device="meta")).device.type == "meta"


def test_a_shared_file_is_made_as_long_as_the_tensor(tmp_path):
    path = tmp_path / "numbers"
    x = torch.from_file(str(path), shared=True, size=3, dtype=torch.int32)
    x += 2
    assert torch.from_file(str(path), size=3, dtype=torch.int32).tolist() == [2, 2, 2]
    assert torch.from_file(str(tmp_path / "empty"), shared=True, size=0).shape == (0,)
    assert (tmp_path / "empty").exists()
