"""Private names that packages use: each does what its users ask of it."""

import pytest

import pullback as torch
from pullback.compat import dynamo_names, functions, functorch_names, nested_names, network_names, private_names
from pullback.ops.make.construct import typed_classes


def test_questions_about_tensors_and_modes():
    x = torch.arange(6.0).reshape(2, 3)
    assert private_names.storage_id(x) == private_names.storage_id(x[0]) != private_names.storage_id(x.clone())
    assert private_names.all_same_mode([1, 1]) and not private_names.all_same_mode([1, 2])
    overlap = private_names.has_internal_overlap
    assert (overlap(x), overlap(x[:1].expand(4, 3)), overlap(x[:, ::2])) == (0, 1, 2)
    assert torch.float32 in private_names.all_dtypes() and torch.bits8 in private_names.all_dtypes()
    assert private_names.get_proxy_mode() is None and private_names.get_tracing_state() is None
    with private_names.python_rules():
        assert x.sum() == 15
    assert private_names.is_compile_supported("cpu") and not private_names.is_compile_supported("meta")
    assert private_names.is_dynamo_supported() and private_names.get_privateuse1_backend_name() == "privateuseone"
    y = torch.tensor([1.0, -1.0])
    expected = torch.nn.functional.gelu(y)
    assert private_names.gelu_(y) is y and torch.equal(y, expected)
    assert list(private_names.tqdm([1, 2], disable=True)) == [1, 2]


def test_jagged_tensors():
    parts = [torch.arange(2.0), torch.arange(3.0)]
    jagged, offsets = nested_names.jagged_from_list(parts, None)
    assert offsets.tolist() == [0, 2, 5] and isinstance(jagged, nested_names.NestedTensor)
    assert not isinstance(parts[0], nested_names.NestedTensor)
    other, same = nested_names.jagged_from_list(parts, offsets)
    assert same is offsets and nested_names.buffer_from_jagged(other).tolist() == [0, 1, 0, 1, 2]
    with pytest.raises(RuntimeError, match=r"do not have the lengths that offsets say: \[0, 2, 5\]"):
        nested_names.jagged_from_list(parts[::-1], offsets)
    padded = torch.tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0]], requires_grad=True)
    result = nested_names.nested_from_padded(padded.unsqueeze(-1), offsets)
    assert [t.reshape(-1).tolist() for t in result.unbind()] == [[1, 2], [3, 4, 5]]
    nested_names.buffer_from_jagged(result).sum().backward()
    assert padded.grad.tolist() == [[1, 1, 0], [1, 1, 1]]
    values = torch.arange(5.0)
    view = nested_names.nested_view_from_values_offsets(values, offsets)
    assert [t.tolist() for t in view.unbind()] == [[0, 1], [2, 3, 4]]
    short = nested_names.nested_view_from_values_offsets_lengths(values, offsets, torch.tensor([1, 2]))
    assert [t.tolist() for t in short.unbind()] == [[0], [2, 3]]


def test_names_of_the_compiler():
    assert dynamo_names.istype(1, int) and not dynamo_names.istype(True, int) and dynamo_names.istype(1, (str, int))
    assert dynamo_names.ifdynstaticdefault("static", "dynamic") == "static"
    assert not dynamo_names.is_any_autocast_enabled()
    with torch.autocast("cpu"):
        assert dynamo_names.is_any_autocast_enabled()
    assert dynamo_names.get_interface_for_device("cuda") is torch.cuda
    with pytest.raises(NotImplementedError, match="No interface for device cpu"):
        dynamo_names.get_interface_for_device("cpu")

    def function(x):
        return x + 1

    modes = dynamo_names.list_mode_options()
    assert modes["reduce-overhead"] == dynamo_names.list_mode_options("reduce-overhead") == {"triton.cudagraphs": True}
    inputs = [3, torch.ones(2, dtype=torch.float64)]
    assert (dynamo_names.device_from_inputs(inputs).type, dynamo_names.dtype_from_inputs(inputs)) == (
        "cpu",
        torch.float64,
    )
    with pytest.raises(RuntimeError, match="no tensor among its inputs"):
        dynamo_names.device_from_inputs([3])
    assert dynamo_names.innermost_fn(torch.compile(function)) is function


def test_small_functions():
    assert functions.always_record(3) is torch.profiler.ProfilerAction.RECORD
    with pytest.raises(RuntimeError, match="the profiler of CUDA is not bound here"):
        functions.no_cuda_profile()
    assert functions.cast_Int(torch.tensor([1.7])).tolist() == [1]
    assert functorch_names.__name__.endswith("functorch_names")


def test_the_typed_classes_know_where_their_tensors_are():
    assert torch.FloatTensor in typed_classes and torch.LongTensor in typed_classes
    assert not any(c.is_cuda or c.is_xpu or c.is_sparse for c in typed_classes)


def test_jagged_tensors_by_their_class():
    values, offsets = torch.arange(10.0).reshape(5, 2), torch.tensor([0, 2, 5])
    t = nested_names.NestedTensor(values, offsets=offsets)
    assert [part.shape[0] for part in t.unbind()] == [2, 3] and isinstance(t, nested_names.NestedTensor)
    t = nested_names.NestedTensor(values.t(), offsets, lengths=torch.tensor([1, 2]), _ragged_idx=2, requires_grad=True)
    assert [tuple(part.shape) for part in t.unbind()] == [(2, 1), (2, 2)] and t.requires_grad
    with pytest.raises(TypeError, match="unexpected keyword arguments"):
        nested_names.NestedTensor(values, offsets, ragged=1)


def test_storage_follows_the_default_dtype():
    assert private_names.Storage is torch.FloatStorage
    torch.set_default_dtype(torch.float64)
    try:
        assert private_names.Storage is torch.DoubleStorage
    finally:
        torch.set_default_dtype(torch.float32)


def test_operators_of_networks_without_a_public_function():
    assert network_names.linear is torch.nn.functional.linear
    out = torch.empty(0)
    assert network_names.upsample_nearest1d(torch.ones(1, 1, 2), (4,), 2, out=out) is out and out.shape == (1, 1, 4)
    assert not hasattr(network_names, "no_such_operator")
